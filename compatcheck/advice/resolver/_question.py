"""Whether uv finds versions for a list as it stands, every pin included."""

from __future__ import annotations

from compatcheck.advice import _uv
from compatcheck.advice.model import Demands, Place, Unsolvable, Wanted
from compatcheck.advice.resolver._failures import failure


def why_unsolvable(path: str, place: Place) -> str | None:
    """uv's reason why the requirements in a file have no solution; None where they have one.

    Raises `IndexDown` where an index does not answer, and `InputError` where uv cannot work.
    """
    command = ["pip", "compile", path, "--quiet", "--no-header", "--no-annotate", "--no-upgrade"]
    command += ["--python", place.interpreter]
    command += ["--python-version", place.python_version] if place.python_version else []
    command += ["--python-platform", place.platform] if place.platform else []
    done = _uv.run(command)
    if done.status == 0:
        return None
    error = failure(done, Wanted((), {}), Demands(), place)
    if isinstance(error, Unsolvable):
        return error.seen
    raise error
