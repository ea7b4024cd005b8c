"""The matrix as OSV records and as a table: valid, and with the versions that the matrix means."""

from __future__ import annotations

import csv
import io
import json
import sys
from pathlib import Path
from typing import Any, get_args

import jsonschema
import pytest
from packaging.version import Version

from compatcheck import matrix
from compatcheck.errors import InputError
from compatcheck.matrix.entry import EvidenceKind
from compatcheck.packages.versions import contains, parse_range
from compatcheck.report.formats.entries import csv as table
from compatcheck.report.formats.entries import osv
from compatcheck.report.pages.site import _entry as site_entry
from compatcheck.verbs.matrix import export
from tests.conftest import ROOT, run_command

DAY = {"type": "string", "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$"}
TEXT = {"type": "string"}


def of(required: str, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required.split(), "additionalProperties": False}


def rows(items: Any) -> dict[str, Any]:
    return {"type": "array", "items": items}


EVENT = {"oneOf": [of(kind, **{kind: TEXT}) for kind in ("introduced", "fixed", "last_affected", "limit")]}
EVENTS = {
    **rows(EVENT),
    "minItems": 1,
    "contains": {"required": ["introduced"]},
    "not": {
        "allOf": [{"contains": {"required": ["fixed"]}}, {"contains": {"required": ["last_affected"]}}],
    },
}
RULES = of(
    "schema_version id modified",
    schema_version={"pattern": r"^1\.\d+\.\d+$"},
    id={"pattern": r"^x_CC-\d{4}-\d{4}$"},
    modified=DAY,
    published=DAY,
    withdrawn=DAY,
    related=rows({"pattern": r"^x_CC-\d{4}-\d{4}$"}),
    summary=TEXT,
    details=TEXT,
    affected=rows(
        of(
            "package ranges",
            package=of(
                "ecosystem name", ecosystem={"const": "PyPI"}, name=TEXT, purl={"pattern": "^pkg:pypi/[a-z0-9-]+$"}
            ),
            ranges=rows(of("type events", type={"const": "ECOSYSTEM"}, events=EVENTS)),
            database_specific={"type": "object"},
        )
    ),
    references=rows(
        of(
            "type url",
            type={"enum": ["ADVISORY", "ARTICLE", "DISCUSSION", "REPORT", "FIX", "EVIDENCE", "WEB"]},
            url={"pattern": r"^https://\S+$"},
        )
    ),
    database_specific={"type": "object"},
)
"""What https://github.com/ossf/osv-schema/blob/main/validation/schema.json asks of the fields that are written here."""


@pytest.fixture(scope="module")
def entries() -> list[dict[str, Any]]:
    return matrix.all_entries(matrix.load(str(ROOT / "matrix")))


def test_every_record_is_valid_and_tells_what_osv_cannot(entries: list[dict[str, Any]]) -> None:
    records = osv.records(entries, matrix.interval)
    validator = jsonschema.Draft202012Validator(RULES)
    for record in records:
        assert not [error.message for error in validator.iter_errors(record)], record["id"]
    assert 0 < len(records) < len(entries)
    by_id = {record["database_specific"]["id"]: record for record in records}
    attention = by_id["CC-2024-0001"]["affected"]
    assert [item["ranges"][0]["events"] for item in attention] == [[{"introduced": "2.5.0"}, {"fixed": "2.5.1"}]]
    assert attention[0]["database_specific"]["only_with"]["gpu.compute_capability"] == ">=8.0"
    assert not attention[0]["database_specific"]["decides_alone"]
    assert "`gpu.compute_capability` >=8.0" in by_id["CC-2024-0001"]["details"]
    assert "CC-2026-0001" not in by_id


def test_every_kind_of_evidence_has_a_name_here_and_on_the_site() -> None:
    assert set(osv._REFERENCES) == set(site_entry._KINDS) == set(get_args(EvidenceKind))


def affected_by(events: list[dict[str, str]], version: Version) -> bool:
    """As https://ossf.github.io/osv-schema/#evaluation evaluates the events of one range."""
    first = events[0]["introduced"]
    inside = first == "0" or version >= Version(first)
    for event in events[1:]:
        if "fixed" in event:
            inside = inside and version < Version(event["fixed"])
        else:
            inside = inside and version <= Version(event["last_affected"])
    return inside


@pytest.mark.parametrize(
    "condition",
    [
        ">=2.5.0,<2.5.1",
        "<=2.7.4",
        "<3",
        ">1.2",
        ">1.2.dev3",
        ">1.2rc1",
        ">1.2.post1",
        "==4.48.0",
        ">=1,>2,<9,<=5",
        ">2,<3",
    ],
)
def test_the_events_mean_the_versions_that_the_condition_means(condition: str) -> None:
    interval = matrix.interval(condition)
    assert interval is not None
    events = osv._events(interval)
    comparators = parse_range(condition)
    ends = [str(bound) for _, bound in comparators] + ["0", "1", "2", "3", "5", "9", "10"]
    around = [
        f"{end}{suffix}" for end in ends for suffix in ("", ".1", "rc1", "rc2", ".dev0", ".dev4", ".post0", ".post2")
    ]
    for text in around:
        try:
            version = Version(text)
        except ValueError:
            continue
        assert affected_by(events, version) == contains(comparators, version), (text, events)


def test_a_condition_that_no_version_meets_gives_no_record(entries: list[dict[str, Any]]) -> None:
    entry = {**entries[0], "packages": ["torch"], "affected": [{"distributions.torch": ">2,<1"}]}
    assert osv.records([entry], matrix.interval) == []


def test_a_withdrawn_entry_stays_and_is_withdrawn() -> None:
    withdrawn = {"on": "2026-11-22", "reason": "it was wrong", "successors": ["CC-2026-0002"]}
    record = osv.withdrawn_record({"id": "CC-2026-0001", "title": "t", "withdrawn": withdrawn})
    assert record["related"] == ["x_CC-2026-0002"]
    assert record["withdrawn"] == record["modified"] == "2026-11-22T00:00:00Z"
    assert record["database_specific"]["withdrawn_because"] == "it was wrong"
    jsonschema.Draft202012Validator(RULES).validate(record)


def test_the_table_has_a_row_for_each_entry(entries: list[dict[str, Any]]) -> None:
    read = list(csv.DictReader(io.StringIO(table.render(entries))))
    assert [row["id"] for row in read] == [entry["id"] for entry in entries]
    assert [json.loads(row["affected"]) for row in read] == [entry["affected"] for entry in entries]
    assert [row["summary"] for row in read] == [entry["summary"] for entry in entries]


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r"])
def test_a_cell_is_never_a_formula(entries: list[dict[str, Any]], start: str) -> None:
    text = f'{start}HYPERLINK("http://example.org","x")'
    read = list(csv.reader(io.StringIO(table.render([{**entries[0], "title": text}]), newline="")))
    assert read[1][1] == f"'{text}"


def test_the_command_writes_a_file_for_each_record(tmp_path: Path) -> None:
    done = run_command(sys.executable, "matrix", "export", "--format", "osv", "-o", "osv", cwd=tmp_path)
    assert done.returncode == 0 and done.stdout == ""
    files = {path.stem: json.loads(path.read_text("utf-8")) for path in (tmp_path / "osv").iterdir()}
    assert all(record["id"] == name for name, record in files.items())
    assert done.stderr.startswith(f"{len(files)} records; ")


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("", encoding="utf-8")
    with pytest.raises(InputError, match="making the folder"):
        export.command.main(["--format", "osv", "-o", str(tmp_path / "taken")], standalone_mode=False)
