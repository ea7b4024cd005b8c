"""The compiled index leaves out only what cannot matter, and a damaged one is told."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compatcheck import matrix
from compatcheck.environment import Environment
from compatcheck.environment.snapshot import read_snapshot
from compatcheck.errors import DataError
from compatcheck.matrix import loading
from compatcheck.matrix.compile import read_entries, write_compiled
from tests.conftest import SOURCES

MACHINES = sorted((SOURCES.parent / "tests" / "machines").glob("*.json"))
ENTRIES = list(read_entries(SOURCES).values())
EXAMPLES = [case.environment for entry in ENTRIES for case in entry.cases]
AROUND = [
    *("{}", "{}.0", "{}a0", "{}rc1", "{}.dev3", "{}.post1", "{}.post1.dev2", "1!{}"),
    *("{}+cu118", "{}+nv1", "{}a0+872d972e41.nv24.08"),
]


def versions() -> dict[str, list[str | None]]:
    """By distribution: every bound the matrix names and what lies closest to it, far ends, junk, and absence."""
    found: dict[str, list[str | None]] = {}
    for path, condition in (pair for entry in ENTRIES for table in entry.affected for pair in table.items()):
        if path.startswith("distributions."):
            bounds = re.findall(r"\d[^\s,]*", condition)
            near = [shape.format(bound) for bound in bounds for shape in AROUND]
            found.setdefault(path[14:], ["0.0.1", "999.0", "junk", "1.0.git", None]).extend(near)
    return found


installed = st.fixed_dictionaries({}, optional={name: st.sampled_from(near) for name, near in versions().items()})


@st.composite
def environments(draw: st.DrawFn) -> Environment:
    """The settings of one entry's example and the versions of nobody in particular."""
    stated = dict(draw(st.sampled_from(EXAMPLES)))
    own = stated.pop("distributions", {}) if draw(st.booleans()) else {}
    if draw(st.sampled_from([True, True, True, False])):
        stated["distributions"] = {**own, **draw(installed)}
    return Environment({**stated, "distributions_complete": draw(st.booleans())})


@pytest.fixture(scope="module")
def unindexed(known: matrix.Matrix) -> matrix.Matrix:
    """The same matrix, of which every entry is read and judged."""
    places = [place for rows in known.guards.values() for row in rows for place in row[2:]] + known.unguarded
    everything = known._replace(
        guards={}, of_model=(), unguarded=[list(place) for place in sorted(set(map(tuple, places)))]
    )
    assert len(everything.unguarded) == len(ENTRIES)
    return everything


@settings(max_examples=100, deadline=None)
@given(environment=environments())
def test_the_index_leaves_out_only_what_does_not_speak(
    known: matrix.Matrix, unindexed: matrix.Matrix, environment: Environment
) -> None:
    assert matrix.judge(known, environment).findings == matrix.judge(unindexed, environment).findings


@pytest.fixture(scope="module")
def compiled_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("compiled")
    write_compiled(SOURCES, folder)
    return folder


@pytest.fixture
def compiled(compiled_once: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a compiled matrix that a test may damage, in the place of the wheel's own."""
    shutil.copytree(compiled_once, tmp_path, dirs_exist_ok=True)
    monkeypatch.setattr(loading, "_COMPILED", str(tmp_path))
    return tmp_path


def test_the_compiled_form_says_what_the_sources_say(known: matrix.Matrix, compiled: Path) -> None:
    loaded = matrix.load()
    assert loaded[:6] == known[:6]
    assert matrix.all_entries(loaded) == matrix.all_entries(known)
    for machine in MACHINES:
        environment = read_snapshot(str(machine))
        assert matrix.infer(loaded, environment) == matrix.infer(known, environment)
        assert matrix.judge(loaded, environment).findings == matrix.judge(known, environment).findings


def test_compiling_twice_gives_the_same_bytes(compiled: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    again = tmp_path_factory.mktemp("again")
    write_compiled(SOURCES, again)
    files = [path.relative_to(again) for path in again.rglob("*") if path.is_file()]
    assert {str(name): (again / name).read_bytes() for name in files} == {
        str(name): (compiled / name).read_bytes() for name in files
    }


def index_with(compiled: Path, **changed: Any) -> str:
    return json.dumps({**json.loads((compiled / "index.json").read_text(encoding="utf-8")), **changed})


@pytest.mark.parametrize("cut", [0, 1, 100, -1], ids="cut at {}".format)
def test_an_index_cut_short_is_told(compiled: Path, cut: int) -> None:
    index = compiled / "index.json"
    index.write_bytes(index.read_bytes()[:cut])
    with pytest.raises(DataError, match=re.escape(str(index))):
        matrix.load()


@pytest.mark.parametrize("text", ["[]", "null", "{}", '{"format": 1}', '{"entries": 3}'])
def test_an_index_of_another_shape_is_told(compiled: Path, text: str) -> None:
    (compiled / "index.json").write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=re.escape(str(compiled / "index.json"))):
        matrix.load()


@pytest.mark.parametrize("number", [0, loading.FORMAT + 1, None, "1"])
def test_another_form_is_told(compiled: Path, number: object) -> None:
    (compiled / "index.json").write_text(index_with(compiled, format=number), encoding="utf-8")
    with pytest.raises(DataError, match=f"{re.escape(str(compiled))}.*format"):
        matrix.load()


def test_missing_entries_are_told(compiled: Path) -> None:
    (compiled / "entries.jsonl").unlink()
    with pytest.raises(DataError, match="entries.jsonl"):
        matrix.all_entries(matrix.load())


def test_entries_cut_short_are_told(compiled: Path) -> None:
    lines = compiled / "entries.jsonl"
    lines.write_bytes(lines.read_bytes()[:1000])
    with pytest.raises(DataError, match="entries.jsonl"):
        matrix.all_entries(matrix.load())


def test_a_missing_table_is_told(compiled: Path) -> None:
    (compiled / "tables" / "gpu-compute-capability.json").unlink()
    with pytest.raises(DataError, match="gpu-compute-capability.json"):
        matrix.infer(matrix.load(), Environment({"gpus": [{"name": "NVIDIA A100"}]}))
