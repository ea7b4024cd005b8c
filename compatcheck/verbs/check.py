"""`compatcheck check`."""

from __future__ import annotations

from typing import Any, NoReturn

import click

from compatcheck.pipelines.environment import environment as environment_of
from compatcheck.verbs import _options
from compatcheck.verbs._verdict import judge


@click.command()
@click.argument("paths", nargs=-1, metavar="[PATH]...")
@_options.python
@_options.snapshot
@_options.assume
@_options.verdict
@_options.imports
@click.option("--no-probe", is_flag=True, help="Read only; run nothing in the target's interpreter.")
@click.option("--require-probe", is_flag=True, help="Exit with 4 where a probe could not run.")
@_options.device
@_options.fresh
@click.option("--budget", type=click.FloatRange(min=0), metavar="SECONDS", help="Start no probe after this long.")
def command(
    paths: tuple[str, ...],
    python: str | None,
    snapshot: str | None,
    assume: tuple[str, ...],
    imports: bool | None,
    no_probe: bool,
    require_probe: bool,
    budget: float | None,
    **options: Any,
) -> NoReturn:
    """Judge an environment.

    A PATH is a file or folder of the project: a training configuration, launch script, requirements, lock file,
    Dockerfile or model folder. Pinned requirements count over what is installed in an active environment; with --python
    what is installed counts.
    """
    from compatcheck import matrix

    known = matrix.load()
    environment, target = environment_of(known, paths, python, snapshot, assume, imports=imports)
    judge(environment, known, None if no_probe else target, budget, require_probe, options)
