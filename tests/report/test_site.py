"""The site as files: markup that holds, links that lead somewhere, nothing from elsewhere, nobody's folder lost."""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import sys
import zipfile
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from compatcheck import matrix
from compatcheck.errors import InputError
from compatcheck.report.pages.site import _folder
from compatcheck.report.pages.site._index import js_regex
from compatcheck.report.pages.site._record import record_page_part
from compatcheck.report.pages.site._release_bars import bar
from tests.conftest import ROOT, Wheel, run_command
from tests.report.page import HOSTILE, Page


@pytest.mark.slow
def test_every_page_is_well_formed_and_every_link_leads_somewhere(site: Path) -> None:
    paths = sorted(site.rglob("*.html"))
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in paths}
    known = matrix.load()
    assert len(pages) == len(matrix.all_entries(known)) + len(matrix.withdrawn_entries(known)) + 2
    for path, page in pages.items():
        assert len(set(page.ids)) == len(page.ids)
        assert page.handlers == []
        for address in (*page.links, *page.loads):
            if address.startswith("https://"):
                assert address in page.links
                continue
            name, _, part = address.partition("#")
            target = path if not name else (path.parent / unquote(name)).resolve()
            assert target.is_file() and target.is_relative_to(site), (path, address)
            assert not part or part in pages[target].ids


@pytest.mark.slow
def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    style, script = ((site / name).read_text(encoding="utf-8") for name in ("style.css", "script.js"))
    assert not re.search(r"url\(|@import", style)
    assert not re.search(r"https?://|fetch\(|XMLHttpRequest|import\(|innerHTML|eval\(", script)


@pytest.mark.slow
def test_pages_stay_light(site: Path) -> None:
    index = (site / "index.html").read_bytes()
    entries = len(list((site / "entries").glob("CC-*.html")))
    assert len(index) < 700 * entries and len(gzip.compress(index)) < 140 * entries
    assert (site / "search.js").stat().st_size < 600 * entries
    assert (site / "map.html").stat().st_size < 400_000
    assert max(path.stat().st_size for path in (site / "entries").glob("*.html")) < 80_000
    files = [path for path in site.rglob("*") if path.is_file()]
    assert len(files) < 1.3 * entries and sum(path.stat().st_size for path in files) < 8_500 * entries


@pytest.mark.slow
def test_an_entry_is_told_whole(site: Path) -> None:
    page = " ".join("".join(Page((site / "entries" / "CC-2024-0040.html").read_text(encoding="utf-8")).words).split())
    for words in (
        "scales the gradient by the accumulation steps",
        "training.gradient_accumulation_steps >=2",
        "1 of 2",
        "transformers>=4.48.3",
        "compatcheck matrix reproduce CC-2024-0040",
        "accumulating 4 micro-batches gives 4.931 times the update of one batch",
        "no GPU",
    ):
        assert words in page


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site of a matrix whose only entry and record try to break out of the pages."""
    folder = tmp_path_factory.mktemp("hostile")
    shutil.copytree(ROOT / "matrix" / "tables", folder / "matrix" / "tables")
    (folder / "matrix" / "records").mkdir()
    (folder / "matrix" / "torch").mkdir()
    words = json.dumps(HOSTILE)
    record = {"date": HOSTILE, "platform": {HOSTILE: HOSTILE}, "question": HOSTILE, "method": HOSTILE}
    (folder / "matrix" / "records" / "bad.json").write_text(json.dumps(record), encoding="utf-8")
    (folder / "matrix" / "torch" / "CC-2026-9999.toml").write_text(
        f"""
