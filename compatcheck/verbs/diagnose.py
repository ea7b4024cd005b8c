"""`compatcheck diagnose`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, NoReturn

import click

from compatcheck.results import exit_status
from compatcheck.verbs import _options
from compatcheck.verbs._output import screen_of, write

if TYPE_CHECKING:
    from compatcheck.environment import Environment

EXAMPLES = (
    "compatcheck diagnose trainer_state.json",
    "compatcheck diagnose train.log --snapshot node.json --svg loss.svg",
)


@click.command()
@click.argument("logs", nargs=-1, required=True, metavar="LOG...")
@_options.python
@_options.snapshot
@_options.assume
@click.option(
    "--config",
    "paths",
    multiple=True,
    metavar="PATH",
    help="File or folder of the project, as for check; repeatable.",
)
@_options.report_format
@_options.output
@click.option("--svg", metavar="FILE", help="Also draw the curves to this SVG file.")
@_options.quiet
@_options.verbose("Also print entries that known facts rule out, and each entry's evidence.")
def command(
    logs: tuple[str, ...],
    python: str | None,
    snapshot: str | None,
    assume: tuple[str, ...],
    paths: tuple[str, ...],
    format_name: str,
    output: str | None,
    svg: str | None,
    quiet: bool,
    verbose: bool,
) -> NoReturn:
    """Find symptoms in a training log, when they began, and what explains them.

    LOG is a trainer's output, trainer_state.json, a .jsonl log, a TensorBoard event file or a traceback; - is standard
    input. No environment is assumed, as logs often come from another machine: name it with --python, --snapshot or
    --config. Exits with 1 if a symptom was found, with 3 if nothing is known.
    """
    from compatcheck import matrix
    from compatcheck.pipelines.diagnose import diagnose
    from compatcheck.report import curves, render
    from compatcheck.report.subjects import diagnosis

    known = matrix.load()
    environment, stated = _environment(known, paths, python, snapshot, assume)
    found = diagnose(logs, environment, known, stated)
    if svg:
        write(curves.svg(found.run.curves, title=found.run.signature.words), svg)
    if quiet and format_name == "text":
        write(render(diagnosis.failing(found), format_name, screen_of(output)), output)
        sys.exit(exit_status.CLEAN if found.healthy and not found.explanations else exit_status.FINDINGS)
    write(render(diagnosis.document(found, verbose=verbose), format_name, screen_of(output)), output)
    sys.exit(exit_status.CLEAN if found.healthy and not found.explanations else exit_status.FINDINGS)


def _environment(
    known: Any, paths: tuple[str, ...], python: str | None, snapshot: str | None, assume: tuple[str, ...]
) -> tuple[Environment, Environment]:
    """The environment that was named, empty where none was, and what the user states over the logs."""
    from compatcheck.environment import Environment
    from compatcheck.environment.assumptions import assume_all
    from compatcheck.pipelines.environment import Request
    from compatcheck.pipelines.environment import environment as environment_of
    from compatcheck.project.overlay import with_paths

    found = Environment({})
    if python is not None or snapshot is not None:
        found = environment_of(known, paths, Request(python, snapshot)).environment
    elif paths:
        found = with_paths(found, paths)
    stated = assume_all(Environment({}), assume)
    return found, Environment(stated.facts, stated.reasons, stated.locations)
