"""Stage 5: say it. One file per format; a format is a module with ``render``."""

from __future__ import annotations

from importlib import import_module

from compatcheck.model import Report

FORMATS = ("text", "json")


def render(report: Report, format_name: str, *, exit_reason: str, colour: bool = False, refuted: bool = False) -> str:
    """The report in one of `FORMATS`, ending in a newline."""
    unit = import_module(f"compatcheck.report.{format_name}")
    text: str = unit.render(report, exit_reason=exit_reason, colour=colour, refuted=refuted)
    return text
