"""The report as Markdown: the summary of a CI job, or a comment beside a change.

The verdict comes first, then a table of what is wrong; everything else is folded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from compatcheck import __version__
from compatcheck.files import repository
from compatcheck.report._markdown import block, cell, code, evidence, ways_out
from compatcheck.report._places import Place, place
from compatcheck.report.steps import step_texts
from compatcheck.report.text import described
from compatcheck.results.findings import STATUSES, Finding, Report, Status

_SIGNS: dict[Status, str] = {
    "confirmed": ":x: confirmed",
    "affected": ":x: affected",
    "possible": ":grey_question: possible",
    "refuted": ":white_check_mark: refuted",
}


def render(report: Report, *, exit_reason: str, refuted: bool = False) -> str:
    return "\n".join(_page(report, exit_reason, refuted)) + "\n"


def _page(report: Report, exit_reason: str, refuted: bool) -> Iterator[str]:
    root = repository.root()
    bad = report.bad
    yield from (f"### compatcheck: {_verdict(report)}", "", f"{cell(exit_reason)}.")
    if bad:
        yield from ("", *_table(bad, report, root))
        for finding in _first_of_each(bad):
            yield from ("", *_folded(f"<b>{finding.id}</b> {_html(finding.title)}", _in_full(finding)))
    for status, meaning in (
        ("possible", "fit as far as the facts go; those that are missing decide"),
        ("refuted", "matched, but their probe passed on this machine"),
    ):
        found = [each for each in report.findings if each.status == status]
        if found and (status != "refuted" or refuted):
            yield from ("", *_folded(f"{len(found)} {status}: {meaning}", _table(found, report, root)))
    if report.suppressed:
        rows = [f"| {code(e.finding.id)} {cell(e.finding.title)} | {e.by} | {cell(e.why)} |" for e in report.suppressed]
        said = ["| finding | set aside by | why |", "|---|---|---|", *rows]
        yield from ("", *_folded(f"{len(rows)} set aside", said))
    for remark in report.remarks:
        yield from ("", f"> :warning: {cell(remark.text)}")
    yield from ("", *_folded("What was judged", _judged(report)))


def _verdict(report: Report) -> str:
    counted = Counter(finding.status for finding in report.findings)
    told = ", ".join(f"{counted[status]} {status}" for status in STATUSES[:3] if counted[status])
    if counted["confirmed"] or counted["affected"]:
        return f":x: {told}"
    return ":white_check_mark: no known fault" + (f" ({told})" if told else "")


def _first_of_each(findings: Iterable[Finding]) -> Iterable[Finding]:
    """An entry that applies in several places is told in full once; the table has them all."""
    return list({finding.id: finding for finding in reversed(list(findings))}.values())[::-1]


def _table(findings: Iterable[Finding], report: Report, root: str) -> Iterator[str]:
    yield "| | finding | where | what to do |"
    yield "|---|---|---|---|"
    for finding in findings:
        at = place(finding, report, root)
        named = f"{code(finding.id)} {cell(finding.title)}"
        yield f"| {_SIGNS[finding.status]} | {named} | {_where(finding, at)} | {_first_step(finding)} |"


def _where(finding: Finding, at: Place) -> str:
    if at.stated:
        return code(f"{at.path}:{at.line}" if at.line else at.path)
    return ", ".join(code(name) for name in finding.packages)


def _first_step(finding: Finding) -> str:
    if finding.status == "possible" and finding.missing:
        return f"state {', '.join(code(path) for path in dict.fromkeys(finding.missing))}"
    if not finding.remedies:
        return ""
    first = finding.remedies[0]
    if first.pins:
        return "<br>".join(code(f"{name}{versions}") for name, versions in first.pins.items())
    return "<br>".join(cell(step) for step in step_texts(first))


def _in_full(finding: Finding) -> Iterator[str]:
    yield from (f"{finding.impact}, {finding.confidence}, {', '.join(map(code, finding.packages))}", "")
    yield from (cell(finding.summary), "")
    if finding.mechanism:
        yield from (cell(finding.mechanism), "")
    if finding.probe:
        told = f"probe {finding.probe.probe}: {finding.probe.outcome}, {finding.probe.why}"
        yield from (cell(told), "")
    yield from ("**What to do, the best first**", "", *ways_out(finding))
    yield from ("**Evidence**", "", *evidence(finding.evidence))
    yield from ("", f"More: {code(f'compatcheck explain {finding.id}')}")


def _judged(report: Report) -> Iterator[str]:
    dated = f" of {report.matrix_date}" if report.matrix_date else ""
    rows = [("compatcheck", f"{__version__}, matrix {report.matrix_revision}{dated}, {report.matrix_entries} entries")]
    rows += described(report.environment)
    yield from block("\n".join(f"{label:<12} {text}" for label, text in rows), "text")


def _folded(title: str, lines: Iterable[str]) -> Iterator[str]:
    yield from (f"<details><summary>{title}</summary>", "", *lines, "", "</details>")


def _html(text: str) -> str:
    from html import escape

    return escape(" ".join(text.split())).replace("@", "@\u200b")
