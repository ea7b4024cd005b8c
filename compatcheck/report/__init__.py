"""Stage 5: say it. One file per format; a format is a module with ``render``."""

from __future__ import annotations

from importlib import import_module

from compatcheck.results.findings import Report
from compatcheck.terminal.screen import PLAIN, Screen

FORMATS = ("text", "json", "html", "markdown", "sarif", "github", "gitlab", "junit")


def render(
    report: Report,
    format_name: str,
    *,
    exit_reason: str,
    refuted: bool = False,
    screen: Screen = PLAIN,
    verbose: bool = False,
    exit_status: int | None = None,
) -> str:
    """The report in one of `FORMATS`, ending in a newline.

    Only text is drawn for a screen, and can be verbose; SARIF alone has a field for the exit status.
    """
    if format_name == "text":
        from compatcheck.report import text

        return text.render(report, exit_reason=exit_reason, refuted=refuted, screen=screen, verbose=verbose)
    if format_name == "sarif":
        from compatcheck.report import sarif

        return sarif.render(report, exit_reason=exit_reason, exit_status=exit_status, refuted=refuted or verbose)
    unit = import_module(f"compatcheck.report.{format_name}")
    told: str = unit.render(report, exit_reason=exit_reason, refuted=refuted or verbose)
    return told
