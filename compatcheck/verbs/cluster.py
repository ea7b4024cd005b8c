"""`compatcheck cluster`."""

from __future__ import annotations

import os
import sys
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

import click

from compatcheck.language import comma_list
from compatcheck.results import exit_status
from compatcheck.verbs import _help, _options
from compatcheck.verbs._output import make_folder, screen_of, write, write_reports

if TYPE_CHECKING:
    from compatcheck.results.cluster import ClusterReport

SECTION = "fleet"
EXAMPLES = (
    "srun python -m compatcheck cluster ds.json",
    "compatcheck cluster --snapshots snapshots/ --fail-on confirmed",
)


@_help.verb()
@click.argument("paths", nargs=-1, metavar="[PATH]...")
@_help.option("--snapshots", metavar="FOLDER", help="Check the machines whose snapshots are in this folder.")
@_options.trust
@_help.option("--record", metavar="FOLDER", help="Only write this machine's snapshot to this folder.")
@_options.python
@_options.config("PATH")
@_options.hash_weights
@_options.probe("Run probes on the ranks. Default: yes.")
@_help.option("--only", "probes", multiple=True, rare=True, metavar="PROBE", help="Run only this probe; repeatable.")
@_options.budget("Total time budget for the collectives probe. Default: 20 on the CPU, 60 on GPUs.", rare=True)
@_options.device
@_help.option(
    "--timeout",
    type=click.FloatRange(min=1),
    default=60.0,
    show_default=True,
    rare=True,
    metavar="SECONDS",
    help="Timeout for a rank to connect or an operation to finish.",
)
@_options.report_format
@_options.output
@_options.reports
@_help.option(
    "--fail-on",
    type=click.Choice(["confirmed", "affected", "possible", "never"]),
    default="affected",
    metavar="STATUS",
    help=(
        "Exit with 1 if any finding has at least this status: confirmed, affected, possible or "
        "never. With never, differences and failed probes do not count either. Default: affected."
    ),
)
@_options.select
@_options.ignore
@_options.project
def command(
    paths: tuple[str, ...],
    configs: tuple[str, ...],
    snapshots: str | None,
    record: str | None,
    python: str | None,
    hash_weights: bool,
    probe: bool | None,
    probes: tuple[str, ...],
    budget: float | None,
    device: str,
    timeout: float,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    settings_file: str | None,
    isolated: bool,
    **options: Any,
) -> NoReturn:
    """Compare many machines and report what will not work together.

    Start it like the training: torchrun --nnodes=2 --nproc-per-node=8 ... -m compatcheck cluster, or under srun or
    mpirun. Each rank reports its environment and rank 0 prints one report. PATH is a file or folder of the project,
    as for check. If the machines cannot connect, run --record FOLDER on each, then --snapshots FOLDER. Entries that
    [tool.compatcheck] ignores in every file are ignored.
    """
    from compatcheck import matrix
    from compatcheck.pipelines import cluster
    from compatcheck.pipelines.verdict import ignored_everywhere

    paths = (*paths, *configs)
    known, project = matrix.load(), _options.settings_of(settings_file, isolated)
    chosen: dict[str, Any] = {
        "select": matrix.require_ids(known, select),
        "ignore": (*ignored_everywhere(known, project), *matrix.require_ids(known, ignore)),
    }
    if record is not None:
        make_folder(record)
        click.echo(cluster.record(record, known, paths, python, hash_weights), err=True)
        sys.exit(exit_status.CLEAN)
    if snapshots is not None:
        sys.exit(_publish(cluster.recorded(snapshots, known, **chosen), **options))
    from compatcheck.cluster import launch

    names = () if probe is False else cluster.choose(probes)
    trials = cluster.Trials(names, device, timeout, {} if budget is None else {"seconds": budget})
    publish = partial(_publish, **options)
    chosen.update(python=python, hash_weights=hash_weights)
    sys.exit(cluster.take_part(launch(os.environ), known, paths, trials, publish, **chosen))


def _publish(report: ClusterReport, format_name: str, output: str | None, fail_on: str, reports: Any) -> int:
    """Say the verdict; gives the exit status."""
    from compatcheck.report import render
    from compatcheck.report.document import Exit
    from compatcheck.report.subjects.cluster import document

    status, reason = _exit_status(report, fail_on)
    written = document(report, Exit(reason, status))
    write_reports(written, reports)
    write(render(written, format_name, screen_of(output)), output)
    return status


def _exit_status(report: ClusterReport, fail_on: str) -> tuple[int, str]:
    """The exit status, and the reason for it in words."""
    from compatcheck.results.findings import failing

    count = sum(finding.status in failing(fail_on) for finding in report.findings)
    failed = sum(trial.outcome in ("fail", "crash", "timeout") for trial in report.trials)
    slow = sum(link.slow for link in report.links)
    reasons = {
        f"findings at or above {fail_on}": count,
        "differences between nodes": len(report.differences) if fail_on != "never" else 0,
        "rank failures": len(report.failures),
        "failed probes": failed if fail_on != "never" else 0,
        "slow links": slow if fail_on != "never" else 0,
    }
    told = comma_list(f"{number} {what}" for what, number in reasons.items() if number)
    if told:
        return exit_status.FINDINGS, told
    return (exit_status.INTERRUPTED, "ended early") if report.cut_short else (exit_status.CLEAN, "no fault found")
