"""What became of a request for pins: what moved and why, what it cost, what is left, and what the built set showed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from compatcheck.model import Choice, Finding, Moved, Outcome, PinReport, ProbeResult, Trial
from compatcheck.report.json import SCHEMA_VERSION, finding_shape, finite, probe_shape
from compatcheck.report.text import Line, written

_MOST_ALONG = 6
_STYLES: dict[Outcome, str] = {"pass": "green", "watch": "yellow", "skip": "dim"}


def render(report: PinReport, colour: bool = False) -> str:
    return written(_lines(report), colour)


def render_json(report: PinReport) -> str:
    shape = {
        "schema_version": SCHEMA_VERSION,
        "moved": [each._asdict() for each in report.moved],
        "distance": report.distance,
        "resolutions": report.resolutions,
        "proven": report.proven,
        "choices": [{**each._asdict(), "moved": [move._asdict() for move in each.moved]} for each in report.choices],
        "left": [finding_shape(finding) for finding in report.left],
        "notes": report.notes,
        "trials": None if report.trials is None else [_trial_shape(trial) for trial in report.trials],
        "verified": report.verified,
        "unverified": report.unverified,
    }
    return json.dumps(finite(shape), indent=2, ensure_ascii=False) + "\n"


def _trial_shape(trial: Trial) -> dict[str, Any]:
    return {
        "entry": trial.entry,
        "title": trial.title,
        "before": probe_shape(trial.before) if trial.before else None,
        "after": probe_shape(trial.after),
    }


def _lines(report: PinReport) -> Iterator[Line]:
    yield from _moves(report)
    for choice in report.choices:
        yield Line(_choice(choice), "", choice.entry, "bold", 14)
    for finding in report.left:
        yield Line(f"{finding.title}{_steps(finding)}", "", f"left {finding.id}", "bold red", 19)
    for note in report.notes:
        yield Line(note, "", "note", "yellow", 6)
    for trial in report.trials or ():
        yield from _trial(trial)
    yield Line(_verdict(report), "bold")


def _moves(report: PinReport) -> Iterator[Line]:
    asked = [each for each in report.moved if each.entries]
    along = [each for each in report.moved if not each.entries]
    width = max((len(each.name) for each in asked), default=0) + 2
    for each in asked:
        why = "; ".join(f"{entry} {report.titles.get(entry, '')}".strip() for entry in each.entries)
        yield Line(f"{_step(each)}: {why}", "", each.name, "bold", width)
    if along:
        shown = ", ".join(f"{each.name} {_step(each)}" for each in along[:_MOST_ALONG])
        more = len(along) - _MOST_ALONG
        yield Line(f"with them {shown}" + (f" and {more} more" if more > 0 else ""), "dim")


def _step(move: Moved) -> str:
    return f"{move.was} -> {move.now}" if move.was else f"{move.now} is new"


def _choice(choice: Choice) -> str:
    """Both ways out, each with what it costs."""
    moves = " and ".join(f"{each.name} {_step(each)} ({_size(each.cost)})" for each in choice.moved)
    settings = f"{'; '.join(choice.settings)} ({_count(len(choice.settings), 'setting')})"
    if choice.by_versions:
        return f"cleared by {moves}; --prefer config would keep the versions and {settings}"
    return settings + (f"; --prefer pins would move {moves}" if moves else "")


def _size(cost: int) -> str:
    for unit, name in ((100, "major step"), (10, "minor step"), (1, "patch")):
        if cost >= unit:
            return _count(cost // unit, name)
    return "no step"


def _count(count: int, name: str) -> str:
    return f"{count} {name}{'' if count == 1 else 'es' if name == 'patch' else 's'}"


def _steps(finding: Finding) -> str:
    steps = next((remedy.steps for remedy in finding.remedies if not remedy.pins), ())
    return f": {'; '.join(steps)}" if steps else ""


def _trial(trial: Trial) -> Iterator[Line]:
    yield Line(f"{trial.title} ({trial.after.probe})", "", trial.entry or "imports", "bold", 14)
    for when, result in (("before", trial.before), ("after", trial.after)):
        if result is not None:
            style = _STYLES.get(result.outcome, "bold red")
            yield Line(f"{result.outcome}: {result.why}", style, f"  {when}", "dim", 14)


def _verdict(report: PinReport) -> str:
    tries = _count(report.resolutions, "resolution")
    if not report.moved:
        moved = f"nothing has to move, {tries}"
    else:
        nearest = "nothing nearer is clean" if report.proven else "time ran out, something nearer may be clean"
        moved = f"{_count(len(report.moved), 'move')}, distance {report.distance}, {tries}: {nearest}"
    if report.trials is None:
        return moved
    if report.unverified:
        return f"{moved}; NOT verified: {report.unverified}"
    shown = sum(_is_shown(trial) for trial in report.trials)
    told = f"{shown} of its probes failed before" if shown else "no probe failed before either"
    return f"{moved}; verified: the set was built and every probe passes there, {told}"


def _is_shown(trial: Trial) -> bool:
    result: ProbeResult | None = trial.before
    return result is not None and result.outcome in ("fail", "crash", "timeout")
