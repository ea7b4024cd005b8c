"""The date and the revision of the matrix, and that a stale one is said to be stale."""

from __future__ import annotations

import calendar
import json
import time
from datetime import date
from pathlib import Path

import pytest

from compatcheck import matrix
from compatcheck.environment import Environment
from compatcheck.matrix.compile import compile_entries, read_entries, read_tables, write_compiled
from compatcheck.matrix.entry import Entry, Withdrawn, WithdrawnEntry
from compatcheck.pipelines.check import check
from compatcheck.pipelines.diagnose import Given, diagnose
from compatcheck.report import render
from compatcheck.report.subjects import diagnosis
from compatcheck.report.subjects.check import document
from tests.conftest import ROOT

SOURCES = ROOT / "matrix"
ENVIRONMENT = Environment({"distributions": {"torch": "2.5.1"}})


def days_after(day: str, days: int) -> float:
    """Noon of a day so many days later, in seconds since 1970."""
    return calendar.timegm(time.strptime(day, "%Y-%m-%d")) + days * 86400 + 43200


@pytest.fixture(scope="module")
def known() -> matrix.Matrix:
    return matrix.load(str(SOURCES))


@pytest.fixture(scope="module")
def entries() -> list[Entry]:
    some = list(read_entries(SOURCES).values())[:3]
    return [entry.model_copy(update={"reviewed": date(2026, 3, 5 + n)}) for n, entry in enumerate(some)]


def test_the_date_is_that_of_the_newest_review(entries: list[Entry]) -> None:
    assert compile_entries(entries).summary["date"] == "2026-03-07"
    table = {"drivers": {"reviewed": date(2026, 4, 1)}}
    assert compile_entries(entries, table).summary["date"] == "2026-04-01"
    withdrawn = Withdrawn(on=date(2026, 5, 1), reason="it was wrong")
    gone = WithdrawnEntry(id=entries[0].id, title="t", withdrawn=withdrawn)
    assert compile_entries(entries[1:], withdrawn=[gone]).summary["date"] == "2026-05-01"


def test_another_table_is_another_revision(entries: list[Entry]) -> None:
    tables = read_tables(SOURCES)
    changed = {**tables, "cuda-driver": {**tables["cuda-driver"], "floor": {}}}
    revisions = {compile_entries(entries, each).summary["revision"] for each in (tables, changed)}
    assert len(revisions) == 2


@pytest.mark.parametrize("days, stale", [(0, False), (90, False), (91, True)])
def test_a_matrix_is_stale_after_ninety_days(known: matrix.Matrix, days: int, stale: bool) -> None:
    report = check(ENVIRONMENT, known, now=days_after(known.date, days))
    told = json.loads(render(document(report), "json"))["matrix"]
    assert told == {"revision": known.revision, "entries": known.entries, "date": known.date, "stale": stale}
    text = render(document(report), "text")
    assert f"matrix {known.revision} of {known.date}, {known.entries} entries" in text
    assert ("compatcheck matrix update" in text) == stale
    assert ("more than 90 days ago" in text) == stale


def test_compiled_and_authored_have_one_date(known: matrix.Matrix, tmp_path: Path) -> None:
    index = write_compiled(SOURCES, tmp_path)
    about = json.loads((tmp_path / "about.json").read_text(encoding="utf-8"))
    assert about == {key: index[key] for key in ("format", "revision", "entries", "date")}
    assert (about["revision"], about["date"]) == (known.revision, known.date)


def test_a_diagnosis_says_so_too(known: matrix.Matrix) -> None:
    log = ROOT / "tests" / "symptoms" / "logs" / "transformers-4.48-nan-from-step-16.log"
    found = diagnose(Given((str(log),)), known._replace(date="2020-01-01"))
    assert json.loads(render(diagnosis.document(found), "json"))["matrix"]["stale"] is True
    text = render(diagnosis.document(found), "text")
    assert "of 2020-01-01" in text and "more than 90 days ago" in text
