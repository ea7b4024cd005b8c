"""What a change of the matrix changes for environments: for a person, for scripts, and for a pull request."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from itertools import groupby

from compatcheck.report._markdown import cell
from compatcheck.report.json import SCHEMA_VERSION
from compatcheck.terminal.lines import Line, written
from compatcheck.terminal.screen import PLAIN, Screen
from tools.matrix.values import Comparison, VerdictChange

_MOST_SHOWN = 200
_ALARM = "known-good environments get a verdict of affected: a false alarm, unless they really are broken"


def render(comparison: Comparison, format_name: str, screen: Screen = PLAIN) -> str:
    """The comparison as ``text``, ``json`` or ``markdown``."""
    if format_name == "json":
        return _json(comparison)
    if format_name == "markdown":
        return "\n".join(_markdown(comparison)) + "\n"
    return written(_lines(comparison), screen)


def _json(comparison: Comparison) -> str:
    shape = {
        "schema_version": SCHEMA_VERSION,
        "old": {"revision": comparison.revisions[0], "entries": comparison.entries[0]},
        "new": {"revision": comparison.revisions[1], "entries": comparison.entries[1]},
        "added": list(comparison.added),
        "removed": list(comparison.removed),
        "edited": list(comparison.edited),
        "environments": comparison.environments,
        "changes": [{**change._asdict(), "alarm": change.is_alarm} for change in comparison.changes],
    }
    return json.dumps(shape, indent=2, ensure_ascii=False) + "\n"


def _lines(comparison: Comparison) -> Iterator[Line]:
    yield Line(_head(comparison), "dim")
    for label, ids in _edits(comparison):
        yield Line(", ".join(ids), "", label, "dim", 10)
    for name, changes in groupby(comparison.changes, key=lambda change: change.environment):
        yield Line()
        yield Line(name, "bold")
        for change in changes:
            style = "bold red" if change.is_alarm else ""
            yield Line(change.title, style, f"  {_sign(change)} {_step(change):<22}{change.entry}", style, 41)
    yield Line()
    yield Line(_summary(comparison), "bold red" if comparison.alarms else "bold green")
    if comparison.alarms:
        yield Line(_ALARM, "red")


def _markdown(comparison: Comparison) -> Iterator[str]:
    yield "### What this changes for known-good environments"
    yield ""
    yield f"**{_summary(comparison)}**"
    if comparison.alarms:
        yield ""
        yield f"> :warning: {len(comparison.alarms)} x {_ALARM}."
    yield ""
    yield _head(comparison) + "".join(f"; {label} {', '.join(ids)}" for label, ids in _edits(comparison))
    if not comparison.changes:
        return
    yield ""
    yield "| environment | | entry | before | after |"
    yield "|---|---|---|---|---|"
    for change in comparison.changes[:_MOST_SHOWN]:
        entry = f"`{change.entry}` {cell(change.title)}"
        steps = " | ".join(f"**{each}**" if change.is_alarm else each for each in _steps(change))
        yield f"| {cell(change.environment)} | {_sign(change)} | {entry} | {steps} |"
    if len(comparison.changes) > _MOST_SHOWN:
        yield ""
        yield f"and {len(comparison.changes) - _MOST_SHOWN} more"


def _head(comparison: Comparison) -> str:
    (was, now), (fewer, more) = comparison.revisions, comparison.entries
    return f"matrix {was} ({fewer} entries) -> {now} ({more} entries), {comparison.environments} environments"


def _edits(comparison: Comparison) -> Iterator[tuple[str, tuple[str, ...]]]:
    for label in ("added", "removed", "edited"):
        if getattr(comparison, label):
            yield label, getattr(comparison, label)


def _sign(change: VerdictChange) -> str:
    return "+" if change.before is None else "-" if change.after is None else "~"


def _steps(change: VerdictChange) -> tuple[str, str]:
    return change.before or "-", change.after or "-"


def _step(change: VerdictChange) -> str:
    return " -> ".join(each for each in (change.before, change.after) if each)


def _summary(comparison: Comparison) -> str:
    if not comparison.changes:
        return f"no verdict changes on {comparison.environments} environments"
    touched = len({change.environment for change in comparison.changes})
    counted = Counter(f"{_sign(change)} {_step(change)}" for change in comparison.changes)
    told = ", ".join(f"{count} x {what}" for what, count in sorted(counted.items()))
    return f"{len(comparison.changes)} verdicts change on {touched} of {comparison.environments} environments: {told}"
