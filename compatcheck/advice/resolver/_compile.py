"""``uv pip compile`` on what is wanted, held to what is demanded."""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

from compatcheck.advice import _uv
from compatcheck.advice._credentials import OMITTED, redacted, without_credentials
from compatcheck.advice.model import Demands, Line, Place, Solution, Unsolvable, Wanted
from compatcheck.advice.requirement_text import version_of
from compatcheck.advice.resolver._failures import failure, unbuildable
from compatcheck.advice.resolver._local import is_archive, local_names
from compatcheck.errors import CompatcheckError, InputError
from compatcheck.files import leftovers
from compatcheck.packages.names import edge, normalised

_PINNED = re.compile(r"^([a-z0-9._-]+)(?:\[[^\]]*\])?==([^\s;\\]+)(?:[^#]*)(?:# via (.*))?$")
_NAMED = re.compile(r"^([a-z0-9][a-z0-9._-]*)(?:\[|\s|$)")
_YANKED = re.compile(r"^warning: `([A-Za-z0-9._-]+)==([^`]+)` is yanked(?: \(reason: \"(.*)\"\))?", re.MULTILINE)
_OWN_STYLE = (
    "--no-header",
    "--strip-extras",
    "--strip-markers",
    "--no-emit-index-url",
    "--no-emit-find-links",
    "--no-universal",
    "--no-upgrade",
)
"""What the user's own configuration may say otherwise of the output; what to look for, and where, is left to it."""


def resolve(wanted: Wanted, demands: Demands, place: Place, kept: Mapping[str, str] | None = None) -> Solution:
    """One set of versions: those preferred where they can stay, else the newest allowed.

    A distribution whose metadata can only be had by building it, and that cannot be built here, is left out and kept
    at its version; ``kept`` names, with the reason, those of which that is known from before.

    Raises Unsolvable with uv's explanation where there is no solution, `IndexDown` where an index does not answer, and
    InputError where uv cannot work.
    """
    kept = dict(kept or {})
    while True:
        with _folder() as folder:
            output = _write(folder, "requirements.txt", _preferences(wanted, demands))
            command = [*_compile(folder, wanted, demands, place, kept), "-o", output, "--annotate"]
            command += ["--annotation-style", "line", "--no-generate-hashes"]
            done = _uv.run(command, stdin=_requirements(wanted, demands, place))
            if done.status == 0:
                solution = _solution(_read(output))._replace(yanked=_yanked(done.stderr))
                return _add_kept(solution, wanted, demands, kept)
        name, reason = unbuildable(done.stderr)
        if name is None or name in kept:
            raise failure(done, wanted, demands, place)
        kept[name] = reason


def around(name: str, version: str, place: Place) -> tuple[str, ...]:
    """The versions next below and above this one that are on the index and can be installed there."""
    found = []
    above = f">={version}.post0" if ".post" not in version else f">{version}"
    for specifier, strategy in ((f"<{version}", "highest"), (above, "lowest")):
        wanted = Wanted((Line(name, name, name + specifier),), {})
        with contextlib.suppress(CompatcheckError), _folder() as folder:
            output = os.path.join(folder, "requirements.txt")
            command = [*_compile(folder, wanted, Demands(), place, ()), "--no-deps", "--resolution", strategy]
            command += ["-o", output, "--no-annotate"]
            done = _uv.run(command, stdin=_requirements(wanted, Demands(), place))
            found += list(_solution(_read(output)).versions.values()) if done.status == 0 else []
    return tuple(found)


def lock(
    wanted: Wanted,
    solution: Solution,
    demands: Demands,
    place: Place,
    format: Literal["requirements.txt", "pylock.toml"],
) -> str:
    """The solution with its hashes, in uv's own words; no credential is in it, and where one was, `OMITTED` says so.

    Raises what `resolve` does.
    """
    exact = {
        name: f"=={version}" if "+" in version else f"==={version}"
        for name, version in solution.versions.items()
        if name not in solution.kept
    }
    held = demands._replace(specifiers=exact)
    with _folder() as folder:
        output = os.path.join(folder, format)
        command = [*_compile(folder, wanted, held, place, solution.kept), "-o", output, "--format", format]
        command += ["--no-annotate", "--generate-hashes"]
        done = _uv.run(command, stdin=_requirements(wanted, held, place))
        if done.status:
            raise failure(done, wanted, held, place)
        text = _read(output)
        bare = without_credentials(text)
        return bare if bare == text else f"{OMITTED}\n{bare}"


