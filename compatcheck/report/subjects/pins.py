"""What became of a request for pins: what moved and why, what it cost, what is left, and what the built set showed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from compatcheck.language import clauses, comma_list, ngettext
from compatcheck.language import gettext as _
from compatcheck.report.document import STYLES, Document
from compatcheck.report.shapes import finding_shape, probe_shape
from compatcheck.report.steps import step_text
from compatcheck.results.findings import Finding
from compatcheck.results.pins import Choice, Moved, PinReport, Trial
from compatcheck.terminal.cells import cells
from compatcheck.terminal.lines import Line

_MOST_ALONG, _LONGEST = 6, 400


def document(report: PinReport, *, verbose: bool = False) -> Document:
    """``verbose`` names every package that moves along."""
    title = Line(verdict(report), "bold")
    body = tuple(_lines(report, verbose))
    return Document(title, body, partial(_shape, report), ((title,),), page=partial(_page, report))


def _page(report: PinReport) -> Iterator[str | None]:
    from compatcheck.report.pages import _pins

    return _pins.body(report)


def _shape(report: PinReport) -> Mapping[str, object]:
    return {
        "moved": [each._asdict() for each in report.moved],
        "distance": report.distance,
        "resolutions": report.resolutions,
        "proven": report.proven,
        "unfinished": report.unfinished,
        "choices": [_choice_shape(each) for each in report.choices],
        "left": [finding_shape(finding) for finding in report.left],
        "possible": [finding_shape(finding) for finding in report.possible],
        "notes": report.notes,
        "trials": None if report.trials is None else [_trial_shape(trial) for trial in report.trials],
        "verified": report.verified,
        "unverified": report.unverified,
    }


def _choice_shape(choice: Choice) -> dict[str, object]:
    return {
        "entry": choice.entry,
        "moved": [move._asdict() for move in choice.moved],
        "settings": list(map(step_text, choice.settings)),
        "by_versions": choice.by_versions,
    }


def _trial_shape(trial: Trial) -> dict[str, Any]:
    return {
        "entry": trial.entry,
        "title": trial.title,
        "before": probe_shape(trial.before) if trial.before else None,
        "after": probe_shape(trial.after),
    }


def _lines(report: PinReport, verbose: bool) -> Iterator[Line]:
    if report.left:
        text = _("NOT CLEAN: these pins do not fix {entries}")
        yield Line(text.format(entries=comma_list(each.id for each in report.left)), "bold red")
    yield from _moves(report, None if verbose else _MOST_ALONG)
    for choice in report.choices:
        head = choice.entry if choice.by_versions else _("remaining {entry}").format(entry=choice.entry)
        yield Line(choice_in_words(choice), "", head, "bold" if choice.by_versions else "bold red", cells(head) + 2)
    by_settings = {choice.entry for choice in report.choices if not choice.by_versions}
    for finding in report.left:
        if finding.id not in by_settings:
            head = _("remaining {entry}").format(entry=finding.id)
            yield Line(f"{finding.title}: {finding.summary}{_steps(finding)}", "", head, "bold red", cells(head) + 2)
    if report.possible:
        yield Line(_possible(report), "yellow")
    for note in report.notes:
        yield Line(note, "", _("note"), "yellow", 6)
    for trial in report.trials or ():
        yield from _trial(trial)


def _possible(report: PinReport) -> str:
    named = dict.fromkeys(f"{finding.id} ({_lacking(finding, report)})" for finding in report.possible)
    text = _("possible, and not avoided: {entries}; supply the missing facts with --assume, or use --strict")
    return text.format(entries=comma_list(named))


def _lacking(finding: Finding, report: PinReport) -> str:
    if not finding.missing:
        return _("unconfirmed reports")
    text = _("missing {facts}").format(facts=comma_list(finding.missing))
    offer = _(" and ").join(f"{each.name} {each.now}" for each in report.offers.get(finding.id, ()))
    return text + (_("; {versions} avoids the finding").format(versions=offer) if offer else "")


def _moves(report: PinReport, most: int | None) -> Iterator[Line]:
    asked = [each for each in report.moved if each.is_asked]
    forced = [each for each in report.moved if each.was and not each.is_asked and each.why]
    along = [each for each in report.moved if each.was and not each.is_asked and not each.why]
    new = [each for each in report.moved if not each.was and not each.is_asked]
    width = max((len(each.name) for each in (*asked, *forced)), default=0) + 2
    for each in asked:
        entries = (f"{entry} {report.titles.get(entry, '')}".strip() for entry in each.entries)
        yield Line(f"{_step(each)}: {_('; ').join((*entries, *each.links))}", "", each.name, "bold", width)
    for each in forced:
        yield Line(f"{_step(each)}: {_proof(each, report, most)}", "", each.name, "bold", width)
    if along:
        yield Line(_("with them {packages}").format(packages=_some(along, most)), "dim")
    if new:
        yield Line(_("new {packages}").format(packages=_some(new, most)), "dim")


def _proof(move: Moved, report: PinReport, most: int | None) -> str:
    """What the resolver said of it, unless it was said already; the middle of a long proof is for those who ask."""
    if move.why == report.refusal:
        return _("the versions cannot be installed together, see above")
    short = move.why if most is None or len(move.why) <= _LONGEST else f"{move.why[:_LONGEST]} ..."
    return _("uv rejects it together with the other requirements: {why}").format(why=_(short))


def _some(moves: Sequence[Moved], most: int | None) -> str:
    shown = comma_list(f"{each.name} {_step(each) if each.was else each.now}" for each in moves[:most])
    more = 0 if most is None else len(moves) - most
    return shown + (_(" and {count} more").format(count=more) if more > 0 else "")


def _step(move: Moved) -> str:
    return f"{move.was} -> {move.now}" if move.was else _("{version} is new").format(version=move.now)


def choice_in_words(choice: Choice) -> str:
    """Both ways out, each with what it costs."""
    number = len(choice.settings)
    counted = ngettext("{count} setting", "{count} settings", number).format(count=number)
    settings = f"{_('; ').join(map(step_text, choice.settings))} ({counted})"
    if choice.by_versions:
        moves = _(" and ").join(f"{each.name} {_step(each)} ({_size(each.cost)})" for each in choice.moved)
        text = _("fixed by {moves}; with --prefer config, {settings} fixes it instead")
        return text.format(moves=moves, settings=settings)
    advised = _(" and ").join(f"{each.name} {each.now} ({_size(each.cost)})" for each in choice.moved)
    text = _("; with --prefer pins, versions fix it instead, such as {advised}")
    return settings + (text.format(advised=advised) if advised else "")


def _size(cost: int) -> str:
    major, minor = cost // 100, cost // 10
    if major:
        return ngettext("{count} major step", "{count} major steps", major).format(count=major)
    if minor:
        return ngettext("{count} minor step", "{count} minor steps", minor).format(count=minor)
    return ngettext("{count} patch", "{count} patches", cost).format(count=cost) if cost else _("no step")


def _steps(finding: Finding) -> str:
    steps = next((remedy.steps for remedy in finding.remedies if not remedy.pins), ())
    return f": {_('; ').join(map(step_text, steps))}" if steps else ""


def _trial(trial: Trial) -> Iterator[Line]:
    yield Line(f"{trial.title} ({trial.after.probe})", "", trial.entry or _("imports"), "bold", 14)
    for when, result in ((_("before"), trial.before), (_("after"), trial.after)):
        if result is not None:
            style = STYLES[result.outcome]
            yield Line(f"{result.outcome}: {_(result.why)}", style, f"  {when}", "dim", 14)


def verdict(report: PinReport) -> str:
    tries = ngettext("{count} resolution", "{count} resolutions", report.resolutions).format(count=report.resolutions)
    moves = [each for each in report.moved if each.was and each.counts]
    if not moves:
        needless = _("no package has to be held back") if report.latest else _("no version has to change")
        moved = clauses(_("no version changes") if report.left else needless, tries)
    else:
        counted = ngettext("{count} version change", "{count} version changes", len(moves)).format(count=len(moves))
        moved = clauses(counted, _("distance {cost}").format(cost=report.distance), tries)
        moved += _(": no closer set is clean") if report.proven and not report.left else ""
    if report.unfinished:
        moved += _(": no clean set found in time; raise --budget")
    elif not report.proven and not report.left:
        moved += _(": clean, but a closer set may exist")
    if report.left:
        moved += _("; these versions do not fix the remaining findings")
    if report.trials is None:
        return moved
    if report.unverified:
        return moved + _("; NOT verified: {why}").format(why=_(report.unverified))
    return moved + _("; verified: the pinned set was built and every probe passes in it") + _before(report.trials)


def _before(trials: Iterable[Trial]) -> str:
    """How many of the probes showed a fault in what there was, if that was tried."""
    outcomes = [trial.before.outcome for trial in trials if trial.before]
    failed = sum(outcome in ("fail", "crash", "timeout") for outcome in outcomes)
    if not outcomes:
        return ""
    text = _(", {count} of these probes failed before the change").format(count=failed)
    return text if failed else _(", no probe failed before the change either")
