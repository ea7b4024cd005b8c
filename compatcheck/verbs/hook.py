"""`compatcheck hook`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, NoReturn

import click

from compatcheck.verbs import _options, _status

if TYPE_CHECKING:
    from compatcheck.results.findings import Report


@click.command()
@click.argument("files", nargs=-1, metavar="[FILE]...")
@_options.assume
@_options.fail_on
@_options.select
@_options.ignore
@_options.baseline
@_options.project
def command(
    files: tuple[str, ...],
    assume: tuple[str, ...],
    fail_on: str | None,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    baseline: str | None,
    settings_file: str | None,
    isolated: bool,
) -> NoReturn:
    """Judge the files of a commit, for pre-commit and the like.

    Each training configuration among them is judged with the packages that its own project lists, and where such a list
    changes, all of the project's configurations are. Files that are none of ours are passed over. What is installed
    here does not count, and nothing is run or fetched: state the machine that trains with --assume, or in
    [tool.compatcheck].
    """
    from compatcheck.project.commit import read_changes

    changes = read_changes(files)
    if not changes:
        sys.exit(_status.CLEAN)
    from compatcheck import matrix, settings
    from compatcheck.pipelines import commit
    from compatcheck.pipelines.settle import assumed, selected, settle
    from compatcheck.report import render
    from compatcheck.verbs._output import write

    project = _options.settings_of(settings_file, isolated)
    known = matrix.load()
    judged = commit.judge(
        changes,
        known,
        assume=(*assumed(project), *assume),
        select=selected(known, select, project),
        ignore=matrix.require_ids(known, ignore),
    )
    bar = fail_on or project.fail_on or "affected"
    failed = False
    for _, report in judged:
        report = settle(report, known, project, whole=False)
        held = baseline or project.baseline
        report = settings.hold_against(report, held) if held else report
        told = _told(report, bar)
        failed |= bool(told.findings)
        if told.findings or told.remarks:
            write(render(told, "text", exit_reason=""), None)
    sys.exit(_status.FINDINGS if failed else _status.CLEAN)


def _told(report: Report, fail_on: str) -> Report:
    """The report with what makes a commit fail: who commits is not to read what may be."""
    from compatcheck.results.findings import failing

    return report._replace(findings=tuple(each for each in report.findings if each.status in failing(fail_on)))
