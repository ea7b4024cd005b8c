"""The page of the sweep, made from its records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from packaging.version import Version

from tools.sweep import _records
from tools.sweep._records import ROOT, Record
from tools.sweep._stacks import DAY, NEWEST, SUBJECTS

PAGE = ROOT / "docs" / "reference" / "sweep.md"
HEAD = """# Releases that were probed

Results of the [probes](probes.md) for each release, installed with the packages of the release's day, or with
the newest packages that its metadata allows. Python 3.11, on a CPU; torch is the newest of a few releases
available on that day. `python -m tools.sweep` runs the probes that have no current result, and every week a workflow
probes the newest releases. This page is generated from
`matrix/records/releases-swept.json`, which contains all results and the versions of all packages.

A probe *fails* if the stack computes something different from the formula, while the formula at the same
precision agrees. It is *watch* if the deviation cannot be attributed to the stack, or if a setting causes it.
Cases that a release does not support are omitted. [How a probe decides](../explanation/numerics.md)."""
SHORT = {"crash": "crash", "timeout": "timeout", "skip": "skip", "pass": "pass", "watch": "watch", "fail": "**fail**"}
BESIDE = {
    DAY: "Installed as of the release's day.",
    NEWEST: "Installed with the newest packages that its metadata allows.",
}
LONGEST_WHY = 220


def write() -> None:
    """Write the page from the records."""
    PAGE.write_text(text(list(_records.read().values())), encoding="utf-8")


def text(records: list[Record]) -> str:
    """The page: a table for each package and kind of companions, and what failed."""
    parts = [HEAD]
    for package in SUBJECTS:
        tables = [part for companions in (DAY, NEWEST) for part in _table(package, companions, records)]
        if tables:
            parts += [f"## {package}", *tables, *_failures(package, records)]
    return "\n\n".join(parts) + "\n"


def _table(package: str, companions: str, records: Iterable[Record]) -> Iterator[str]:
    mine = [record for record in records if _is_of(record, package, companions) and "unbuildable" not in record]
    columns = [column for column in SUBJECTS[package].columns if any(column in record["probes"] for record in mine)]
    if not columns:
        return
    others = [name for name in ("torch", *SUBJECTS[package].companions) if name != package]
    rows = [[package, *others, *map(_heading, columns)], ["---"] * (1 + len(others) + len(columns))]
    for record in sorted(mine, key=lambda record: Version(_version(record)), reverse=True):
        cells = [_cell(record, column) for column in columns]
        rows.append([_version(record), *(record["packages"].get(name, "") for name in others), *cells])
    yield BESIDE[companions]
    yield "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _heading(column: str) -> str:
    probe, _, variant = column.partition(", ")
    return f"[{probe}](probes.md#{probe}){', ' + variant if variant else ''}"


def _cell(record: Record, column: str) -> str:
    row = record["probes"].get(column)
    return SHORT[row["outcome"]] if row else ""


def _failures(package: str, records: Iterable[Record]) -> Iterator[str]:
    """What a failing probe said, by column and words, with the releases that it said it of."""
    said: dict[tuple[str, str], list[Record]] = {}
    mine = [record for record in records if record["stack"].startswith(f"{package} ")]
    for record in sorted(mine, key=lambda record: Version(_version(record))):
        for column, row in record["probes"].items():
            if row["outcome"] in ("fail", "crash", "timeout"):
                cases = "; ".join(row.get("failing", ())) or row["why"]
                said.setdefault((column, cases[:LONGEST_WHY]), []).append(record)
    refused = [record for record in mine if "unbuildable" in record]
    if refused:
        yield f"Cannot be installed so: {', '.join(record['stack'].partition(' ')[2] for record in refused)}."
    if said:
        yield "What failed:"
        lines = (f"- `{column}` on {_releases(where)}: {cases}" for (column, cases), where in sorted(said.items()))
        yield "\n".join(lines)


def _releases(records: Iterable[Record]) -> str:
    return ", ".join(dict.fromkeys(_version(record) for record in records))


def _is_of(record: Record, package: str, companions: str) -> bool:
    return record["stack"].startswith(f"{package} ") and record["stack"].endswith(f", {companions}")


def _version(record: Record) -> str:
    return str(record["stack"].partition(" ")[2].partition(",")[0])
