"""What a change of the matrix changes for environments: which entries say something else of which of them."""

from __future__ import annotations

import os
import subprocess
import tarfile
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import BytesIO
from typing import Any, NamedTuple

from compatcheck import matrix
from compatcheck.environment import Environment
from compatcheck.environment.snapshot import load_snapshot, read_snapshot
from compatcheck.errors import InputError
from compatcheck.results.findings import STATUSES, Finding
from tools.matrix.values import Comparison, VerdictChange

KNOWN_GOOD = "environments"
"""The folder of a matrix that holds recorded environments of well-run projects."""

_SUFFIXES = (".json", ".jsonl")


class Recorded(NamedTuple):
    """An environment somebody works in, by its own name, with where it is from.

    ``proven`` are entries that are true of it, as a real install showed, each with what was run and what it said.
    """

    name: str
    source: str
    environment: Environment
    proven: Mapping[str, str] = {}


def compare(old: matrix.Matrix, new: matrix.Matrix, environments: Iterable[Recorded]) -> Comparison:
    """Every verdict that differs, in the order of the environments and of the ids."""
    recorded = list(environments)
    sides = [{entry["id"]: entry for entry in side.read(None)} for side in (old, new)]
    return Comparison(
        (old.revision, new.revision),
        (old.entries, new.entries),
        tuple(sorted(sides[1].keys() - sides[0].keys())),
        tuple(sorted(sides[0].keys() - sides[1].keys())),
        tuple(sorted(each for each in sides[0].keys() & sides[1].keys() if sides[0][each] != sides[1][each])),
        len(recorded),
        tuple(change for each in recorded for change in _changes(old, new, each)),
    )


def _changes(old: matrix.Matrix, new: matrix.Matrix, recorded: Recorded) -> Iterator[VerdictChange]:
    before, after = (_worst(_findings(side, recorded.environment)) for side in (old, new))
    for entry in sorted(before.keys() | after.keys()):
        was, becomes = before.get(entry), after.get(entry)
        if (was and was.status) != (becomes and becomes.status):
            title = (becomes or was or before[entry]).title
            statuses = (was.status if was else None, becomes.status if becomes else None)
            yield VerdictChange(recorded.name, recorded.source, entry, title, *statuses, entry in recorded.proven)


def _findings(known: matrix.Matrix, environment: Environment) -> Sequence[Finding]:
    return matrix.judge(known, environment).findings


def _worst(findings: Iterable[Finding]) -> dict[str, Finding]:
    """One finding for each entry: of several places in one environment the worst."""
    ordered = sorted(findings, key=lambda finding: STATUSES.index(finding.status), reverse=True)
    return {finding.id: finding for finding in ordered}


def read_environments(paths: Sequence[str]) -> list[Recorded]:
    """The snapshots in files, or in the files of folders: one in a ``.json``, one a line in a ``.jsonl``.

    A snapshot may carry a ``name``, a ``source`` and ``proven`` findings of its own. Raises InputError where there is
    none.
    """
    files = [file for path in paths for file in _files(path)]
    recorded = [each for file in files for each in _read(file)]
    if not recorded:
        told = ", ".join(paths)
        raise InputError("reading environments in", told, "there is none", "record one with `compatcheck env`")
    return recorded


def _files(path: str) -> list[str]:
    if not os.path.isdir(path):
        return [path]
    found = (os.path.join(path, name) for name in sorted(os.listdir(path)))
    return [file for file in found if file.endswith(_SUFFIXES) and not file.endswith("sources.json")]


def _read(path: str) -> Iterator[Recorded]:
    if not path.endswith(".jsonl"):
        yield _recorded(read_snapshot(path), path)
        return
    try:
        with open(path, encoding="utf-8") as stream:
            lines = stream.read().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError("reading environments in", path, str(error), "give a file of snapshots") from None
    for number, line in enumerate(lines, 1):
        if line.strip():
            yield _recorded(load_snapshot(line, f"{path}, line {number}"), f"{path}:{number}")


def _recorded(environment: Environment, place: str) -> Recorded:
    about: Mapping[str, Any] = environment.facts
    source = about.get("source")
    sources = [source] if isinstance(source, str) else list(source or [place])
    return Recorded(str(about.get("name") or place), str(sources[0]), environment, about.get("proven") or {})


@contextmanager
def at_revision(folder: str, revision: str) -> Iterator[str]:
    """The matrix folder as a git revision has it, laid out apart. Raises InputError where git cannot give it."""
    doing = f"reading the matrix at {revision} in"
    command = ["git", "-C", folder, "archive", "--format=tar", revision, "."]
    try:
        done = subprocess.run(command, capture_output=True, check=False)
    except OSError as error:
        raise InputError(doing, folder, f"git cannot be run: {error}", "give two folders instead") from None
    if done.returncode:
        seen = done.stderr.decode(errors="replace").strip().splitlines() or ["git gives no reason"]
        raise InputError(doing, folder, seen[-1], "give a revision of this git repository, or two folders")
    with tempfile.TemporaryDirectory(prefix="compatcheck-base-") as base:
        with tarfile.open(fileobj=BytesIO(done.stdout)) as archive:
            for member in archive:
                content = archive.extractfile(member) if member.isfile() else None
                if content is not None:
                    place = os.path.join(base, member.name)
                    os.makedirs(os.path.dirname(place), exist_ok=True)
                    with open(place, "wb") as stream:
                        stream.write(content.read())
        yield base
