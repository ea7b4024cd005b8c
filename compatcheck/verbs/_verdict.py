"""Judge an environment, write the reports, and exit with the status of the verdict."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import click

from compatcheck.language import error_line
from compatcheck.results import exit_status
from compatcheck.terminal.messages import say
from compatcheck.terminal.stopwatch import print_times
from compatcheck.verbs._output import screen_of, write, write_reports

if TYPE_CHECKING:
    from compatcheck.environment import Environment, Target
    from compatcheck.matrix import Matrix
    from compatcheck.pipelines.environment import Subject
    from compatcheck.pipelines.verdict import Options, Probing, Verdict
    from compatcheck.report.document import Document, Exit


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

    judged = verdict.judge(environment, known, options._replace(maps=view.is_page), probing)
    _report_and_exit((("", judged),), view)


def judge_each_and_exit(
    subjects: Sequence[Subject],
    known: Matrix,
    options: Options,
    probing: Callable[[Target], Probing | None] | None,
    view: View,
) -> NoReturn:
    """The same for each project; the worst verdict decides."""
    from compatcheck.pipelines import projects

    judged, unjudged = projects.judge(subjects, known, options._replace(maps=view.is_page), probing)
    for error in unjudged:
        say(error_line(error))
    _report_and_exit(judged, view)


def _report_and_exit(judged: Sequence[tuple[str, Verdict]], view: View) -> NoReturn:
    exit = _exit(judged)
    if view.reports:
        write_reports(_document(judged, exit, view.show_refuted), view.reports)
    write(_render(judged, exit, view), view.output)
    if view.verbose:
        print_times()
    sys.exit(exit.status)


def _exit(judged: Sequence[tuple[str, Verdict]]) -> Exit:
    """That of the worst verdict."""
    from compatcheck.report.document import Exit

    folder, worst = max(judged, key=lambda each: each[1].exit_status)
    return Exit(worst.reason if len(judged) == 1 else f"{folder}: {worst.reason}", worst.exit_status)


def _document(
    judged: Sequence[tuple[str, Verdict]], exit: Exit, refuted: bool = False, verbose: bool = False
) -> Document:
    from compatcheck.report.document import Exit
    from compatcheck.report.subjects import check, projects

    documents = [
        (folder, check.document(each.report, Exit(each.reason, each.exit_status), refuted=refuted, verbose=verbose))
        for folder, each in judged
    ]
    return documents[0][1] if len(documents) == 1 else projects.document(documents, exit)


def _require_distinct_files(files: Iterable[str | None]) -> None:
    """Two reports in one file would leave the last alone; a device takes any number."""
    taken: set[str] = set()
    for file in filter(None, files):
        real = os.path.realpath(file)
        if real in taken:
            raise click.UsageError(f"two reports would be written to {file}; choose another file for one of them")
        if os.path.isfile(real) or not os.path.exists(real):
            taken.add(real)


def _render(judged: Sequence[tuple[str, Verdict]], exit: Exit, view: View) -> str:
    """The report in the format asked for; a quiet one in text holds only what fails."""
    from compatcheck.report import render
    from compatcheck.report.subjects import check
    from compatcheck.results.findings import failing

    screen = screen_of(view.output)
    if view.quiet and view.format_name == "text":
        rows = (render(check.failing(each.report, failing(each.fail_on)), "text", screen) for _, each in judged)
        return "".join(rows) + (f"{exit.reason}\n" if exit.status == exit_status.REQUIRED_MISSING else "")
    return render(_document(judged, exit, view.show_refuted, view.verbose), view.format_name, screen)
