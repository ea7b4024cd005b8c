"""What two environments compute differently, and which release changes it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import partial

from compatcheck.language import comma_list, marked, ngettext
from compatcheck.language import gettext as _
from compatcheck.report.document import Block, Curves, Document, Exit, rows
from compatcheck.results import exit_status
from compatcheck.results.comparisons import Cause, Comparison, Difference, Trajectory, Trial
from compatcheck.results.logs import Curve
from compatcheck.terminal.lines import Line

_WHAT = {
    "output": marked("output"),
    "logits": marked("logits"),
    "loss": marked("loss"),
    "gradient": marked("gradient"),
    "update": marked("update"),
    "logged loss": marked("logged loss"),
    "logged gradient norm": marked("logged gradient norm"),
    "learning rate": marked("learning rate"),
    "evaluation loss": marked("evaluation loss"),
    "trained parameters": marked("trained parameters"),
    "dtype": marked("dtype"),
}
_INDENT = 13


def document(found: Comparison, verbose: bool = False) -> Document:
    title = _verdict(found)
    reason = title.text
    status = exit_status.FINDINGS if found.differences else exit_status.CLEAN
    body = tuple(_blocks(found, verbose))
    return Document(title, body, partial(_shape, found), ((title,),), exit=Exit(reason, status))


def brief(found: Comparison) -> Document:
    """A row for each case that differs and nothing else."""
    return rows(Line(_difference_text(each), "", f"{each.case}: ") for each in found.differences)


def _verdict(found: Comparison) -> Line:
    if not found.differences:
        text = _("no difference beyond rounding in {count} cases").format(count=found.cases)
        return Line(text, "bold green")
    if found.cause:
        return Line(_cause_text(found.cause), "bold red")
    text = ngettext("{count} of {all} cases differs by more than rounding",
                    "{count} of {all} cases differ by more than rounding", len(found.differences))  # fmt: skip
    return Line(text.format(count=len(found.differences), all=found.cases), "bold red")


def _cause_text(cause: Cause) -> str:
    if not cause.last:
        return _("{package} {first} changes the result; OLD does not have it").format(
            package=cause.package, first=cause.first
        )
    return _("{package} {first} changes the result; {last} gives the same result as OLD").format(
        package=cause.package, first=cause.first, last=cause.last
    )


def _blocks(found: Comparison, verbose: bool) -> Iterator[Block]:
    yield _row("OLD", found.old.name)
    yield _row("NEW", found.new.name)
    compared = ngettext("{count} case compared", "{count} cases compared", found.cases).format(count=found.cases)
    if found.skipped:
        left = ngettext("{count} case not compared", "{count} cases not compared", len(found.skipped))
        compared += ", " + left.format(count=len(found.skipped))
    yield _row(_("cases"), compared)
    if found.memory_mib:
        yield _row(_("memory"), _("{old} MiB, {new} MiB at most").format(
            old=f"{found.memory_mib[0]:.0f}", new=f"{found.memory_mib[1]:.0f}"))  # fmt: skip
    if found.first:
        yield Line()
        yield _row(_("first"), f"{found.first.case}: {_difference_text(found.first)}", "red")
        if found.trajectory and found.trajectory.old:
            title = _("{what} in OLD and NEW").format(what=_(_WHAT.get(found.trajectory.what, found.trajectory.what)))
            yield Curves((_curve(found.trajectory),), title, 2)
        yield from _others(found, verbose)
    if found.moved and (found.differences or verbose):
        yield Line()
        yield Line(_("packages that differ"), "bold")
        for name, (was, becomes) in found.moved.items():
            yield Line(f"{name} {was or _('absent')} -> {becomes or _('absent')}", "", indent=2)
    if found.trials:
        yield Line()
        yield Line(_("environments that were tried"), "bold")
        yield from map(_trial_line, found.trials)
    if found.cause:
        yield from _about(found.cause)
    elif found.unexplained:
        yield Line(_("no cause identified: {why}").format(why=found.unexplained), "yellow")
    if verbose and found.skipped:
        yield Line()
        yield Line(_("not compared"), "bold")
        for name, why in found.skipped.items():
            yield Line(f"{name}: {why}", "dim", indent=2)
    yield Line()


def _others(found: Comparison, verbose: bool) -> Iterator[Line]:
    others = found.differences[1:]
    for each in others if verbose else others[:3]:
        yield _row(_("also"), f"{each.case}: {_difference_text(each)}", "dim")
    if len(others) > 3 and not verbose:
        yield _row("", _("and {count} more; --verbose lists them").format(count=len(others) - 3), "dim")


def _about(cause: Cause) -> Iterator[Line]:
    if cause.beside:
        moves = comma_list(f"{name} {was or _('absent')} -> {new}" for name, (was, new) in cause.beside.items())
        yield Line(_("changes with it: {moves}").format(moves=moves), "dim")
    if cause.untried:
        releases = comma_list(cause.untried)
        yield Line(_("releases in between that could not be tried: {releases}").format(releases=releases), "dim")


def _trial_line(trial: Trial) -> Line:
    moved = " ".join(f"{name}=={version}" for name, version in trial.moved.items()) or "OLD"
    words = {True: _("same as NEW"), False: _("same as OLD"), None: _("not tried: {why}").format(why=trial.why)}
    styles = {True: "red", False: "green", None: "yellow"}
    return Line(f"{moved}: {words[trial.like_new]}", styles[trial.like_new], indent=2)


def _difference_text(each: Difference) -> str:
    what = _(_WHAT.get(each.what, each.what))
    named = f"{what} {each.name}".strip()
    if each.step:
        named += _(", step {step}").format(step=each.step)
    text = f"{named}: {_value(each.old)} -> {_value(each.new)}"
    if math.isfinite(each.theta):
        text += " " + _("(off by {relative}, {theta} times the expected rounding error)").format(
            relative=f"{each.relative:.2g}", theta=f"{each.theta:.2g}"
        )
    return text


def _value(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:.6g}"


def _row(label: str, text: str, style: str = "") -> Line:
    return Line(text, style, label, "dim", _INDENT)


def _curve(course: Trajectory) -> Curve:
    values = [value for _place, value in (*course.old, *course.new) if math.isfinite(value)] or [0.0]
    bounds = (min(values), max(values))
    beside = Curve("NEW", "", course.new, None, course.axis, bounds=bounds)
    return Curve("OLD", "", course.old, course.first, course.axis, beside, bounds)


def _shape(found: Comparison) -> Mapping[str, object]:
    return {
        "old": {"name": found.old.name, "distributions": dict(found.old.versions)},
        "new": {"name": found.new.name, "distributions": dict(found.new.versions)},
        "cases": found.cases,
        "skipped": dict(found.skipped),
        "differences": [each._asdict() for each in found.differences],
        "trajectory": found.trajectory._asdict() if found.trajectory else None,
        "moved": {name: {"old": was, "new": becomes} for name, (was, becomes) in found.moved.items()},
        "cause": _cause_shape(found.cause) if found.cause else None,
        "unexplained": found.unexplained,
        "trials": [{**each._asdict(), "moved": dict(each.moved)} for each in found.trials],
        "memory_mib": found.memory_mib,
        "seconds": found.seconds,
        "exit_reason": _verdict(found).text,
    }


def _cause_shape(cause: Cause) -> dict[str, object]:
    beside = {name: {"old": was, "new": becomes} for name, (was, becomes) in cause.beside.items()}
    return {**cause._asdict(), "beside": beside, "untried": list(cause.untried)}
