"""The matrix as a table for spreadsheets, one row an entry."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Mapping
from io import StringIO
from typing import Any

COLUMNS = (
    "id",
    "title",
    "impact",
    "confidence",
    "packages",
    "affected",
    "summary",
    "remedies",
    "probe",
    "published",
    "reviewed",
    "withdrawn",
    "evidence",
)
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def render(entries: Iterable[Mapping[str, Any]]) -> str:
    """Comma-separated rows; ``affected`` and ``remedies`` hold JSON, and what is several words is parted by spaces."""
    stream = StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows([_inert(cell) for cell in _row(entry)] for entry in entries)
    return stream.getvalue()


def _row(entry: Mapping[str, Any]) -> list[str]:
    if "withdrawn" in entry:
        kept = {"id": entry["id"], "title": entry["title"], "withdrawn": entry["withdrawn"]["on"]}
        return [kept.get(column, "") for column in COLUMNS]
    special = {
        "packages": " ".join(entry["packages"]),
        "affected": json.dumps(entry["affected"], ensure_ascii=False),
        "remedies": json.dumps(entry["remedies"], ensure_ascii=False),
        "probe": (entry.get("probe") or {}).get("name", ""),
        "evidence": " ".join(evidence["url"] for evidence in entry["evidence"]),
    }
    return [str(special.get(column, entry.get(column, ""))) for column in COLUMNS]


def _inert(cell: str) -> str:
    """The cell, with an apostrophe before what a spreadsheet would compute.

    https://owasp.org/www-community/attacks/CSV_Injection
    """
    return f"'{cell}" if cell.startswith(_FORMULA) else cell
