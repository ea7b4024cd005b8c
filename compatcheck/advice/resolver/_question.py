"""Whether uv finds versions for a list as it stands, every pin included."""

from __future__ import annotations

from compatcheck.advice import _uv
from compatcheck.advice.model import Demands, Place, Unsolvable, Wanted
from compatcheck.advice.resolver._failures import NO_BUILD, failure
from compatcheck.advice.resolver._local import is_archive, local_names
from compatcheck.errors import InputError


def why_unsolvable(path: str, wanted: Wanted, place: Place) -> str | None:
    """uv's reason why the requirements in a file have no solution; None where they have one. ``wanted`` is what it has.

    No code of this machine is built. Raises `IndexDown` where an index does not answer, and `InputError` where uv
    cannot work, or only a build tells: of what a local project is called, or what a package requires.
    """
    for line in wanted.lines:
        if line.asked and not line.name and (line.folder or is_archive(line)):
            advice = "state its name in its pyproject.toml, or write name @ path"
            raise InputError("resolving", line.where, "only a build gives the name of this local project", advice)
    command = ["pip", "compile", path, "--quiet", "--no-header", "--no-annotate", "--no-upgrade"]
    command += ["--python", place.interpreter]
    command += ["--python-version", place.python_version] if place.python_version else []
    command += ["--python-platform", place.platform] if place.platform else []
    command += [part for name in sorted(local_names(wanted)) for part in ("--only-binary", name)]
    done = _uv.run(command)
    if done.status == 0:
        return None
    error = failure(done, wanted._replace(lines=()), Demands(), place)
    if isinstance(error, Unsolvable) and error.advice != NO_BUILD:
        return error.seen
    raise InputError(error.doing, path, error.seen, error.advice) if isinstance(error, Unsolvable) else error
