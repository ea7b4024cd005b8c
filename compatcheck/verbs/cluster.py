"""`compatcheck cluster`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, NoReturn

import click

from compatcheck.verbs import _options, _status
from compatcheck.verbs._output import screen_of, write

if TYPE_CHECKING:
    from compatcheck.fleet import ClusterReport


@click.command()
@click.argument("paths", nargs=-1, metavar="[PATH]...")
@click.option("--snapshots", metavar="FOLDER", help="Judge the machines whose snapshots lie there.")
@_options.format_name
@_options.output
@click.option(
    "--fail-on",
    type=click.Choice(["confirmed", "affected", "possible", "never"]),
    default="affected",
    show_default=True,
    help="The least status that makes the exit status 1; with never, differences and probes do not either.",
)
@click.option("--select", multiple=True, metavar="ID", help="Only these entries.")
@click.option("--ignore", multiple=True, metavar="ID", help="All but these entries.")
def command(
    paths: tuple[str, ...],
    snapshots: str | None,
    format_name: str,
    output: str | None,
    fail_on: str,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
) -> NoReturn:
    """Judge many machines at once: what they share, where they differ, and what the matrix says of each kind."""
    from compatcheck import matrix
    from compatcheck.pipelines import cluster

    known = matrix.load()
    chosen: dict[str, Any] = {
        "select": matrix.require_ids(known, select),
        "ignore": matrix.require_ids(known, ignore),
    }
    report = cluster.recorded(snapshots or "", known, **chosen)
    _finish(report, format_name, output, fail_on)


def _finish(report: ClusterReport, format_name: str, output: str | None, fail_on: str) -> NoReturn:
    from compatcheck.report import cluster as pages

    status, reason = _exit_status(report, fail_on)
    write(pages.render(report, format_name, exit_reason=reason, screen=screen_of(output)), output)
    sys.exit(status)


def _exit_status(report: ClusterReport, fail_on: str) -> tuple[int, str]:
    """The exit status, and the reason for it in words."""
    from compatcheck.model import STATUSES

    failing = STATUSES[: STATUSES.index(fail_on) + 1] if fail_on != "never" else ()
    count = sum(finding.status in failing for finding in report.findings)
    failed = sum(trial.outcome in ("fail", "crash", "timeout") for trial in report.trials)
    slow = sum(link.slow for link in report.links)
    reasons = {
        f"findings at or above {fail_on}": count,
        "differences between nodes": len(report.differences) if fail_on != "never" else 0,
        "rank failures": len(report.failures),
        "failed probes": failed if fail_on != "never" else 0,
        "slow links": slow if fail_on != "never" else 0,
    }
    told = ", ".join(f"{number} {what}" for what, number in reasons.items() if number)
    return (_status.FINDINGS, told) if told else (_status.CLEAN, "no fault found")
