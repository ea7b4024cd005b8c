"""Reports as one HTML file each: verdict first, then what to do, then what it stands on. They load nothing.

`fragment` and its like give the same for a page of somebody else's, such as a notebook.
"""

from __future__ import annotations

from collections.abc import Sequence

from compatcheck.report.html import _check, _diagnosis, _pins, _probes
from compatcheck.report.html._page import element, page
from compatcheck.results.findings import ProbeResult, Report
from compatcheck.results.logs import Diagnosis
from compatcheck.results.pins import PinReport


def render(report: Report, *, exit_reason: str, refuted: bool = False) -> str:
    return page(_check.verdict(report).words, *_check.body(report, exit_reason=exit_reason, refuted=refuted))


def render_probes(results: Sequence[ProbeResult]) -> str:
    return page(_probes.verdict(results).words, *_probes.body(results))


def render_pins(report: PinReport) -> str:
    return page(_pins.verdict(report).words, *_pins.body(report))


def render_diagnosis(diagnosis: Diagnosis) -> str:
    return page(_diagnosis.verdict(diagnosis).words, *_diagnosis.body(diagnosis))


def fragment(report: Report | PinReport | Sequence[ProbeResult]) -> str:
    """What a notebook shows for its ``_repr_html_``: an element with its own style; any number of them go on a page."""
    if isinstance(report, Report):
        return element(*_check.body(report, exit_reason="", refuted=True))
    if isinstance(report, PinReport):
        return element(*_pins.body(report))
    return element(*_probes.body(report))
