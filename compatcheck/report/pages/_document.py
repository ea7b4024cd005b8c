"""The page of any document that has none of its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from compatcheck.language import gettext as _
from compatcheck.report import curves
from compatcheck.report.document import Curves, Document, Findings, Table
from compatcheck.report.formats._parts import Part, Row, parts
from compatcheck.report.pages import _findings
from compatcheck.report.pages._verdict import Verdict, banner, footer
from compatcheck.report.pages.markup import Html, joined, section, tag

Kind = Literal["bad", "may", "good"]
_KINDS: dict[str, Kind] = {"red": "bad", "yellow": "may", "green": "good"}


def body(document: Document) -> Iterator[str | None]:
    if document.title.text:
        kind: Kind = next((kind for style, kind in _KINDS.items() if style in document.title.style), "may")
        yield banner(Verdict(document.title.text, kind))
    for part in parts((*document.judged, *document.body)):
        if isinstance(part, Findings):
            yield _findings.cards(part.lead or _("What is wrong, and what to do"), part.findings)
        elif isinstance(part, Curves):
            yield tag("figure", Html(curves.embedded(part.curves, part.title)))
        elif isinstance(part, Table):
            yield _table(part)
        else:
            yield _part(part)
    yield footer(exit_reason=document.exit.reason)


def _part(part: Part) -> Html:
    body = [tag("tr", tag("th", row.label, scope="row"), tag("td", *_texts(row))) for row in part.rows]
    table = tag("div", tag("table", tag("tbody", *body)), class_="wide") if body else None
    return section(part.heading, table) if part.heading else tag("section", table)


def _texts(row: Row) -> Iterator[Html]:
    for at, text in enumerate(row.texts):
        yield joined((tag("br") if at else None, tag("strong", text) if row.strong else text))


def _table(table: Table) -> Html:
    heads = [tag("th", name, scope="col") for name in table.columns]
    rows = [tag("tr", *(tag("td", cell) for cell in row)) for row in table.cells]
    return tag("div", tag("table", tag("thead", tag("tr", *heads)), tag("tbody", *rows)), class_="wide")
