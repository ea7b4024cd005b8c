"""Bounds of entries against the sources of releases: the code is found by release, and deviations are named."""

from __future__ import annotations

import json
import zipfile
from itertools import groupby
from pathlib import Path

import pytest
from packaging.version import Version

from compatcheck import matrix
from tools import code_bounds
from tools.code_bounds import Code, deviations, part, releases_with, runs

GOOD = "class Trainer:\n    def step(self):\n        self.scaler.unscale_()\n\n    def log(self):\n        pass\n"
BAD = GOOD.replace("        self.scaler.unscale_()\n", "        pass\n")
CODE = Code(entry="CC-2024-0001", package="kit", file="kit/trainer.py", within="Trainer.step", lacks=[r"unscale_\("])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    texts = {"1.0": GOOD, "1.1": BAD, "1.1.1": BAD, "1.2": GOOD, "1.10": BAD}
    (tmp_path / "kit").mkdir()
    for version, text in texts.items():
        with zipfile.ZipFile(tmp_path / "kit" / f"{version}.zip", "w") as archive:
            archive.writestr("kit/trainer.py", text)
    with zipfile.ZipFile(tmp_path / "kit" / "0.9.zip", "w") as archive:
        archive.writestr("kit/__init__.py", "")
    return tmp_path


def with_code(folder: Path, code: Code = CODE) -> list[str]:
    found = releases_with([code], folder / "kit")[0]
    return list(runs(found, (version for version, has in found.items() if has)))


def test_the_releases_with_the_code_are_runs_in_the_order_of_versions(folder: Path) -> None:
    assert with_code(folder) == ["1.1 to 1.1.1", "1.10"]


def test_a_release_without_the_file_or_the_function_does_not_have_the_code(folder: Path) -> None:
    assert with_code(folder, CODE.model_copy(update={"file": "kit/other.py"})) == []
    assert with_code(folder, CODE.model_copy(update={"within": "Trainer.evaluate"})) == []


def test_of_several_files_the_first_that_a_release_has_counts(folder: Path) -> None:
    code = CODE.model_copy(update={"file": ["kit/loop.py", "kit/trainer.py"]})
    assert with_code(folder, code) == with_code(folder)


@pytest.mark.parametrize(
    ("bound", "said"),
    [
        (">=1.1,<1.2", ["1.10 have the code outside the range"]),
        (">=1.1", ["1.2 lack the code inside the range"]),
        (">=1.1.1,<1.2", ["1.1, 1.10 have the code outside the range"]),
    ],
)
def test_a_bound_that_the_sources_contradict_is_named(folder: Path, bound: str, said: list[str]) -> None:
    entry = {"affected": [{"distributions.kit": bound}, {"distributions.other": ">=2"}]}
    assert list(deviations(CODE, entry, releases_with([CODE], folder / "kit")[0])) == said


def test_releases_in_which_the_code_does_not_decide_are_left_out(folder: Path) -> None:
    code = CODE.model_copy(update={"elsewhere": {">=1.10": "another method does it"}})
    entry = {"affected": [{"distributions.kit": ">=1.1,<1.2"}]}
    assert not list(deviations(code, entry, releases_with([code], folder / "kit")[0]))


def test_a_method_is_read_without_the_rest_of_its_class() -> None:
    assert part(GOOD, "Trainer.log") == "def log(self):\n        pass"


def test_every_stated_code_belongs_to_an_entry_that_bounds_the_package() -> None:
    entries = {entry["id"]: entry for entry in matrix.load().read(None)}
    for code in code_bounds.read():
        tables = entries[code.entry]["affected"]
        assert any(f"distributions.{code.package}" in table for table in tables), code
        assert code.contains or code.lacks, code


def test_what_was_read_bears_the_bounds_out() -> None:
    known = matrix.load()
    records = json.loads(code_bounds.READ.read_text(encoding="utf-8"))
    entries = {entry["id"]: entry for entry in known.read(None)}
    stated = groupby(sorted(code_bounds.read(), key=_record), _record)
    for key, codes in stated:
        for code, row in zip(codes, records.get(key, ()), strict=True):
            entry = entries[code.entry]
            releases = [Version(each) for each in known.table("release-history")["releases"].get(code.package, ())]
            within = [interval.split(" to ") for interval in row["with the code"]]
            first, last = map(Version, (row["read"].split(" to ")[0], row["read"].split(" to ")[-1]))
            for version in releases:
                if first <= version <= last and not code.is_ignored(version):
                    has = any(Version(low[0]) <= version <= Version(low[-1]) for low in within)
                    expected = code_bounds.expected(code, entry, version)
                    assert has == expected, f"{code.entry}: {code.package} {version}"


def _record(code: Code) -> str:
    return f"{code.entry} {code.package}"
