"""Markdown: the summary of a CI job, or a comment beside a change.

The verdict comes first, then a table of what is wrong; everything else is folded.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from compatcheck.files import repository
from compatcheck.files.secrets import masked
from compatcheck.language import clauses, comma_list
from compatcheck.language import gettext as _
from compatcheck.report import because, curves
from compatcheck.report._places import Place, place
from compatcheck.report._plain_text import more, probe_text
from compatcheck.report.document import Curves, Document, Findings, Table
from compatcheck.report.formats._markdown import block, cell, code, evidence, ways_out
from compatcheck.report.formats._parts import Part, parts
from compatcheck.report.steps import step_texts
from compatcheck.results.findings import Finding, Report, Status
from compatcheck.terminal.cells import padded, visible
from compatcheck.terminal.lines import Line
from compatcheck.terminal.screen import Screen

_SIGNS: dict[Status, str] = {
    "confirmed": ":x:",
    "affected": ":x:",
    "possible": ":grey_question:",
    "refuted": ":white_check_mark:",
}
_TITLE_SIGNS = {"red": ":x: ", "yellow": ":warning: ", "green": ":white_check_mark: "}


def render(document: Document, screen: Screen) -> str:
    return "\n".join(_page(document)) + "\n"


def _page(document: Document) -> Iterator[str]:
    if document.title.text:
        yield f"### compatcheck: {_sign(document.title)}{cell(document.title.text)}"
    if document.exit.reason:
        yield from ("", f"{cell(document.exit.reason)}.")
    for part in parts(document.body):
        yield ""
        if isinstance(part, Findings):
            yield from _findings(part, document)
        elif isinstance(part, Curves):
            yield from block(curves.terminal(part.curves), "text")
        elif isinstance(part, Table):
            yield from _cells(part.columns, ([cell(each) for each in row] for row in part.cells))
        else:
            yield from _part(part)
    if document.report:
        yield from _settings(document.report)
    if document.judged:
        lines = (f"{padded(line.head, 14)} {visible(line.text)}".strip() for line in document.judged)
        yield from ("", *_folded(_("What was checked"), block("\n".join(lines), "text")))


def _sign(title: Line) -> str:
    return next((sign for style, sign in _TITLE_SIGNS.items() if style in title.style), "")


def _part(part: Part) -> Iterator[str]:
    if part.heading:
        yield from (f"#### {cell(part.heading)}", "")
    for row in part.rows:
        text = "<br>".join(map(cell, row.texts))
        text = f"**{text}**" if row.strong and text else text
        yield f"- **{cell(row.label)}** {text}" if row.label else f"- {text}"


def _cells(columns: Iterable[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    names = list(columns)
    yield f"| {' | '.join(names)} |".replace("|  |", "| |")
    yield "|---" * len(names) + "|"
    yield from (f"| {' | '.join(row)} |" for row in rows)


def _findings(found: Findings, document: Document) -> Iterator[str]:
    assert document.report is not None
    root = repository.root()
    if found.lead:
        title = f"{len(found.findings)} {_(found.findings[0].status)}: {found.lead}"
        yield from _folded(title, _table(found.findings, document.report, root))
        return
    yield from _table(found.findings, document.report, root)
    for finding in _first_of_each(found.findings):
        yield from ("", *_folded(f"<b>{finding.id}</b> {_html(finding.title)}", _full_finding(finding)))


def _settings(report: Report) -> Iterator[str]:
    """What the user has set aside, and what of the settings wants a look."""
    if report.suppressed:
        names = (_("finding"), _("suppressed by"), _("why"))
        rows = [(f"{code(e.finding.id)} {cell(e.finding.title)}", _(e.by), cell(e.why)) for e in report.suppressed]
        yield from ("", *_folded(_("{count} suppressed").format(count=len(rows)), _cells(names, rows)))
    for remark in report.remarks:
        yield from ("", f"> :warning: {cell(str(remark))}")


def _first_of_each(findings: Iterable[Finding]) -> Iterable[Finding]:
    """Show an entry that applies in several places in full once; the table lists them all."""
    return list({finding.id: finding for finding in reversed(list(findings))}.values())[::-1]


def _table(findings: Iterable[Finding], report: Report, root: str) -> Iterator[str]:
    rows = []
    for finding in findings:
        named = f"{code(finding.id)} {cell(finding.title)}"
        sign = f"{_SIGNS[finding.status]} {_(finding.status)}"
        rows.append((sign, named, _where(finding, place(finding, report, root)), _first_step(finding)))
    yield from _cells(("", _("finding"), _("where"), _("what to do")), rows)


def _where(finding: Finding, at: Place) -> str:
    if at.stated:
        return code(f"{at.path}:{at.line}" if at.line else at.path)
    return comma_list(code(name) for name in finding.packages)


def _first_step(finding: Finding) -> str:
    if finding.status == "possible" and finding.missing:
        return _("supply {facts}").format(facts=comma_list(code(path) for path in dict.fromkeys(finding.missing)))
    if not finding.remedies:
        return ""
    first = finding.remedies[0]
    if first.pins:
        return "<br>".join(code(f"{name}{versions}") for name, versions in first.pins.items())
    return "<br>".join(cell(step) for step in step_texts(first))


def _full_finding(finding: Finding) -> Iterator[str]:
    yield from (clauses(_(finding.impact), _(finding.confidence), comma_list(map(code, finding.packages))), "")
    yield from (cell(finding.summary), "")
    if rests_on := because.sentence(finding):
        yield from (cell(rests_on), "")
    if finding.mechanism:
        yield from (cell(finding.mechanism), "")
    if finding.probe:
        yield from (cell(probe_text(finding.probe)), "")
    yield from (f"**{_('What to do, best first')}**", "", *ways_out(finding))
    yield from (f"**{_('Evidence')}**", "", *evidence(finding.evidence))
    yield from ("", more(finding, code))


def _folded(title: str, lines: Iterable[str]) -> Iterator[str]:
    yield from (f"<details><summary>{title}</summary>", "", *lines, "", "</details>")


def _html(text: str) -> str:
    from html import escape

    return escape(" ".join(masked(text).split())).replace("@", "@\u200b")
