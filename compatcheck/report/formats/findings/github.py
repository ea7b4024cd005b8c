"""Findings as annotations of a GitHub workflow: commands that its runner reads from standard output.

https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-commands
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from compatcheck.files import repository
from compatcheck.language import gettext as _
from compatcheck.report._places import Place, below, place
from compatcheck.report._plain_text import lines, more
from compatcheck.report.document import Document
from compatcheck.results.findings import Finding, Remark, Status
from compatcheck.terminal.cells import spelled_out
from compatcheck.terminal.screen import Screen

MOST_SHOWN = 10
"""So many annotations of a kind GitHub shows for a step; what comes first counts."""

_COMMANDS: dict[Status, str] = {
    "confirmed": "error",
    "affected": "error",
    "possible": "notice",
    "refuted": "debug",
}


def render(document: Document, screen: Screen) -> str:
    """A command for each finding, the worst first, and the verdict in words at the end."""
    report = document.findings
    root = repository.root()
    shown = report.findings
    commands = [_annotation(each, place(each, report, root)) for each in shown]
    commands += [_remark(each, root) for each in report.remarks]
    said = f"compatcheck: {data(document.exit.reason)}"
    return "".join(f"{spelled_out(line)}\n" for line in (*commands, *_too_many(shown), said))


def _annotation(finding: Finding, at: Place) -> str:
    message = "\n".join(
        (
            f"{_(finding.status)}: " + "\n".join(lines(finding)),
            more(finding),
        )
    )
    return command(_COMMANDS[finding.status], f"{finding.id} {finding.title}", message, at)


def _remark(remark: Remark, root: str) -> str:
    at = below(remark.location, root) if remark.location else None
    return command("warning", "compatcheck", remark.text, at)


def command(name: str, title: str, message: str, at: Place | None) -> str:
    """One command of the runner; without a place it belongs to the step."""
    properties = {"title": title}
    if at and at.stated:
        properties = {"file": at.path, **({"line": str(at.line)} if at.line else {}), **properties}
    stated = ",".join(f"{key}={_property(value)}" for key, value in properties.items())
    return f"::{name} {stated}::{data(message)}"


def data(text: str) -> str:
    """The text as the runner reads it back; a line of its own would be a command of its own."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return data(text).replace(":", "%3A").replace(",", "%2C")


def _too_many(shown: Sequence[Finding]) -> Iterator[str]:
    counted = Counter(_COMMANDS[finding.status] for finding in shown)
    for name, count in counted.items():
        if name != "debug" and count > MOST_SHOWN:
            text = _("{count} annotations of the kind {kind}; GitHub shows the first {most} of a step")
            yield f"compatcheck: {text.format(count=count, kind=name, most=MOST_SHOWN)}"
