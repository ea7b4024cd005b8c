"""What a check has to say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from compatcheck import __version__
from compatcheck.model import STATUSES, Finding, Report
from compatcheck.report._markup import Html, impact_mark, joined, listed, tag
from compatcheck.report.html import _environment, _findings, _map

_BAD = ("confirmed", "affected")


class Verdict(NamedTuple):
    """The one line to take away, whether it is ``bad``, ``may`` be bad or ``good``, and what stands below it."""

    words: str
    kind: str
    more: tuple[str | None, ...] = ()


def title(report: Report) -> str:
    return _verdict(report).words


def body(report: Report, *, exit_reason: str, refuted: bool) -> Iterator[str | None]:
    bad = [finding for finding in report.findings if finding.status in _BAD]
    possible = [finding for finding in report.findings if finding.status == "possible"]
    acquitted = [finding for finding in report.findings if finding.status == "refuted"]
    yield banner(_verdict(report))
    yield _environment.glance(report.environment)
    yield _findings.cards("What is wrong, and what to do", bad)
    yield _findings.cards(
        "What may be wrong", possible, "These fit as far as the facts go; those that are missing decide."
    )
    yield _map.render(report.maps)
    yield _findings.remarks(report.remarks)
    yield _findings.set_aside(report.suppressed)
    if refuted:
        yield _findings.cards("Suspected, and refuted here", acquitted, "The probe of each passed on this machine.")
    yield _environment.unknown(report.environment)
    yield _environment.everything(report.environment)
    yield footer(report.matrix_revision, report.matrix_entries, report.matrix_date, report.matrix_stale, exit_reason)


def banner(verdict: Verdict) -> Html:
    sign = {"bad": "×", "may": "?", "good": "✓"}[verdict.kind]
    return tag(
        "header",
        tag("p", "compatcheck", class_="brand"),
        tag("h1", tag("span", sign, class_=f"sign {verdict.kind}-sign", aria_hidden="true"), " ", verdict.words),
        *verdict.more,
        class_=f"verdict {verdict.kind}-verdict",
    )


def _verdict(report: Report) -> Verdict:
    counted = Counter(finding.status for finding in report.findings)
    told = ", ".join(f"{counted[status]} {status}" for status in STATUSES if counted[status])
    bad = [finding for finding in report.findings if finding.status in _BAD]
    distinct = dict.fromkeys(finding.id for finding in bad)
    counts = tag("p", told) if told else None
    if bad:
        words = "1 known fault" if len(distinct) == 1 else f"{len(distinct)} known faults"
        return Verdict(words, "bad", (_faults(bad), counts))
    if any(finding.probe and finding.probe.outcome == "fail" for finding in report.findings):
        return Verdict("A probe found a fault on this machine that your run may meet", "may", (counts,))
    if counted["possible"]:
        return Verdict("No known fault, as far as the facts go", "may", (counts,))
    return Verdict("No known fault", "good", (counts,))


def _faults(bad: list[Finding]) -> Html:
    """Each fault in a line with its first way out."""
    first = {finding.id: finding for finding in reversed(bad)}
    rows = []
    for finding in reversed(first.values()):
        steps = next((remedy.steps for remedy in finding.remedies if remedy.steps), ())
        way = joined((": ", tag("code", steps[0]))) if steps else None
        rows.append(joined((impact_mark(finding.impact), " ", finding.title, way)))
    return listed(rows, class_="faults")


def footer(revision: str, entries: int, date: str, stale: bool, exit_reason: str) -> Html:
    dated = f" of {date}" if date else ""
    old = " It was last reviewed more than 90 days ago: compatcheck matrix update." if stale else ""
    result = f" Result: {exit_reason}." if exit_reason else ""
    return tag(
        "footer",
        tag("p", f"compatcheck {__version__}, matrix {revision}{dated}, {entries} entries.{old}{result}"),
    )
