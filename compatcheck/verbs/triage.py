"""`compatcheck triage`."""

from __future__ import annotations

from typing import Any, NoReturn

import click

from compatcheck.verbs import _options
from compatcheck.verbs._output import write
from compatcheck.verbs._verdict import judge_and_exit, options_of, view_of


@click.command()
@click.argument("file", metavar="FILE")
@_options.assume
@_options.verdict
@click.option("--env", "env_only", is_flag=True, help="Print the snapshot that the report makes, and judge nothing.")
@click.option("--snapshot-out", metavar="FILE", help="Also write that snapshot here.")
def command(
    file: str, assume: tuple[str, ...], env_only: bool, snapshot_out: str | None, **options: Any
) -> NoReturn | None:
    """Judge the environment that a bug report describes.

    FILE holds its text as people paste it, or the JSON that gh or GitHub's API gives; - is standard input. Read are the
    output of transformers env, accelerate env, collect_env, ds_report, llamafactory-cli env, pip, conda or nvidia-smi,
    tracebacks, and plain words in English or Chinese. What its lines contradict is unknown.
    """
    import json

    from compatcheck import matrix
    from compatcheck.environment import dump
    from compatcheck.pipelines.triage import SUSPECTED, described_environment

    view = view_of(options)
    environment = described_environment(file, assume)
    snapshot = json.dumps(dump(environment), indent=2, ensure_ascii=False) + "\n"
    if snapshot_out is not None:
        write(snapshot, snapshot_out)
    if env_only:
        write(snapshot, view.output)
        return None
    if view.format_name == "text" and view.output is None and not view.quiet:
        from compatcheck.report import render
        from compatcheck.report.subjects.triage import document

        write(render(document(environment), "text"), None)
    judge_and_exit(environment, matrix.load(), options_of(options)._replace(suspected=SUSPECTED), None, view)
