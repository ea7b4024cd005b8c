"""What became of a request for pins: what moves and why, what is left, and what the built set showed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from compatcheck.language import gettext as _
from compatcheck.report.pages import _error_bars, _findings, _map
from compatcheck.report.pages._probes import sign
from compatcheck.report.pages._verdict import Verdict, banner, footer
from compatcheck.report.pages.markup import Html, joined, listed, section, tag
from compatcheck.report.subjects import pins as subject
from compatcheck.results.findings import ProbeResult
from compatcheck.results.pins import Moved, PinReport, Trial


def body(report: PinReport) -> Iterator[str | None]:
    yield banner(verdict(report))
    yield _moves(report)
    yield _choices(report)
    yield _trials(report.trials)
    by_settings = {choice.entry for choice in report.choices if not choice.by_versions}
    left = [finding for finding in report.left if finding.id not in by_settings]
    yield _findings.cards(_("Left for you to fix"), left)
    yield _map.render(report.maps)
    yield _findings.cards(
        _("What may be wrong"),
        report.possible,
        _("Facts about these findings are missing, and the pins do not avoid them."),
    )
    yield section(_("Notes"), listed(report.notes)) if report.notes else None
    yield footer()


def verdict(report: PinReport) -> Verdict:
    text = subject.verdict(report)
    more = (tag("p", f"{text[:1].upper()}{text[1:]}."),)
    if report.refuted:
        return Verdict(_("A probe fails in the pinned set"), "bad", more)
    if report.left:
        return Verdict(
            _("{count} findings remain that versions do not fix").format(count=len(report.left)), "bad", more
        )
    if report.unverified:
        return Verdict(_("Unverified pins"), "may", more)
    if report.unfinished:
        return Verdict(_("No clean set was found in time"), "may", more)
    if not any(each.was for each in report.moved):
        return Verdict(_("No version has to change"), "good", more)
    return Verdict(_("Verified pins") if report.verified else _("Pins with no known fault"), "good", more)


def _moves(report: PinReport) -> Html:
    asked = [each for each in report.moved if each.is_asked]
    along = [each for each in report.moved if not each.is_asked]
    lines = "\n".join(f"{each.name}=={each.now}" for each in asked)
    heading = _("Also changes ({count})").format(count=len(along))
    folded = tag("details", tag("summary", heading), _table(report, along)) if along else None
    shown = (_table(report, asked), _findings.copied(lines)) if asked else ()
    return section(_("What changes, and why"), *shown, folded)


def _table(report: PinReport, moves: Sequence[Moved]) -> Html:
    heads = [tag("th", words, scope="col") for words in (_("Package"), _("Was"), _("Now"), _("Reason"))]
    rows = [
        tag(
            "tr",
            tag("th", each.name, scope="row"),
            tag("td", each.was or _("not there"), class_="number"),
            tag("td", tag("strong", each.now), class_="number"),
            tag("td", *_reasons(report, each)),
        )
        for each in moves
    ]
    return tag("div", tag("table", tag("thead", tag("tr", *heads)), tag("tbody", *rows), class_="moves"), class_="wide")


def _reasons(report: PinReport, move: Moved) -> Iterator[Html]:
    for at, entry in enumerate(move.entries):
        yield joined((tag("br") if at else None, f"{report.titles.get(entry, '')} ", tag("small", entry)))
    for at, link in enumerate(move.links, len(move.entries)):
        yield joined((tag("br") if at else None, link))


def _choices(report: PinReport) -> Html:
    rows = [joined((tag("strong", choice.entry), " ", subject.choice_in_words(choice))) for choice in report.choices]
    return section(_("Versions or settings"), listed(rows))


def _trials(trials: Sequence[Trial] | None) -> Html:
    return section(_("Probes before and after the change"), *map(_trial, trials)) if trials else Html()


def _trial(trial: Trial) -> Html:
    pairs = [(when, result) for when, result in ((_("before"), trial.before), (_("after"), trial.after)) if result]
    title = f"{trial.title[:1].upper()}{trial.title[1:]}"
    charts = [_error_bars.worst(_error_bars.bars_of(result.measured)) for _, result in pairs]
    head = [tag("th", words, scope="col") for words in ("", _("Outcome"))]
    head += [_error_bars.head()] if any(charts) else []
    rows = [_when(when, result, bar, any(charts)) for (when, result), bar in zip(pairs, charts)]
    name = joined((tag("code", trial.after.probe), f" · {trial.entry}" if trial.entry else ""))
    return tag(
        "article",
        tag("h3", title),
        tag("p", name, class_="meta"),
        tag(
            "div", tag("table", tag("thead", tag("tr", *head)), tag("tbody", *rows), class_="bars trial"), class_="wide"
        ),
    )


def _when(when: str, result: ProbeResult, bar: _error_bars.Bar | None, charted: bool) -> Html:
    return tag(
        "tr",
        tag("th", when, scope="row"),
        tag("td", sign(result.outcome), " ", tag("strong", _(result.outcome)), ": ", result.why),
        _error_bars.error_cell(bar) if charted else None,
    )
