"""`compatcheck pin`."""

from __future__ import annotations

import os
import sys
from typing import NoReturn

import click

from compatcheck.verbs import _options, _status
from compatcheck.verbs._output import write


@click.command()
@click.argument("paths", nargs=-1, metavar="[PATH]...")
@_options.python
@_options.assume
@_options.output
@click.option("--offline", is_flag=True, help="Resolve from uv's cache alone.")
def command(
    paths: tuple[str, ...], python: str | None, assume: tuple[str, ...], output: str | None, offline: bool
) -> NoReturn:
    """Print pins that leave no affected finding.

    A PATH is a file or folder of the project, as for `check`. The pins come from the requirements among them, else from
    what is installed, and change as little as can be.
    """
    from compatcheck import check, facts, matrix
    from compatcheck.advice import pins

    known, target = matrix.load(), facts.find_target(python, os.environ)
    installed = facts.collect(target, known.environ)
    context = facts.with_paths(installed, paths, pins="ignored") if paths else installed
    requirements = facts.requirements_among(paths) if paths else ()
    wanted = (
        pins.read_wanted(requirements)
        if requirements
        else pins.installed_wanted(facts.top_level(target), installed.facts["distributions"])
    )
    environment = facts.assume_all(context, assume)
    result = check.pin(environment, known, wanted, target, offline=offline)
    write(result.text, output)
    left = [finding for finding in result.report.findings if finding.status in check.BAD]
    for name, label in pins.lost_labels(result.text, wanted).items():
        click.echo(f"{name} was the {label} build: install these pins from the index it came from", err=True)
    for cause in result.causes:
        click.echo(f"not cleared: {cause}", err=True)
    for finding in left:
        steps = next((remedy.steps for remedy in finding.remedies if not remedy.pins), ())
        click.echo(f"left: {finding.id} {finding.title}" + (f": {'; '.join(steps)}" if steps else ""), err=True)
    sys.exit(_status.FINDINGS if left else _status.CLEAN)
