"""The matrix in the Open Source Vulnerability format, for tools that read advisories.

That format knows packages and versions. That an entry needs two packages at once, a GPU or a setting it cannot say, so
each range carries what else must hold in ``database_specific.only_with`` and the details tell it; ``decides_alone`` is
true where nothing else must. Versions are meant without their local label: 2.5.0+cu118 is 2.5.0.
https://ossf.github.io/osv-schema/
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from packaging.version import Version

from compatcheck.files.json_text import written_json

SCHEMA_VERSION = "1.7.5"

PREFIX = "x_"
"""What the id of a database begins with that is not among those the schema lists."""

Interval = tuple[Version | None, bool, Version | None, bool]
"""Lowest version and whether it belongs to the range, highest version and whether it does; None is no bound."""

IntervalOf = Callable[[str], Interval | None]
"""The interval of a range as conditions state it; None where no version lies in it."""

_REFERENCES = {
    "upstream-fix": "FIX",
    "maintainer": "DISCUSSION",
    "source": "WEB",
    "documentation": "WEB",
    "report": "REPORT",
    "reproduction": "EVIDENCE",
}
_DISTRIBUTION = "distributions."


def records(entries: Sequence[Mapping[str, Any]], interval_of: IntervalOf) -> list[dict[str, Any]]:
    """One record for each entry that bounds the versions of a package at fault; the others have no place here."""
    made = ((entry, list(_affected(entry, interval_of))) for entry in entries)
    return [_record(entry, affected) for entry, affected in made if affected]


def withdrawn_record(entry: Mapping[str, Any]) -> dict[str, Any]:
    """What is kept of an entry that is withdrawn, so that whoever took its record learns of it."""
    withdrawn = entry["withdrawn"]
    return {
        "schema_version": SCHEMA_VERSION,
        "id": PREFIX + entry["id"],
        "modified": _instant(withdrawn["on"]),
        "withdrawn": _instant(withdrawn["on"]),
        "summary": entry["title"],
        "details": withdrawn["reason"],
        "related": [PREFIX + each for each in withdrawn.get("successors", ())],
        "database_specific": {"id": entry["id"], "withdrawn_because": withdrawn["reason"]},
    }


def render(shape: Any) -> str:
    return written_json(shape)


def _record(entry: Mapping[str, Any], affected: list[dict[str, Any]]) -> dict[str, object]:
    specific = {
        "id": entry["id"],
        "impact": entry["impact"],
        "confidence": entry["confidence"],
        "symptoms": entry.get("symptoms", []),
        "remedies": entry["remedies"],
        **({"probe": entry["probe"]["name"]} if entry.get("probe") else {}),
    }
    return {
        "schema_version": SCHEMA_VERSION,
        "id": PREFIX + entry["id"],
        "modified": _instant(entry["reviewed"]),
        "published": _instant(entry["published"]),
        "summary": entry["title"],
        "details": "\n\n".join(_details(entry)),
        "affected": affected,
        "references": list(_references(entry)),
        "database_specific": specific,
    }


def _instant(day: str) -> str:
    return f"{day}T00:00:00Z"


def _affected(entry: Mapping[str, Any], interval_of: IntervalOf) -> Iterator[dict[str, object]]:
    """The ranges of each package at fault, table by table, with what else that table asks for."""
    for table in entry["affected"]:
        for name in entry["packages"]:
            condition = table.get(_DISTRIBUTION + name)
            interval = None if condition in (None, "present", "absent") else interval_of(condition)
            if interval is None:
                continue
            others = {path: asked for path, asked in table.items() if path != _DISTRIBUTION + name}
            yield {
                "package": {"ecosystem": "PyPI", "name": name, "purl": f"pkg:pypi/{name}"},
                "ranges": [{"type": "ECOSYSTEM", "events": _events(interval)}],
                "database_specific": {"only_with": others, "decides_alone": not others},
            }


def _events(interval: Interval) -> list[dict[str, str]]:
    low, low_closed, high, high_closed = interval
    first = "0" if low is None else str(low if low_closed else _next(low))
    if high is None:
        return [{"introduced": first}]
    return [{"introduced": first}, {"last_affected" if high_closed else "fixed": str(high)}]


def _next(version: Version) -> Version:
    """The first version above this one: the format can open a range only with a version that lies in it."""
    if version.dev is not None:
        return Version(f"{str(version).rpartition('.dev')[0]}.dev{version.dev + 1}")
    post = 0 if version.post is None else version.post + 1
    return Version(f"{str(version).partition('.post')[0]}.post{post}.dev0")


def _details(entry: Mapping[str, Any]) -> Iterator[str]:
    yield entry["summary"]
    yield entry["mechanism"]
    tables = [
        " and ".join(f"`{path}` {_condition(asked)}" for path, asked in table.items()) for table in entry["affected"]
    ]
    joined = any(len(table) > 1 for table in entry["affected"])
    yield f"Applies where {'; or where '.join(tables)}." + (" The versions alone do not decide." if joined else "")
    yield "What to do, the best first:\n" + "\n".join(f"- {_remedy(remedy)}" for remedy in entry["remedies"])


def _condition(asked: object) -> str:
    return " or ".join(map(str, asked)) if isinstance(asked, list) else str(asked)


def _remedy(remedy: Mapping[str, Any]) -> str:
    settings = {**remedy.get("config", {}), **remedy.get("environ", {})}
    steps = [f"{name} {asked}" for name, asked in remedy.get("pins", {}).items()]
    steps += [f"{key} = {json.dumps(value)}" for key, value in settings.items()]
    steps += [remedy["code"]] if remedy.get("code") else []
    shown = ", ".join(filter(None, (*(f"`{step}`" for step in steps), remedy.get("action"))))
    return f"{shown}: {remedy['why']}" if shown else str(remedy["why"])


def _references(entry: Mapping[str, Any]) -> Iterator[dict[str, str]]:
    """Where the evidence lies on the web; a record of a measurement is a file beside the matrix and has no address."""
    for evidence in entry["evidence"]:
        if evidence["url"].startswith("https://"):
            yield {"type": _REFERENCES[evidence["kind"]], "url": evidence["url"]}
