"""The page of the sweep, made from its records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from packaging.version import Version

from tools.sweep import _records
from tools.sweep._kinds import COLUMNS, EXPLAINED, SCANNED, kind_of
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
KINDS = """## Model kinds

Results for each type of causal language model that a release knows: a small model of the default configuration with
random weights, in float32. Encoders are configured as decoders. `python -m tools.sweep --kinds RELEASE` runs what has
no current result. The records are in `matrix/records/kinds-swept.json`."""
FAILED = ("fail", "crash", "timeout")
SHORT = {"crash": "crash", "timeout": "timeout", "skip": "skip", "pass": "pass", "watch": "watch", "fail": "**fail**"}
BESIDE = {
    DAY: "Installed as of the release's day.",
    NEWEST: "Installed with the newest packages that its metadata allows.",
}
LONGEST_WHY = 220


def write() -> None:
    """Write the page from the records."""
    PAGE.write_text(text(list(_records.read().values()), list(_records.read(SCANNED).values())), encoding="utf-8")


def text(records: list[Record], kinds: Iterable[Record] = ()) -> str:
    """The page: a table for each package and kind of companions, what failed, and the model kinds."""
    parts = [HEAD]
    for package in SUBJECTS:
        tables = [part for companions in (DAY, NEWEST) for part in _table(package, companions, records)]
        if tables:
            parts += [f"## {package}", *tables, *_failures(package, records)]
    releases: dict[str, list[Record]] = {}
    for record in kinds:
        releases.setdefault(_version(record), []).append(record)
    parts += [KINDS] if releases else []
    for version in sorted(releases, key=Version, reverse=True):
        parts += _kinds(version, releases[version])
    return "\n\n".join(parts) + "\n"


def _kinds(version: str, records: Sequence[Record]) -> Iterator[str]:
    """How many kinds pass each column, the kinds that fail one, and those that no column can build."""
    newest = records[-1]["packages"]
    yield f"### transformers {version}"
    yield f"With torch {newest['torch']}. Results by column:"
    lines = []
    for column in COLUMNS:
        outcomes = Counter(record["probes"][column]["outcome"] for record in records if column in record["probes"])
        if outcomes:
            lines.append(
                f"- {_heading(column)}: {', '.join(f'{count} {name}' for name, count in outcomes.most_common())}"
            )
    yield "\n".join(lines)
    failed = [record for record in records if any(row["outcome"] in FAILED for row in record["probes"].values())]
    if failed:
        rows = [["model kind", *map(_heading, COLUMNS), "explanation"], ["---"] * (2 + len(COLUMNS))]
        for record in sorted(failed, key=kind_of):
            cells = [_cell(record, column) for column in COLUMNS]
            rows.append([f"`{kind_of(record)}`", *cells, EXPLAINED.get(kind_of(record), "")])
        yield "\n".join(f"| {' | '.join(row)} |" for row in rows)
    skipped = [
        kind_of(record) for record in records if any(row["outcome"] == "skip" for row in record["probes"].values())
    ]
    if skipped:
        yield f"Not probed, because their default configuration does not build small: {', '.join(sorted(skipped))}."


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
            if row["outcome"] in FAILED:
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
