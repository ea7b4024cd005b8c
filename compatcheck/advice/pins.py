"""Pins from a real resolver: ``uv pip compile`` with what the matrix demands as constraints."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from compatcheck._requirement import edge, normalised
from compatcheck.errors import CompatcheckError, InputError
from compatcheck.model import Finding, Target

_PINNED = re.compile(r"^([A-Za-z0-9._-]+)(\[[^\]]*\])?\s*===?\s*([^\s;,*]+)\s*(;.*)?$")
_OWN_FILES = re.compile(r"`?[^\s`]*compatcheck-pin-\w+[/\\]requirements\.\w+`?")
_COMMENT = re.compile(r"(^|\s)#.*$")
_RESOLVED = re.compile(r"^([a-z0-9._-]+)(?:\[[^\]]*\])?==([^\s;\\]+)")


_TOOLS = {"pip", "wheel", "uv", "compatcheck"}
"""What manages an environment is no part of what trains in it."""


class Wanted(NamedTuple):
    """What the user asks for: ranges and names as they stand, and the exact versions to stay with where possible."""

    lines: tuple[str, ...]
    preferred: Mapping[str, str]
    whole: bool = False
    """Whether the preferred versions are all there is, so that any other line of a solution is new."""


class Move(NamedTuple):
    """A demand on one distribution, and the entry that makes it."""

    name: str
    specifier: str
    entry: str


class Unsolvable(CompatcheckError):
    """The resolver found no set of versions; exit status 1, as the environment stays at fault."""

    exit_status = 1


def read_wanted(paths: Sequence[str]) -> Wanted:
    """Requirements files as wishes. An exact pin is a preference: it may move if an entry demands it, a range may not.
    A name that is pinned more than once, as markers do, stays as it stands.

    Raises InputError for a file that cannot be read.
    """
    lines = [line for path in paths for line in _requirement_lines(path)]
    pins = [(line, match) for line, match in ((line, _PINNED.match(line)) for line in lines) if match]
    counted = Counter(normalised(match[1]) for _, match in pins)
    movable = {line: match for line, match in pins if counted[normalised(match[1])] == 1}
    kept = tuple(_without_version(movable[line]) if line in movable else line for line in lines)
    return Wanted(kept, {normalised(match[1]): match[3] for match in movable.values()})


def _requirement_lines(path: str) -> list[str]:
    joined = _read(path).replace("\\\n", " ").splitlines()
    texts = (_COMMENT.sub("", line).split(" --hash", 1)[0].strip() for line in joined)
    return [_absolute(text, path) for text in texts if text]


def _without_version(match: re.Match[str]) -> str:
    return " ".join(filter(None, (match[1] + (match[2] or ""), match[4])))


def installed_wanted(top_level: Iterable[str], distributions: Mapping[str, str]) -> Wanted:
    """What is installed as wishes: the distributions that nothing else asked for, at the versions they have."""
    return Wanted(tuple(sorted(set(top_level) - _TOOLS)), distributions, whole=True)


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8-sig") as stream:
            return stream.read()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError("reading requirements", path, str(error), "name a UTF-8 requirements file") from None


def _absolute(text: str, path: str) -> str:
    """Includes are relative to the file that names them; the resolver reads our copy elsewhere."""
    match = re.match(r"^(-r|-c|--requirement|--constraint|-e|--editable)[ =]+(.+)$", text)
    if match is None or re.match(r"[a-z+]+://", match[2]):
        return text
    return f"{match[1]} {os.path.join(os.path.dirname(os.path.abspath(path)), match[2])}"


def resolve(wanted: Wanted, moves: Iterable[Move], target: Target, *, offline: bool = False) -> str:
    """The resolver's requirements text; of the versions a move allows, the very one it names is taken where it can be.

    Raises Unsolvable with the resolver's explanation where there is no solution, InputError where it could not work.
    """
    moves = tuple(moves)
    edges = {move.name: version for move in moves if (version := edge(move.specifier))}
    preferred = {**wanted.preferred, **edges}
    with tempfile.TemporaryDirectory(prefix="compatcheck-pin-") as folder:
        solution = os.path.join(folder, "requirements.txt")
        _lines(solution, (f"{name}=={version.partition('+')[0]}" for name, version in preferred.items() if version))
        requirements = _lines(os.path.join(folder, "requirements.in"), wanted.lines)
        constraints = _lines(os.path.join(folder, "constraints.txt"), (m.name + m.specifier for m in moves))
        command = [_uv(), "pip", "compile", requirements, "--constraints", constraints, "-o", solution]
        command += ["--python", target.executable, "--no-header", "--no-annotate", "--quiet"]
        environ = {**os.environ, "UV_PYTHON_DOWNLOADS": "never"}
        done = subprocess.run(
            command + (["--offline"] if offline else []), env=environ, capture_output=True, text=True, encoding="utf-8"
        )
        if done.returncode:
            raise _failure(done.returncode, done.stderr)
        return _read(solution)


def _failure(status: int, stderr: str) -> CompatcheckError:
    """uv ends with 1 where there is no solution, and with another status where it could not look for one."""
    seen = " ".join(_OWN_FILES.sub("the requirements", stderr).split()).removeprefix("\u00d7 ").removeprefix("error: ")
    if status == 1:
        return Unsolvable("resolving", "the requirements", seen, "loosen one of the requirements named")
    return InputError("resolving the requirements with", "uv", seen, "mend what uv names, and run it again")


def _lines(path: str, lines: Iterable[str]) -> str:
    with open(path, "w", encoding="utf-8") as stream:
        stream.writelines(line + "\n" for line in lines)
    return path


def _uv() -> str:
    from uv import find_uv_bin

    return find_uv_bin()


def resolved_versions(text: str) -> dict[str, str]:
    matches = (_RESOLVED.match(line) for line in text.splitlines())
    return {normalised(match[1]): match[2] for match in matches if match}


def demands(finding: Finding) -> list[tuple[Move, ...]]:
    """The ways to clear a finding by versions alone, in the order to try them."""
    return [
        tuple(Move(name, specifier, finding.id) for name, specifier in remedy.pins.items())
        for remedy in finding.remedies
        if remedy.pins
    ]


def lost_labels(text: str, wanted: Wanted) -> dict[str, str]:
    """The builds (``torch``: ``cu118``) that were wanted by a label and that pins, which name releases, leave open."""
    resolved = resolved_versions(text)
    labels = {name: version.partition("+")[2] for name, version in wanted.preferred.items()}
    return {name: label for name, label in labels.items() if label and "+" not in resolved.get(name, "+")}


def annotate(text: str, wanted: Wanted, moves: Sequence[Move]) -> str:
    """Say on every line that differs from what was wanted which entry moved it, or that it moved along."""
    entries = {move.name: move.entry for move in moves}
    return "".join(_annotated(line, wanted, entries) + "\n" for line in text.splitlines())


def _annotated(line: str, wanted: Wanted, entries: Mapping[str, str]) -> str:
    match = _RESOLVED.match(line)
    name = normalised(match[1]) if match else ""
    before = wanted.preferred.get(name)
    if match is None or (before is None and not wanted.whole) or _release(before) == _release(match[2]):
        return line
    cause = entries.get(name) or ("with " + ", ".join(sorted(set(entries.values()))) if entries else "the requirements")
    return f"{line}  # compatcheck: {cause}, {'new' if before is None else f'was {before}'}"


def _release(version: str | None) -> str | None:
    return version and version.partition("+")[0]
