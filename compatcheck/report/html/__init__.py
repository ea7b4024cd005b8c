"""The report as one HTML file: verdict first, then what to do, then what it stands on. It loads nothing.

`fragment` gives the same for a page of somebody else's, such as a notebook.
"""

from __future__ import annotations

from compatcheck.model import Report
from compatcheck.report.html import _check, _page


def render(report: Report, *, exit_reason: str, colour: bool = False, refuted: bool = False) -> str:
    return _page.page(_check.title(report), *_check.body(report, exit_reason=exit_reason, refuted=refuted))


def fragment(report: Report, *, exit_reason: str = "", refuted: bool = False) -> str:
    """The report as an element with its own style; any number of them go on one page."""
    return _page.fragment(*_check.body(report, exit_reason=exit_reason, refuted=refuted))
