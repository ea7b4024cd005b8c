"""`compatcheck model`."""

from __future__ import annotations

import sys
from typing import NoReturn

import click

from compatcheck.results import exit_status
from compatcheck.verbs import _options
from compatcheck.verbs._output import screen_of, write


@click.command()
@click.argument("model")
@click.option("--against", metavar="MODEL", help="Show what changed from MODEL, the first one, to this one.")
@click.option("--online", is_flag=True, help="Ask the hub for a model that is not here, and fetch its small files.")
@click.option("--hash-weights", is_flag=True, help="Hash the weight files as well.")
@_options.assume
@_options.report_format
@_options.output
@_options.quiet
def command(
    model: str,
    against: str | None,
    online: bool,
    hash_weights: bool,
    assume: tuple[str, ...],
    format_name: str,
    output: str | None,
    quiet: bool,
) -> NoReturn:
    """Show what a model's files say, and what the matrix says of them.

    MODEL is a folder, or a hub id as org/name or org/name@revision that is in a local cache. Weights are not read but
    for their headers, and no code is run. Exit status 1 where a file is damaged or a finding is affected.
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
        write(render(subject.document_of_comparison(comparison), format_name, screen_of(output)), output)
        sys.exit(exit_status.FINDINGS if damaged else exit_status.CLEAN)
    environment = assume_all(read_model(model, online=online, weights=hash_weights), assume)
    report = judge(environment, matrix.load())
    if quiet and format_name == "text":
        write(render(subject.failing(report), format_name, screen_of(output)), output)
    else:
        write(render(subject.document(report), format_name, screen_of(output)), output)
    damaged = bool(environment.facts["model"].get("file_problems"))
    affected = bool(report.bad)
    sys.exit(exit_status.FINDINGS if damaged or affected else exit_status.CLEAN)
