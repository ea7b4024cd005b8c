"""`compatcheck hook`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, NoReturn

import click

from compatcheck.results import exit_status
from compatcheck.verbs import _fix, _help, _options

if TYPE_CHECKING:
    from compatcheck.results.areas import AreaName
    from compatcheck.results.findings import Report

SECTION = "judge"
EXAMPLES = (
    "compatcheck hook configs/sft.yaml requirements.txt",
    "compatcheck hook ds.json --assume gpu.compute_capability=9.0",
)


@_help.verb()
@click.argument("files", nargs=-1, metavar="[FILE]...")
@_fix.options
@_options.assume
@_options.fail_on
@_options.select
@_options.ignore
@_options.require
@_options.baseline
@_options.project
def command(
    files: tuple[str, ...],
    fix: bool,
    write_files: bool,
    unsafe_fixes: bool,
    assume: tuple[str, ...],
    fail_on: str | None,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    require: tuple[AreaName, ...],
    baseline: str | None,
    settings_file: str | None,
    isolated: bool,
) -> NoReturn:
    """Check the files of a commit, for pre-commit.

    Each training configuration is checked with the packages that its project lists. When a package list changes, all
    configurations of the project are checked. Other files are skipped. Installed packages are ignored, and nothing is
    run or downloaded: describe the training machine with --assume or in [tool.compatcheck].
    """
    from compatcheck.project.commit import read_changes

    _fix.require_consistent(fix=fix, write_files=write_files, unsafe_fixes=unsafe_fixes)
    changes = read_changes(files)
    if not changes:
        sys.exit(exit_status.CLEAN)
    from compatcheck import matrix
    from compatcheck.pipelines import commit
    from compatcheck.pipelines.verdict import Options
    from compatcheck.report import render
    from compatcheck.report.document import Exit
    from compatcheck.report.subjects.check import document
    from compatcheck.results.findings import failing
    from compatcheck.verbs._output import write

    project = _options.settings_of(settings_file, isolated)
    options = Options(project, select, ignore, fail_on, baseline, require)
    known = matrix.load()

    def judge() -> list[Report]:
        judged = commit.judge(read_changes(files), known, options, (*project.assume, *assume))
        return [each.report for each in judged]

    if fix:
        _fix.apply(judge, known, write_files=write_files, unsafe_fixes=unsafe_fixes)
    verdicts = commit.judge(read_changes(files) if fix else changes, known, options, (*project.assume, *assume))
    for report, bar, status, reason in verdicts:
        shown = tuple(each for each in report.findings if each.status in failing(bar))
        if shown or report.remarks or status == exit_status.REQUIRED_MISSING:
            write(render(document(report._replace(findings=shown), Exit(reason, status)), "text"), None)
    sys.exit(max((each.exit_status for each in verdicts), default=exit_status.CLEAN))