id = "CC-2026-9999"
title = {words}
impact = "crash"
confidence = "reported"
summary = {words}
mechanism = {words}
symptoms = [{words}]
misleading = [{words}]
packages = ["torch", {words}]
published = 2026-01-01
reviewed = 2026-01-02
[[affected]]
distributions.torch = ">=2.5.0,<2.5.1"
model.name = {words}
[[remedies]]
code = {words}
why = {words}
[[error_patterns]]
regex = "</script><script>alert"
example = {words}
[[evidence]]
url = "https://example.org/\\"><script>alert(3)</script>"
kind = "report"
supports = [{words}]
note = {words}
[[evidence]]
url = "records/bad.json"
kind = "reproduction"
supports = ["affected"]
[[examples]]
expect = "affected"
note = {words}
environment = {{ distributions = {{ torch = "2.5.0" }}, model = {{ name = {words} }} }}
""",
        encoding="utf-8",
    )
    done = run_command(sys.executable, "matrix", "site", "--matrix", "matrix", "site", cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder / "site"


def test_hostile_text_stays_text(hostile: Path) -> None:
    for path in hostile.rglob("*.html"):
        page = Page(path.read_text(encoding="utf-8"))
        assert page.handlers == [] and "img" not in page.seen
        assert "".join(page.words).count("alert(1)") > 0
        assert page.seen.count("script") == {"index.html": 2, "map.html": 2}.get(path.name, 1)
        assert path.read_text(encoding="utf-8").count("<script") == page.seen.count("script")


def test_hostile_text_is_whole_in_the_data(hostile: Path) -> None:
    script = (hostile / "search.js").read_text(encoding="utf-8")
    assert "<" not in script and "\u2028" not in script
    held = json.loads(script.removeprefix("window.compatcheckSearch = ").rstrip(";\n"))
    assert HOSTILE in held["CC-2026-9999"][0]
    block = re.search(r'id="map">(.*?)</script>', (hostile / "map.html").read_text(encoding="utf-8"))
    assert block and json.loads(block[1])["entries"] == [["CC-2026-9999", HOSTILE, "crash"]]


def test_a_site_is_replaced_and_what_others_put_there_is_kept(hostile: Path, tmp_path: Path) -> None:
    there = tmp_path / "site"
    shutil.copytree(hostile, there)
    (there / "CNAME").write_text("compat.example.org", encoding="utf-8")
    gone = json.loads((there / "compatcheck-site.json").read_text(encoding="utf-8"))
    gone["files"].append("entries/CC-2020-0000.html")
    (there / "compatcheck-site.json").write_text(json.dumps(gone), encoding="utf-8")
    (there / "entries" / "CC-2020-0000.html").write_text("withdrawn since", encoding="utf-8")

    done = run_command(
        sys.executable, "matrix", "site", "--matrix", str(hostile.parent / "matrix"), "site", cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert (there / "CNAME").read_text(encoding="utf-8") == "compat.example.org"
    assert not (there / "entries" / "CC-2020-0000.html").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["site"]


@pytest.mark.parametrize("can_swap", [True, False])
def test_failed_write_leaves_the_old_site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, can_swap: bool) -> None:
    there = tmp_path / "site"
    _folder.write({"index.html": "old"}, str(there))

    def rename(one: str, other: str) -> None:
        if other == str(there) and one.endswith("new"):
            raise OSError(28, "No space left on device")
        moved(one, other)

    moved = os.rename
    monkeypatch.setattr(os, "rename", rename)
    if not can_swap:
        monkeypatch.setattr(_folder, "_swap", lambda one, other: False)
        with pytest.raises(InputError, match="No space left"):
            _folder.write({"index.html": "new"}, str(there))
    else:
        _folder.write({"index.html": "new"}, str(there))
    assert (there / "index.html").read_text(encoding="utf-8") == ("new" if can_swap else "old")
    assert [path.name for path in tmp_path.iterdir()] == ["site"]


def test_a_folder_of_others_is_left_alone(tmp_path: Path) -> None:
    """It is refused before the work: even a matrix that does not exist is not asked for."""
    (tmp_path / "thesis.tex").write_text("years of work", encoding="utf-8")
    done = run_command(sys.executable, "matrix", "site", "--matrix", "missing", str(tmp_path), cwd=tmp_path)
    assert done.returncode == 2
    assert "the folder contains files other than an earlier site" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


@pytest.mark.slow
def test_the_wheel_ships_style_and_script(wheel: Wheel) -> None:
    files = [path for path in (ROOT / "compatcheck").rglob("*") if path.suffix in (".css", ".js")]
    with zipfile.ZipFile(wheel.path) as archive:
        assert files and {path.relative_to(ROOT).as_posix() for path in files} <= set(archive.namelist())


def test_without_the_sources_a_record_is_named() -> None:
    assert "matrix/records/2026-01-01-x.json" in record_page_part("records/2026-01-01-x.json", None)


RELEASES = [("1.0", "2024-01-01"), ("1.1", "2024-06-01"), ("2.0", "2025-01-01"), ("2.1", "2025-06-01")]


@pytest.mark.parametrize(
    ("condition", "runs", "is_open", "words"),
    [
        (">=1.1,<2.1", 1, False, "2 of 4 releases, 1.1 to 2.0 (2024-06-01 to 2025-01-01)."),
        (">=2.0", 1, True, "2 of 4 releases, 2.0 to 2.1 (2025-01-01 to 2025-06-01)."),
        (">=2.0,<3", 1, False, "2 of 4 releases"),
        ("==2.1", 1, False, "1 of 4 releases, 2.1 (2025-06-01)."),
        (">=1.5,<1.6", 0, False, "no final release since 2024-01-01 lies in this range."),
    ],
)
def test_a_bar_shows_the_affected_releases(condition: str, runs: int, is_open: bool, words: str) -> None:
    drawn = bar("torch", condition, RELEASES, matrix.within, "range-1")
    assert drawn.count('<rect class="affected"') == runs
    assert ('<path class="affected"' in drawn) == is_open == ("no end is known" in drawn)
    assert words in re.sub("<[^>]*>", "", drawn)


def test_a_package_without_history_has_its_range_in_words() -> None:
    drawn: Any = bar("novel", ">=1.1", [], matrix.within, "range-1")
    assert "<svg" not in drawn and "not recorded" in drawn


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (r"(?i)no module named", ("no module named", "i")),
        (r"\Aa{,9}b\Z", ("^a{0,9}b$", "")),
        (r"\\A{,9}", (r"\\A{0,9}", "")),
        (r"\(?802\)?", (r"\(?802\)?", "")),
        (r"(?P<name>x)", ("", "")),
        (r"[]x]y", ("", "")),
    ],
)
def test_expressions_are_put_into_the_syntax_of_browsers(ours: str, theirs: tuple[str, str]) -> None:
    assert js_regex(ours) == theirs
