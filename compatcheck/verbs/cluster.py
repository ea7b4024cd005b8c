"""`compatcheck cluster`."""

from __future__ import annotations

import os
import sys
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

import click

from compatcheck.results import exit_status
from compatcheck.verbs import _options
from compatcheck.verbs._output import make_folder, screen_of, write

if TYPE_CHECKING:
    from compatcheck.results.cluster import ClusterReport

EXAMPLES = (
    "srun python -m compatcheck cluster ds.json",
    "compatcheck cluster --snapshots snapshots/ --fail-on confirmed",
)


@click.command()
@click.argument("paths", nargs=-1, metavar="[PATH]...")
@click.option("--snapshots", metavar="FOLDER", help="Judge the machines whose snapshots are in this folder.")
@click.option("--record", metavar="FOLDER", help="Only write this machine's snapshot to this folder.")
@_options.python
@click.option("--hash-weights", is_flag=True, help="Also hash the weight files of a model folder.")
@click.option("--no-probe", is_flag=True, help="Compare the machines without running probes.")
@click.option("--probe", "probes", multiple=True, metavar="PROBE", help="Run only this probe; repeatable.")
@click.option(
    "--budget",
    type=click.FloatRange(min=0),
    metavar="SECONDS",
    help="Total time budget for the collectives probe. Default: 20 on the CPU, 60 on GPUs.",
)
@_options.device
@click.option(
    "--timeout",
    type=click.FloatRange(min=1),
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="Timeout for a rank to connect or an operation to finish.",
)
@_options.report_format
@_options.output
@click.option(
    "--fail-on",
    type=click.Choice(["confirmed", "affected", "possible", "never"]),
    default="affected",
    show_default=True,
    help="Exit with 1 if any finding has at least this status; never also covers differences and probes.",
)
@click.option("--select", multiple=True, metavar="ID", help="Check only this entry; repeatable.")
@click.option("--ignore", multiple=True, metavar="ID", help="Skip this entry; repeatable.")
@_options.project
def command(
    paths: tuple[str, ...],
    snapshots: str | None,
    record: str | None,
    python: str | None,
    hash_weights: bool,
    no_probe: bool,
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

    names = () if no_probe else cluster.choose(probes)
    trials = cluster.Trials(names, device, timeout, {} if budget is None else {"seconds": budget})
    publish = partial(_publish, **options)
    chosen.update(python=python, hash_weights=hash_weights)
    sys.exit(cluster.take_part(launch(os.environ), known, paths, trials, publish, **chosen))


def _publish(report: ClusterReport, format_name: str, output: str | None, fail_on: str) -> int:
    """Say the verdict; gives the exit status."""
    from compatcheck.report import render
    from compatcheck.report.document import Exit
    from compatcheck.report.subjects.cluster import document

    status, reason = _exit_status(report, fail_on)
    write(render(document(report, Exit(reason, status)), format_name, screen_of(output)), output)
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
    told = ", ".join(f"{number} {what}" for what, number in reasons.items() if number)
    if told:
        return exit_status.FINDINGS, told
    return (exit_status.INTERRUPTED, "cut short") if report.cut_short else (exit_status.CLEAN, "no fault found")
