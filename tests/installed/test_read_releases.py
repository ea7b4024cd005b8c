"""Installed releases that the interface tables lack: what their files answer to what others ask."""

from __future__ import annotations

from pathlib import Path

import pytest
from packaging.version import Version

from compatcheck import matrix
from compatcheck.installed.read_releases import ReadReleases, with_read_releases
from compatcheck.interfaces.history import Table
from compatcheck.interfaces.links import broken_links
from tests.import_check.conftest import install, target_of

INT8, KBIT, STATE = "prepare_model_for_int8_training", "prepare_model_for_kbit_training", "set_peft_model_state_dict"
WHOLE = {
    "peft/__init__.py": f"from .utils import {INT8}, {KBIT}\n",
    "peft/utils/__init__.py": "from .other import *\n",
    "peft/utils/other.py": f"def {INT8}(model): ...\ndef {KBIT}(model): ...\n",
    "peft/peft_model.py": f"from .utils.save_and_load import {STATE}\n",
    "peft/utils/save_and_load.py": f"def {STATE}(model, state): ...\n",
}


@pytest.fixture(scope="module")
def table() -> Table:
    return matrix.load(str(Path(__file__).parents[2] / "matrix")).table


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


def broken(read: ReadReleases, **releases: str) -> list[str]:
    versions = {name: Version(text) for name, text in releases.items()}
    return [link.name for link in broken_links(read.table, versions) if link.provider == "peft"]


def test_name_that_a_newer_release_dropped_breaks_the_link(site: Path, table: Table) -> None:
    install(site, "trl", "0.7.2", {})
    install(site, "peft", "99.0", {**WHOLE, "peft/__init__.py": f"from .utils import {INT8}\n"})
    read = with_read_releases(table, target_of(site))
    assert broken(ReadReleases(table), trl="0.7.2", peft="99.0") == []
    assert broken(read, trl="0.7.2", peft="99.0") == [KBIT]
    (link,) = broken_links(read.table, {"trl": Version("0.7.2"), "peft": Version("99.0")})
    assert "<99" in link.accepts[0]


def test_name_that_a_newer_release_has_again_is_found(site: Path, table: Table) -> None:
    install(site, "trl", "0.7.1", {})
    install(site, "peft", "99.0", WHOLE)
    read = with_read_releases(table, target_of(site))
    assert broken(ReadReleases(table), trl="0.7.1", peft="99.0") == [INT8]
    assert broken(read, trl="0.7.1", peft="99.0") == []


def test_release_that_the_tables_know_is_not_read(site: Path, table: Table) -> None:
    install(site, "trl", "0.7.1", {})
    install(site, "peft", "0.14.0", WHOLE)
    read = with_read_releases(table, target_of(site), pytest.fail)
    assert read.table is table and read.unread == {}


def test_another_environment_with_the_same_files_reads_nothing(tmp_path: Path, table: Table) -> None:
    modules: list[str] = []
    for name in ("one", "two"):
        install(tmp_path / name, "trl", "0.7.1", {})
        install(tmp_path / name, "peft", "99.0", WHOLE)
    first = with_read_releases(table, target_of(tmp_path / "one"), modules.append)
    assert "peft.utils.other" in modules
    second = with_read_releases(table, target_of(tmp_path / "two"), pytest.fail)
    assert broken(second, trl="0.7.1", peft="99.0") == broken(first, trl="0.7.1", peft="99.0") == []
    record = tmp_path / "two" / "peft-99.0.dist-info" / "RECORD"
    record.write_text(record.read_text(encoding="utf-8").replace(",,", ",sha256=0,1"), encoding="utf-8")
    modules.clear()
    with_read_releases(table, target_of(tmp_path / "two"), modules.append)
    assert "peft" in modules


def test_broken_note_is_read_anew(site: Path, cache: Path, table: Table) -> None:
    install(site, "trl", "0.7.1", {})
    install(site, "peft", "99.0", WHOLE)
    with_read_releases(table, target_of(site))
    (note,) = (cache / "compatcheck" / "interfaces").iterdir()
    for text in ("[[1", "{}", '[["import"]]', "7", "[" * 5000):
        note.write_text(text, encoding="utf-8")
        assert broken(with_read_releases(table, target_of(site)), trl="0.7.1", peft="99.0") == []


def test_release_without_a_record_is_unread_with_the_reason(site: Path, table: Table) -> None:
    install(site, "trl", "0.7.1", {})
    install(site, "peft", "99.0", WHOLE)
    (site / "peft-99.0.dist-info" / "RECORD").unlink()
    read = with_read_releases(table, target_of(site))
    assert read.table is table and "RECORD" in read.unread["peft"]


@pytest.mark.parametrize("text", ["def (:\n", "x = " + "(" * 9000, "y = 1\n" * 900_000, f"globals()['{KBIT}'] = 1\n"])
def test_nothing_is_claimed_of_a_file_that_may_hold_anything(site: Path, table: Table, text: str) -> None:
    install(site, "trl", "0.7.2", {})
    install(site, "peft", "99.0", {**WHOLE, "peft/__init__.py": text})
    assert broken(with_read_releases(table, target_of(site)), trl="0.7.2", peft="99.0") == []


def test_file_outside_of_the_environment_is_not_read(site: Path, tmp_path: Path, table: Table) -> None:
    (tmp_path / "elsewhere.py").write_text("raise SystemExit\n", encoding="utf-8")
    install(site, "trl", "0.7.2", {})
    install(site, "peft", "99.0", {"peft/__init__.py": "from ..elsewhere import *\n"})
    record = site / "peft-99.0.dist-info" / "RECORD"
    record.write_text(f"{record.read_text(encoding='utf-8')}../elsewhere.py,,\n{tmp_path}/elsewhere.py,,\n")
    modules: list[str] = []
    with_read_releases(table, target_of(site), modules.append)
    assert modules == ["peft"]


@pytest.mark.parametrize(("more", "lost"), [("", True), (f"def {KBIT}(): ...\n", False), (f"N = ['{KBIT}']\n", False)])
def test_of_a_package_of_very_many_modules_the_texts_decide(site: Path, table: Table, more: str, lost: bool) -> None:
    parts = {f"peft/part{number}.py": f"class Part{number}: ...\n" for number in range(50)}
    top = "".join(f"from .part{number} import *\n" for number in range(50))
    install(site, "trl", "0.7.2", {})
    files = {**parts, "peft/__init__.py": top, "peft/part7.py": more, "peft/peft_model.py": f"{STATE} = 1\n"}
    install(site, "peft", "99.0", files)
    modules: list[str] = []
    read = with_read_releases(table, target_of(site), modules.append)
    assert broken(read, trl="0.7.2", peft="99.0") == ([KBIT] if lost else [])
    assert len(modules) < 5
