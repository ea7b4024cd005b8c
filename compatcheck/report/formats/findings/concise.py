"""One line for each finding, as editors and compilers write them: ``file:line: ID status: title; what to do``."""

from __future__ import annotations

from collections.abc import Iterator

from compatcheck.files import repository
from compatcheck.language import gettext as _
from compatcheck.report._places import place
from compatcheck.report._plain_text import first_fix
from compatcheck.report.document import Document
from compatcheck.results.findings import Finding, Report
from compatcheck.terminal.cells import visible
from compatcheck.terminal.screen import Screen


def render(document: Document, screen: Screen) -> str:
    """The findings, the worst first, then what could not be read, and the verdict in words at the end."""
    said = f"compatcheck: {document.exit.reason}"
    return "".join(f"{visible(line)}\n" for line in (*_lines(document.findings), said))


def _lines(report: Report) -> Iterator[str]:
    root = repository.root()
    for finding in report.findings:
        if finding.status != "refuted":
            at = place(finding, report, root)
            yield f"{at.path}:{at.line or 1}: {finding.id} {_(finding.status)}: {_one_line(_message(finding))}"
    for remark in report.remarks:
        location = remark.location
        yield f"{location.file}:{location.line or 1}: {_one_line(remark.text)}" if location else _one_line(remark.text)


def _message(finding: Finding) -> str:
    return f"{finding.title}. {first_fix(finding)}" if finding.remedies else finding.title


def _one_line(text: str) -> str:
    return " ".join(text.split())
