"""Judge an environment, say it, and end with the status that says how it went."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import click

from compatcheck import settings
from compatcheck.verbs import _status
from compatcheck.verbs._output import progress, screen_of, write
from compatcheck.verbs._stopwatch import stage, tell

if TYPE_CHECKING:
    from compatcheck.environment import Environment, Target
    from compatcheck.results.findings import Report
    from compatcheck.settings import Settings


def judge(
    environment: Environment,
    known: Any,
    target: Target | None,
    budget: float | None,
    require_probe: bool,
    options: dict[str, Any],
    project: Settings = settings.NONE,
    suspected: int = 0,
) -> NoReturn:
    """``project`` holds what stands where an option is not given; its ignores count in any case.

    ``suspected`` entries are told too that one package more would make possible.
    """
    from compatcheck import matrix
    from compatcheck.pipelines.check import check as compare
    from compatcheck.pipelines.check import confirm
    from compatcheck.pipelines.settle import selected, settle
    from compatcheck.report import render

    _require_apart((*(file for _, file in options["reports"]), options["output"]))
    with stage("matrix"):
        report = compare(
            environment,
            known,
            select=selected(known, options["select"], project),
            ignore=matrix.require_ids(known, options["ignore"]),
            suspected=suspected,
        )
        report = settle(report, known, project)
    if target is not None and any(finding.probe_name for finding in report.findings):
        with progress() as show, stage("probes"):
            how = {key: options[key] for key in ("device", "fresh")}
            report = confirm(report, target, budget_seconds=budget, on_probe=show, **how)
    baseline = options.get("baseline") or project.baseline
    if baseline:
        report = settings.hold_against(report, baseline)
    options["fail_on"] = options["fail_on"] or project.fail_on or "affected"
    if "html" in (options["format_name"], *(form for form, _ in options["reports"])):
        from compatcheck.pipelines.version_maps import with_maps

        report = with_maps(report, known)
    status, reason = _exit_status(report, options["fail_on"], require_probe)
    for form, file in options["reports"]:
        text = render(report, form, exit_reason=reason, exit_status=status, refuted=options["show_refuted"])
        write(text, file)
    write(_rendered(report, status, reason, options), options["output"])
    if options["verbose"]:
        tell()
    sys.exit(status)


def _require_apart(files: Sequence[str | None]) -> None:
    """Two reports in one file would leave the last alone; a device takes any number."""
    taken: set[str] = set()
    for file in filter(None, files):
        real = os.path.realpath(file)
        if real in taken:
            raise click.UsageError(f"two reports would go to {file}: name another file for one of them")
        if os.path.isfile(real) or not os.path.exists(real):
            taken.add(real)


def _rendered(report: Report, status: int, reason: str, options: dict[str, Any]) -> str:
    """The report in the format asked for; a quiet one in text is what the exit status stands for."""
    from compatcheck.report import render, text
    from compatcheck.results.findings import failing

    screen, form = screen_of(options["output"]), options["format_name"]
    if options["quiet"] and form == "text":
        told = text.render_failing(report, failing(options["fail_on"]), screen)
        return told + (f"{reason}\n" if status == _status.PROBE_MISSING else "")
    shown = {"refuted": options["show_refuted"], "verbose": options["verbose"]}
    return render(report, form, exit_reason=reason, exit_status=status, screen=screen, **shown)


def _exit_status(report: Report, fail_on: str, require_probe: bool) -> tuple[int, str]:
    """The exit status, and the reason for it in words."""
    from compatcheck.results.findings import failing

    unrun = [
        f for f in report.findings if f.probe_name and (not f.probe or f.probe.outcome in ("skip", "crash", "timeout"))
    ]
    count = sum(finding.status in failing(fail_on) for finding in report.findings)
    if require_probe and unrun:
        return _status.PROBE_MISSING, f"the probe of {unrun[0].id} could not run"
    if count:
        return _status.FINDINGS, f"{count} finding{'s' * (count > 1)} at or above {fail_on}"
    return _status.CLEAN, f"no finding at or above {fail_on}" if fail_on != "never" else "no finding counts"
