"""`compatcheck diagnose`."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import NoReturn

import click

from compatcheck import language
from compatcheck.files.json_text import written_json
from compatcheck.language import gettext as _
from compatcheck.results import exit_status
from compatcheck.verbs import _help, _options
from compatcheck.verbs._output import screen_of, write, write_reports

SECTION = "understand"
EXAMPLES = (
    "compatcheck diagnose issue.md train.log requirements.txt",
    "gh issue view 35 --json title,body,createdAt,comments | compatcheck diagnose -",
)


@_help.verb()
@click.argument("inputs", nargs=-1, metavar="INPUT...")
@_options.python
@_options.snapshot("Check the environment recorded in this file; - is standard input.")
@_options.assume
@_options.config("INPUT")
@_options.report_format
@_options.output
@_options.reports
@_help.option("--svg", rare=True, metavar="FILE", help="Also draw the curves to this SVG file.")
@_help.option("--env", "env_only", is_flag=True, rare=True, help="Print the facts as a snapshot, without explanations.")
@_help.option("--snapshot-out", rare=True, metavar="FILE", help="Also write the facts as a snapshot to this file.")
@_help.option("--ask", "asking", is_flag=True, help="Ask on the terminal for the most decisive facts, one at a time.")
@_help.option("--all", "everything", is_flag=True, help="Print every explanation. Default: the three most probable.")
@_options.quiet
@_options.verbose("Also print all evidence for each explanation, and its sources.")
def command(
    inputs: tuple[str, ...],
    python: str | None,
    snapshot: str | None,
    assume: tuple[str, ...],
    configs: tuple[str, ...],
    format_name: str,
    output: str | None,
    reports: tuple[tuple[str, str], ...],
    svg: str | None,
    env_only: bool,
    snapshot_out: str | None,
    asking: bool,
    everything: bool,
    quiet: bool,
    verbose: bool,
) -> NoReturn:
    """Explain a fault from logs, tracebacks, bug reports or scripts.

    INPUT is a pasted report or article, JSON from gh or GitHub's API, a trainer's output, trainer_state.json, a
    TensorBoard event file, a traceback, a script, a configuration, requirements or a project folder; - is standard
    input. All inputs are read as one case. Exits with 1 if a fault was seen or explained, with 3 if nothing could be
    read.
    """

    from compatcheck import matrix
    from compatcheck.pipelines.diagnose import Given, explain, read_case
    from compatcheck.report import render
    from compatcheck.report.subjects import diagnosis
    from compatcheck.verbs import _questions

    paths = tuple(dict.fromkeys((*inputs, *configs)))
    if not (paths or python or snapshot or assume):
        raise click.UsageError(_("Missing argument 'INPUT...'."))
    if asking:
        _questions.require_terminal(paths)
    known = matrix.load()
    reading = read_case(Given(paths, python, snapshot, assume), known)
    _speak_as(text for _name, text in reading.case.texts)
    if env_only or snapshot_out is not None:
        facts = written_json(reading.case.environment.dump())
        if snapshot_out is not None:
            write(facts, snapshot_out)
        if env_only:
            write(facts, output)
            sys.exit(exit_status.CLEAN)
    found = explain(reading, known, paths)
    if asking:
        found = _questions.ask(found, reading, known)
    if svg and found.run:
        from compatcheck.report import curves

        write(curves.svg(found.run.curves, title=found.run.signature.words), svg)
    write_reports(diagnosis.document(found), reports)
    short = quiet and format_name == "text"
    answer = diagnosis.failing(found) if short else diagnosis.document(found, verbose=verbose, everything=everything)
    write(render(answer, format_name, screen_of(output)), output)
    sys.exit(exit_status.FINDINGS if found.shows_fault else exit_status.CLEAN)


def _speak_as(texts: Iterable[str]) -> None:
    """Answer in the language of the texts, where neither an option nor a variable nor the locale chooses one."""
    if language.is_open(sys.argv[1:], os.environ):
        language.use(language.language_of("\n".join(texts)), getattr(sys.stdout, "encoding", None))
