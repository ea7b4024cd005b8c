"""`compatcheck compare`."""

from __future__ import annotations

import sys
from typing import NoReturn

import click

from compatcheck.results import exit_status
from compatcheck.verbs import _help, _options
from compatcheck.verbs._output import progress, screen_of, write, write_reports

SECTION = "understand"
EXAMPLES = (
    "compatcheck compare .venv ../upgraded/.venv",
    "compatcheck compare old.txt new.txt --model merged/ --config train.yaml",
)


@_help.verb()
@click.argument("old")
@click.argument("new")
@_options.model
@_options.one_config(_options.SETTINGS_OF_A_RUN)
@_options.trust_remote_code
@_help.option("--no-bisect", is_flag=True, help="Stop at the first difference; do not look for the package.")
@_options.budget("Stop building environments after this many seconds. Default: no limit.")
@_help.option("--draft", "draft_file", metavar="FILE", help="Write a draft of a matrix entry about the difference.")
@_options.page_format
@_options.output
@_options.page_reports
@_options.quiet
@_options.verbose("Also print the cases that were not compared and the environments that were tried.")
def command(
    old: str,
    new: str,
    model: str | None,
    training: str | None,
    trust_remote_code: bool,
    no_bisect: bool,
    budget: float | None,
    draft_file: str | None,
    format_name: str,
    output: str | None,
    reports: tuple[tuple[str, str], ...],
    quiet: bool,
    verbose: bool,
) -> NoReturn:
    """Name the package whose release changes the training result.

    OLD and NEW are each an interpreter or venv folder, a requirements file, or a snapshot from `compatcheck env`.
    Files are built into temporary environments. Both train the same small model on the same batches; values that
    differ by more than rounding are reported, and environments between the two are built to find the cause. Nothing
    is uploaded.

    Exit status: 0 for no difference, 1 for a difference, 2 for wrong input, 3 if nothing could be compared.
    """
    from compatcheck import matrix
    from compatcheck.pipelines import compare as comparing
    from compatcheck.pipelines import probe as probing
    from compatcheck.report import render
    from compatcheck.report.subjects import comparison as subject
    from compatcheck.terminal.progress import building_progress

    asked = {**probing.context(model, training), "trust_remote_code": trust_remote_code}
    found = comparing.compare(
        old, new, asked, matrix.load(), building_progress, progress, bisect=not no_bisect, budget_seconds=budget
    )
    draft = comparing.draft(found) if draft_file else None
    if draft is not None:
        write(draft, draft_file)
    write_reports(subject.document(found), reports)
    document = subject.brief(found) if quiet and format_name == "text" else subject.document(found, verbose=verbose)
    write(render(document, format_name, screen_of(output)), output)
    sys.exit(exit_status.FINDINGS if found.differences else exit_status.CLEAN)
