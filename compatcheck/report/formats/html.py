"""HTML: one page that loads nothing, the verdict first."""

from __future__ import annotations

from compatcheck.report import pages
from compatcheck.report.document import Document
from compatcheck.terminal.screen import Screen


def render(document: Document, screen: Screen) -> str:
    return pages.whole_page(document)
