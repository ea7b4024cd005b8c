"""`compatcheck model`."""

from __future__ import annotations

import sys
from typing import NoReturn

import click

from compatcheck.results import exit_status
from compatcheck.verbs import _help, _options
from compatcheck.verbs._output import screen_of, write, write_reports

SECTION = "judge"
EXAMPLES = (
    "compatcheck model THUDM/glm-4-9b-chat",
    "compatcheck model base/ --against merged/",
)


@_help.verb()
@click.argument("model")
@_help.option("--against", metavar="MODEL", help="Show what changed from the first model to this model.")
@_help.option(
    "--online", is_flag=True, help="Fetch the small files of a model from the hub if the model is not cached."
)
@_options.hash_weights
@_options.assume
@_options.report_format
@_options.output
@_options.reports
@_options.quiet
def command(
    model: str,
    against: str | None,
    online: bool,
    hash_weights: bool,
    assume: tuple[str, ...],
    format_name: str,
    output: str | None,
    reports: tuple[tuple[str, str], ...],
    quiet: bool,
) -> NoReturn:
    """Check a model's files: their facts, damage, and known faults.

    MODEL is a folder or a cached hub id such as org/name or org/name@revision. Only the headers of weights are
    read, and no code is run. Exits with 1 if a file is damaged or a finding is affected.
    """
    from compatcheck import matrix
    from compatcheck.environment.assumptions import assume_all
    from compatcheck.pipelines.model import judge
    from compatcheck.project.model_files.model import compare_models, read_model
    from compatcheck.report import render
    from compatcheck.report.subjects import model as subject

    if against is not None:
        comparison = compare_models(model, against, online=online, weights=hash_weights)
        damaged = any(comparison[side].get("file_problems") for side in ("old", "new"))
        written = subject.document_of_comparison(comparison)
        write_reports(written, reports)
        write(render(written, format_name, screen_of(output)), output)
        sys.exit(exit_status.FINDINGS if damaged else exit_status.CLEAN)
    environment = assume_all(read_model(model, online=online, weights=hash_weights), assume)
    report = judge(environment, matrix.load())
    write_reports(subject.document(report), reports)
    if quiet and format_name == "text":
        write(render(subject.failing(report), format_name, screen_of(output)), output)
    else:
        write(render(subject.document(report), format_name, screen_of(output)), output)
    damaged = bool(environment.facts["model"].get("file_problems"))
    affected = bool(report.bad)
    sys.exit(exit_status.FINDINGS if damaged or affected else exit_status.CLEAN)
