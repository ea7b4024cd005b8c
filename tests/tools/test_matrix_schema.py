"""The schema that editors complete by, held against the entries themselves and against the parser."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator, FormatChecker

from compatcheck.matrix.compile import read_toml
from tests.conftest import SOURCES, run_command
from tests.matrix.test_entries import ENTRIES, ENTRY, WITHDRAWN
from tools.matrix.schema import schema

KEPT = SOURCES / "entry.schema.json"


@pytest.fixture(scope="module")
def editor() -> Draft202012Validator:
    return Draft202012Validator(schema(), format_checker=FormatChecker())


def as_an_editor_has_it(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: as_an_editor_has_it(each) for key, each in value.items()}
    if isinstance(value, list):
        return [as_an_editor_has_it(each) for each in value]
    return value.isoformat() if isinstance(value, date) else value


def test_the_kept_schema_is_up_to_date(tmp_path: Path) -> None:
    import sys

    done = run_command(sys.executable, "matrix", "schema", cwd=tmp_path)
    assert json.loads(done.stdout) == json.loads(KEPT.read_text(encoding="utf-8")), (
        "run: compatcheck matrix schema -o matrix/entry.schema.json"
    )


def test_the_schema_is_one_and_every_entry_follows_it(editor: Draft202012Validator) -> None:
    Draft202012Validator.check_schema(editor.schema)
    told = [
        f"{path}: {list(fault.absolute_path)} {fault.message}"
        for path in (*ENTRIES, *WITHDRAWN)
        for fault in editor.iter_errors(as_an_editor_has_it(read_toml(path)))
    ]
    assert told == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("title", "tittle"),
        ("training.packing", "training.paking"),
        ('">=2.5.0,<2.5.1"', '"2.5.0"'),
        ('">=2.5.0,<2.5.1"', '"~=2.5"'),
        ("packing = true\n\n[[rem", 'packing = "yes"\n\n[[rem'),
        ('"crash"', '"boom"'),
        ('supports = ["affected"]', "supports = []"),
        ("https://example.org", "http://example.org"),
        ("CC-2026-9999", "CC-26-1"),
    ],
)
def test_an_editor_marks_what_the_parser_refuses(
    tmp_path: Path, editor: Draft202012Validator, old: str, new: str
) -> None:
    path = tmp_path / "entry.toml"
    assert old in ENTRY
    path.write_text(ENTRY.replace(old, new, 1), encoding="utf-8")
    assert list(editor.iter_errors(as_an_editor_has_it(read_toml(path))))


def test_every_field_says_what_it_is_for() -> None:
    parts = {name: part for name, part in schema()["$defs"].items() if "properties" in part}
    bare = [
        f"{name}.{field}"
        for name, part in parts.items()
        if name != "conditions"
        for field, told in part["properties"].items()
        if "description" not in told
    ]
    assert bare == []
