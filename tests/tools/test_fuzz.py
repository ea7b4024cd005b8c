"""Fuzzing: every reader of the package is in a target, and the inputs that found faults find none."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import NamedTuple

import pytest

from tests.conftest import ROOT
from tools.fuzz import seeds
from tools.fuzz.case import packed, unpacked
from tools.fuzz.engine import Fault, bounded, fault_of, unguided
from tools.fuzz.targets import TARGETS, FuzzTarget

PACKAGE = ROOT / "compatcheck"
READS = ("open_bytes", "open_text", "read_text", "read_bytes", "marked_text", "start_of", "parse_json", "json_object")
READS += ("read_json_object", "parse_toml", "parse_code", "json.loads", "json.load", "yaml.compose", "struct.unpack")
READS += ("ast.parse", "tomlkit.parse", "zlib.decompressobj", "zipfile.ZipFile", "gzip.open", "os.read")
UNITS = ("project/requirements/formats", "project/training/formats", "bug_report/formats", "symptoms/formats")
UNITS += ("project/scripts/settings", "project/scripts/rules", "project/model_files/file_traits")
NO_INPUT = {
    "packages/shipped_tables.py": "tables of ours",
    "files/keyed_rows.py": "tables of ours",
    "matrix/loading.py:read_source_table": "tables of a checkout",
    "matrix/loading.py:_read_json": "a compiled matrix of ours, as `stored_matrices` reads another",
    "language/": "catalogues of ours",
    "report/pages/": "parts of pages, which are ours",
    "matrix/loading.py:_load_sources": "a checkout",
    "import_check/_process.py": "the lines of a child that is ours",
    "files/_remover.py": "the lines of the process that started it",
    "installed/_interpreter.py:_read": "a pipe; `interpreter_answers` reads what came",
    "integrations/": "the memory of the process it lives in",
    "probes/": "sources of probes, and the target's process; `probe_events` reads what that says",
    "cluster/": "live sockets; `messages` reads what comes in",
    "verbs/": "options",
    "advice/": "answers of uv, in a folder of ours; `uv_answers` reads them",
    "pipelines/update.py": "the root file that is named for an update",
    "pipelines/fix.py:_read": "a file that a reader has read",
    "report/excerpt.py:_line": "a file that a reader has read",
    "pipelines/compare/": "snapshots and requirements, by their own readers",
    "project/model_files/_download.py:_headers": "the user's own token",
    "project/model_files/_hub.py:_commit": "a name of 64 characters at most in the cache of the Hub",
    "matrix/lint/": "a checkout",
    "matrix/compile.py": "a checkout",
    "matrix/_source_cache.py": "a cache of ours",
    "installed/trust.py": "a note of ours",
}
"""Functions that read and are in no target, and why."""


class Run(NamedTuple):
    """What the seeds of all targets came to: the functions of the package they call, and the faults."""

    called: set[tuple[str, str]]
    faults: dict[str, list[Fault]]


@pytest.fixture(scope="module")
def run() -> Run:
    codes: set[tuple[str, str]] = set()  # not the code: functions of two files may be equal

    def note(frame: FrameType, event: str, argument: object) -> None:
        if event == "call":
            codes.add((frame.f_code.co_filename, frame.f_code.co_name))

    def look(name: str, data: bytes) -> Fault | None:
        sys.setprofile(note)  # Python drops a profiler in which a RecursionError is raised
        try:
            return fault_of(name, data)
        finally:
            sys.setprofile(None)

    with bounded():
        found = {name: [look(name, data) for data in seeds.of(name)] for name in TARGETS}
    root = f"{PACKAGE}/"
    called = {(file.removeprefix(root), name) for file, name in codes if file.startswith(root)}
    return Run(called, {name: [fault for fault in faults if fault] for name, faults in found.items()})


def readers() -> Iterator[tuple[str, str]]:
    """Each function of the package that opens or parses something, by file and name."""
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) and any(map(_reads, ast.walk(node))):
                yield str(path.relative_to(PACKAGE)), node.name


def _reads(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call):
        return False
    return ast.unparse(node.func) in READS


def test_every_reader_is_in_a_target(run: Run) -> None:
    missed = [f"{file}:{name}" for file, name in readers() if (file, name) not in run.called]
    assert [each for each in missed if not each.startswith(tuple(NO_INPUT))] == []


@pytest.mark.parametrize("folder", UNITS)
def test_every_format_and_rule_has_a_seed(folder: str, run: Run) -> None:
    files = {f"{folder}/{path.name}" for path in (PACKAGE / folder).glob("[!_]*.py")}
    seen = {file for file, name in run.called if name in ("read", "find", "finds")}
    assert files - seen == set()


def test_every_target_has_seeds_and_says_what_it_reads() -> None:
    assert set(seeds.listed()) == set(TARGETS)
    assert all(one.run.__doc__ for one in TARGETS.values())


@pytest.mark.parametrize("name", TARGETS)
def test_seeds_and_what_once_found_a_fault_find_none(name: str, run: Run) -> None:
    assert run.faults[name] == []


@pytest.mark.parametrize("name", TARGETS)
def test_a_few_damaged_inputs_find_no_fault(name: str, tmp_path: Path) -> None:
    ran = unguided(name, str(tmp_path), inputs=15, seconds=2, seed=len(name), with_seeds=False)
    assert ran.faults == (), [fault.told for fault in ran.faults]


def test_names_of_files_stay_in_the_folder() -> None:
    files = {"a/b.txt": b"x\ny", "c": b"\n"}
    assert dict(unpacked(packed(files))) == files
    assert not list(unpacked(packed({"../a": b"", "/b": b"", "a/../../c": b""})))


def test_a_fault_is_kept_once_made_small_with_its_traceback(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def breaks(content: bytes, names: list[str]) -> None:
        if b"bad" in content:
            raise KeyError(content[:10])

    monkeypatch.setitem(TARGETS, "breaks", FuzzTarget(breaks, packed=False, largest=100))
    monkeypatch.setattr(seeds, "of", lambda target: [b"one\nthis is bad\ntwo\n", b"bad too", b"good"])
    ran = unguided("breaks", str(tmp_path), inputs=3, seconds=5, seed=1)
    assert [fault.kind for fault in ran.faults] == ["KeyError"]
    assert [path.read_bytes() for path in tmp_path.glob("*.input")] == [b"bad"]
    assert "KeyError" in next(tmp_path.glob("*.txt")).read_text(encoding="utf-8")


def test_an_input_that_waits_or_works_too_long_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    def waits(content: bytes, names: list[str]) -> None:
        open(names[0], "rb").close()

    def works(content: bytes, names: list[str]) -> None:
        while True:
            pass

    monkeypatch.setattr("tools.fuzz.engine.SECONDS", 0.2)
    monkeypatch.setattr("tools.fuzz.engine._WAIT", 0.3)
    with bounded():
        for run, data in ((waits, packed({"pipe": b"<fifo>"})), (works, b"")):
            monkeypatch.setitem(TARGETS, "slow", FuzzTarget(run, packed=True, largest=100))
            fault = fault_of("slow", data)
            assert fault is not None and fault.kind == "TooLong"
