"""What a change of the matrix changes for environments: for a person, for scripts, and for a pull request."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import groupby
from typing import Any

from compatcheck.language import comma_list, marked
from compatcheck.language import gettext as _
from compatcheck.report.document import Document, Table
from compatcheck.terminal.lines import Line
from tools.matrix.values import Comparison, VerdictChange

_ALARM = marked("known-good environments become affected: a false alarm, unless they really are broken")


def document(comparison: Comparison) -> Document:
    title = Line(_summary(comparison), "bold red" if comparison.alarms else "bold green")
    alarm = (Line(_(_ALARM), "red"),) if comparison.alarms else ()
    edits = (Line(comma_list(ids), "", _(label), "dim", 10) for label, ids in _edits(comparison))
    table = (_table(comparison),) if comparison.changes else ()
    body = (Line(_head(comparison), "dim"), *edits, *table, Line())
    return Document(title, body, partial(_shape, comparison), ((title, *alarm),))


def _shape(comparison: Comparison) -> Mapping[str, Any]:
    return {
        "old": {"revision": comparison.revisions[0], "entries": comparison.entries[0]},
        "new": {"revision": comparison.revisions[1], "entries": comparison.entries[1]},
        "added": list(comparison.added),
        "removed": list(comparison.removed),
        "edited": list(comparison.edited),
        "environments": comparison.environments,
        "changes": [{**change._asdict(), "alarm": change.is_alarm} for change in comparison.changes],
    }


def _table(comparison: Comparison) -> Table:
    columns = (_("environment"), "", _("entry"), _("before"), _("after"))
    cells = (
        (change.environment, _sign(change), f"{change.entry} {change.title}", *_steps(change))
        for change in comparison.changes
    )
    return Table(columns, tuple(cells), tuple(_lines(comparison)))


def _lines(comparison: Comparison) -> Iterator[Line]:
    for name, changes in groupby(comparison.changes, key=lambda change: change.environment):
        yield Line()
        yield Line(name, "bold")
        for change in changes:
            style = "bold red" if change.is_alarm else ""
            yield Line(change.title, style, f"  {_sign(change)} {_step(change):<22}{change.entry}", style, 41)


def _head(comparison: Comparison) -> str:
    (was, now), (fewer, more) = comparison.revisions, comparison.entries
    text = _("matrix {was} ({fewer} entries) -> {now} ({more} entries), {environments} environments")
    return text.format(was=was, fewer=fewer, now=now, more=more, environments=comparison.environments)


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
        return _("no verdict changes in {number} environments").format(number=comparison.environments)
    touched = len({change.environment for change in comparison.changes})
    counted = Counter(f"{_sign(change)} {_step(change)}" for change in comparison.changes)
    counts = comma_list(f"{count} x {what}" for what, count in sorted(counted.items()))
    text = _("{changes} verdicts change in {touched} of {number} environments: {counts}")
    number = comparison.environments
    return text.format(changes=len(comparison.changes), touched=touched, number=number, counts=counts)
