"""Judge an environment, say it, and end with the status that says how it went."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, NoReturn

from compatcheck import settings
from compatcheck.verbs import _status
from compatcheck.verbs._output import progress, screen_of, write

if TYPE_CHECKING:
    from compatcheck.model import Environment, Report, Target
    from compatcheck.settings import Settings


def judge(
    environment: Environment,
    known: Any,
    target: Target | None,
    budget: float | None,
    require_probe: bool,
    options: dict[str, Any],
    project: Settings = settings.NONE,
) -> NoReturn:
    """``project`` holds what stands where an option is not given; its ignores count in any case."""
    from compatcheck import matrix
    from compatcheck.pipelines.check import check as compare
    from compatcheck.pipelines.check import confirm
    from compatcheck.pipelines.settled import selected, settle
    from compatcheck.report import render

    report = compare(
        environment,
        known,
        select=selected(known, options["select"], project),
        ignore=matrix.require_ids(known, options["ignore"]),
    )
    report = settle(report, known, project)
    if target is not None and any(finding.probe_name for finding in report.findings):
        with progress() as show:
            how = {key: options[key] for key in ("device", "fresh")}
            report = confirm(report, target, budget_seconds=budget, on_probe=show, **how)
    baseline = options.get("baseline") or project.baseline
    if baseline:
        report = settings.hold_against(report, baseline)
    status, reason = _exit_status(report, options["fail_on"] or project.fail_on or "affected", require_probe)
    for form, file in options["reports"]:
        write(render(report, form, exit_reason=reason, refuted=options["show_refuted"]), file)
    screen = screen_of(options["output"])
    text = render(report, options["format_name"], exit_reason=reason, refuted=options["show_refuted"], screen=screen)
    write(text, options["output"])
    sys.exit(status)


def _exit_status(report: Report, fail_on: str, require_probe: bool) -> tuple[int, str]:
    """The exit status, and the reason for it in words."""
    from compatcheck.model import STATUSES

    unrun = [
        f for f in report.findings if f.probe_name and (not f.probe or f.probe.outcome in ("skip", "crash", "timeout"))
    ]
    failing = STATUSES[: STATUSES.index(fail_on) + 1] if fail_on != "never" else ()
    count = sum(finding.status in failing for finding in report.findings)
    if require_probe and unrun:
        return _status.PROBE_MISSING, f"the probe of {unrun[0].id} could not run"
    if count:
        return _status.FINDINGS, f"{count} findings at or above {fail_on}"
    return _status.CLEAN, f"no finding at or above {fail_on}"
