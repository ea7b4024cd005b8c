"""The verdicts on several projects, each below its own heading."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from compatcheck.language import ngettext
from compatcheck.report.document import Block, Document, Exit
from compatcheck.results.findings import Report
from compatcheck.terminal.cells import cells
from compatcheck.terminal.lines import Line

Part = tuple[str, Document]
"""The folder of a project and its own document, as `check.document` makes it."""

_TONES = ("red", "yellow", "green")


def document(parts: Sequence[Part], exit: Exit) -> Document:
    """The worst verdict is the title, the verdict on each project the ending."""
    label = 2 + max(cells(folder) for folder, _ in parts)
    rows = (Line(each.title.text, _tone(each), folder, "", label) for folder, each in parts)
    title = _title(parts)
    return Document(
        title,
        (*(block for part in parts for block in _section(part)), Line()),
        partial(_shape, parts, exit),
        ((title, *rows),),
        judged=parts[0][1].judged[:1],
        repeats_title=True,
        report=_together([each.findings for _, each in parts]),
        exit=exit,
        page=partial(_page, parts),
    )


def _title(parts: Sequence[Part]) -> Line:
    bad = sum(bool(each.findings.bad) for _, each in parts)
    tone = min((_tone(each) for _, each in parts), key=_TONES.index)
    text = ngettext("{bad} of {count} projects has known faults", "{bad} of {count} projects have known faults", bad)
    return Line(text.format(bad=bad, count=len(parts)), f"bold {tone}")


def _tone(document: Document) -> str:
    return next((tone for tone in _TONES if tone in document.title.style), "green")


def _section(part: Part) -> Iterator[Block]:
    folder, document = part
    yield from (Line(), Line(folder, "bold"))
    yield from document.judged[1:]
    yield from document.body
    for lines in document.ending:
        yield from (line._replace(style=line.style.removeprefix("bold ")) for line in lines)


def _shape(parts: Sequence[Part], exit: Exit) -> Mapping[str, object]:
    return {
        "projects": [{"project": folder, **document.shape()} for folder, document in parts],
        "exit_reason": exit.reason,
    }


def _together(reports: Sequence[Report]) -> Report:
    """What the formats show that hold findings alone."""
    return reports[0]._replace(
        findings=tuple(finding for report in reports for finding in report.findings),
        suppressed=tuple(each for report in reports for each in report.suppressed),
        remarks=tuple(dict.fromkeys(remark for report in reports for remark in report.remarks)),
        maps=(),
    )


def _page(parts: Sequence[Part]) -> Iterator[str | None]:
    from compatcheck.report.pages.markup import tag

    for folder, document in parts:
        yield tag("h1", folder)
        yield from document.page() if document.page else ()
