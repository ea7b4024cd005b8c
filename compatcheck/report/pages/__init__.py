"""Pages of HTML that load nothing: the reports, each as a file or an element of somebody else's page, and the site."""

from __future__ import annotations

from collections.abc import Iterable

from compatcheck.files.secrets import masked
from compatcheck.report.document import Document
from compatcheck.report.pages import _document
from compatcheck.report.pages._page import element, page


def whole_page(document: Document) -> str:
    return page(document.title.text or "compatcheck", *_body(document))


def fragment(document: Document) -> str:
    """What a notebook shows for its ``_repr_html_``: an element with its own style; any number of them go on a page."""
    return masked(element(*_body(document)))


def _body(document: Document) -> Iterable[str | None]:
    return document.page() if document.page else _document.body(document)