def _compile(folder: str, wanted: Wanted, demands: Demands, place: Place, left_out: Iterable[str]) -> list[str]:
    """The command, but for its output. The requirements come by standard input: a secret in them touches no disk."""
    asked = _asked_names(wanted)
    limits = (name + specifier for name, specifier in demands.specifiers.items() if specifier and name not in asked)
    files = [_write(folder, "constraints.txt", (*wanted.constraints, *limits)), *_own_files("UV_CONSTRAINT")]
    command = ["pip", "compile", "-", *_OWN_STYLE, "--python", place.interpreter]
    command += [part for file in files for part in ("--constraints", file)]
    if not place.builds:
        command += [part for name in sorted(local_names(wanted)) for part in ("--only-binary", name)]
    absent = [f"{name} ; python_version < '0'" for name in left_out]
    if absent:
        files = [_write(folder, "overrides.txt", absent), *_own_files("UV_OVERRIDE")]
        command += [part for file in files for part in ("--overrides", file)]
    if place.python_version:
        command += ["--python-version", place.python_version]
    if place.platform:
        command += ["--python-platform", place.platform]
    if demands.torch_backend:
        command += ["--torch-backend", demands.torch_backend]
    if any(line.asked == "--pre" for line in wanted.lines):
        command += ["--prerelease", "allow"]
    return command + (["--offline"] if place.offline else [])


def _own_files(variable: str) -> list[str]:
    """The files a variable of uv names, which an option of ours would else replace."""
    return os.environ.get(variable, "").split()


def _requirements(wanted: Wanted, demands: Demands, place: Place) -> str:
    """The user's requirements, and those distributions that a demand without a specifier is to bring.

    What is demanded of a distribution that the user names is a requirement too, so that uv names it as one. A local
    project or archive that does not state its name is left out where nothing may be built: only its build tells it.
    """
    told = [line for line in wanted.lines if place.builds or line.name or not (line.folder or is_archive(line))]
    lines = [line.asked for line in told if line.asked is not None]
    asked = _asked_names(wanted)
    lines += [name + limit for name, limit in demands.specifiers.items() if not limit or name in asked]
    return _uv.joined(lines)


def _asked_names(wanted: Wanted) -> set[str]:
    return {line.name for line in wanted.lines if line.name and line.asked is not None and line.kept is None}


def _yanked(stderr: str) -> dict[str, str]:
    """The reason of each distribution whose version its makers took back, by name."""
    return {normalised(name): reason for name, _, reason in _YANKED.findall(stderr)}


def _preferences(wanted: Wanted, demands: Demands) -> Iterator[str]:
    """The versions to stay with where no demand rules them out, as an output of before.

    Each is stated as its release too: the build with that label may be on none of the indexes.
    """
    for name, version in wanted.preferred.items():
        if version_of(version) is None or not _allows(demands.specifiers.get(name, ""), version):
            continue
        release, _, label = version.partition("+")
        if demands.torch_backend and (label or name.startswith("torch")):
            label = demands.torch_backend
        yield from (f"{name}=={release}+{label}",) if label else ()
        yield f"{name}=={release}"


def _allows(specifier: str, version: str) -> bool:
    from packaging.specifiers import SpecifierSet

    return SpecifierSet(specifier).contains(version, prereleases=True)


def _solution(text: str) -> Solution:
    versions: dict[str, str] = {}
    parents: dict[str, tuple[str, ...]] = {}
    unversioned = []
    for line in filter(None, text.splitlines()):
        match = _PINNED.match(line)
        if match is None:
            unversioned.append(redacted(line.partition("  # via")[0].strip()))
            continue
        name = normalised(match[1])
        versions[name] = match[2]
        via = map(_NAMED.match, (match[3] or "").split(", "))
        parents[name] = tuple(normalised(parent[1]) for parent in via if parent)
    return Solution(versions, parents, tuple(unversioned))


def _add_kept(solution: Solution, wanted: Wanted, demands: Demands, kept: Mapping[str, str]) -> Solution:
    """The solution with what was left out of it. Raises Unsolvable where a demand rules out every version known."""
    versions = dict(solution.versions)
    for name, reason in kept.items():
        specifier, version = demands.specifiers.get(name, ""), wanted.preferred.get(name, "")
        if version_of(version) is None or not _allows(specifier, version):
            version = edge(specifier) or ""
        if specifier and not version:
            raise Unsolvable(
                "resolving", name + specifier, reason, "choose a version of the package that can be installed here"
            )
        if version:
            versions[name] = version
    return solution._replace(versions=versions, kept=dict(kept))


@contextlib.contextmanager
def _folder() -> Iterator[str]:
    """A private folder for what uv reads and writes."""
    opening = contextlib.ExitStack()
    try:
        path = opening.enter_context(leftovers.temporary_folder("compatcheck-pin-"))
    except OSError as error:
        raise _unwritable(tempfile.gettempdir(), error) from None
    with opening:
        yield path


def _write(folder: str, name: str, lines: Iterable[str]) -> str:
    path = os.path.join(folder, name)
    text = _uv.joined(lines)
    try:
        with open(path, "w", encoding="utf-8", opener=lambda path, flags: os.open(path, flags, 0o600)) as stream:
            stream.write(text)
    except OSError as error:
        raise _unwritable(path, error) from None
    return path


def _unwritable(path: str, error: OSError) -> InputError:
    return InputError(
        "writing", path, error.strerror or str(error), "free some space there, or set TMPDIR to another folder"
    )


def _read(path: str) -> str:
    with open(path, encoding="utf-8") as stream:
        return stream.read()
