"""`compatcheck model`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, NoReturn

import click

from compatcheck.verbs import _options, _status
from compatcheck.verbs._output import screen_of, write

if TYPE_CHECKING:
    from compatcheck.environment import Environment
    from compatcheck.results.findings import Report


@click.command()
@click.argument("model")
@click.option("--against", metavar="MODEL", help="Show what changed from MODEL, the first one, to this one.")
@click.option("--online", is_flag=True, help="Ask the hub for a model that is not here, and fetch its small files.")
@click.option("--hash-weights", is_flag=True, help="Hash the weight files as well.")
@_options.assume
@_options.format_name
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
    from compatcheck.environment.assumptions import assume_all
    from compatcheck.project.model_files.model import compare_models, read_model
    from compatcheck.report import model as pages

    if against is not None:
        comparison = compare_models(model, against, online=online, weights=hash_weights)
        damaged = any(comparison[side].get("file_problems") for side in ("old", "new"))
        write(pages.render_comparison(comparison, format_name, screen_of(output)), output)
        sys.exit(_status.FINDINGS if damaged else _status.CLEAN)
    environment = assume_all(read_model(model, online=online, weights=hash_weights), assume)
    report = _of_the_model(environment)
    if quiet and format_name == "text":
        write(pages.render_failing(report, screen_of(output)), output)
    else:
        write(pages.render(report, format_name, screen_of(output)), output)
    damaged = bool(environment.facts["model"].get("file_problems"))
    affected = bool(report.bad)
    sys.exit(_status.FINDINGS if damaged or affected else _status.CLEAN)


def _of_the_model(environment: Environment) -> Report:
    """The findings that hang on the model: those that would not be there without it."""
    from compatcheck import matrix
    from compatcheck.pipelines.check import check

    known: Any = matrix.load()
    report = check(environment, known)
    without = environment._replace(facts={**environment.facts, "model": None})
    anyway = {finding.id for finding in matrix.match(known, matrix.complete(known, without))}
    return report._replace(findings=tuple(finding for finding in report.findings if finding.id not in anyway))
