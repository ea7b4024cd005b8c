"""Judge an environment, write the reports, and exit with the status of the verdict."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import click

from compatcheck.results import exit_status
from compatcheck.terminal.stopwatch import print_times
from compatcheck.verbs._output import screen_of, write

if TYPE_CHECKING:
    from compatcheck.environment import Environment
    from compatcheck.matrix import Matrix
    from compatcheck.pipelines.verdict import Options, Probing, Verdict


class View(NamedTuple):
    """The options that say what is shown of a verdict, and where."""

    format_name: str
    output: str | None
    reports: tuple[tuple[str, str], ...]
    show_refuted: bool
    quiet: bool
    verbose: bool

    @property
    def is_page(self) -> bool:
        return "html" in (self.format_name, *(name for name, _ in self.reports))


def view_of(options: Mapping[str, Any]) -> View:
    """The view that the options of a verb ask for. Raises `UsageError` where two reports go to one file."""
    view = View(**{name: options[name] for name in View._fields})
    _require_distinct_files((*(file for _, file in view.reports), view.output))
    return view


def options_of(options: Mapping[str, Any]) -> Options:
    """The part of those options that says how to judge."""
    from compatcheck.pipelines.verdict import Options

    return Options(select=options["select"], ignore=options["ignore"], fail_on=options["fail_on"])


def judge_and_exit(
    environment: Environment, known: Matrix, options: Options, probing: Probing | None, view: View
) -> NoReturn:
    from compatcheck.pipelines import verdict
    from compatcheck.report import render
    from compatcheck.report.document import Exit
    from compatcheck.report.subjects import check

    judged = verdict.judge(environment, known, options._replace(maps=view.is_page), probing)
    exit = Exit(judged.reason, judged.exit_status)
    for name, file in view.reports:
        write(render(check.document(judged.report, exit, refuted=view.show_refuted), name), file)
    write(_render(judged, view), view.output)
    if view.verbose:
        print_times()
    sys.exit(judged.exit_status)


def _require_distinct_files(files: Iterable[str | None]) -> None:
    """Two reports in one file would leave the last alone; a device takes any number."""
    taken: set[str] = set()
    for file in filter(None, files):
        real = os.path.realpath(file)
        if real in taken:
            raise click.UsageError(f"two reports would go to {file}: name another file for one of them")
        if os.path.isfile(real) or not os.path.exists(real):
            taken.add(real)


def _render(judged: Verdict, view: View) -> str:
    """The report in the format asked for; a quiet one in text holds only what fails."""
    from compatcheck.report import render
    from compatcheck.report.document import Exit
    from compatcheck.report.subjects import check
    from compatcheck.results.findings import failing

    screen = screen_of(view.output)
    if view.quiet and view.format_name == "text":
        lines = render(check.failing(judged.report, failing(judged.fail_on)), "text", screen)
        return lines + (f"{judged.reason}\n" if judged.exit_status == exit_status.REQUIRED_MISSING else "")
    exit = Exit(judged.reason, judged.exit_status)
    document = check.document(judged.report, exit, refuted=view.show_refuted, verbose=view.verbose)
    return render(document, view.format_name, screen)
