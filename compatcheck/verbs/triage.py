"""`compatcheck triage`."""

from __future__ import annotations

from typing import NoReturn

import click

from compatcheck.verbs import _options
from compatcheck.verbs._output import write
from compatcheck.verbs._verdict import judge_and_exit, options_of, view_of

EXAMPLES = (
    "compatcheck triage issue.txt",
    "gh issue view 35 --json title,body,comments | compatcheck triage -",
)


@click.command()
@click.argument("file", metavar="FILE")
@_options.assume
@_options.verdict
@click.option("--env", "env_only", is_flag=True, help="Print the snapshot of the report without judging it.")
@click.option("--snapshot-out", metavar="FILE", help="Also write that snapshot to this file.")
def command(
    file: str, assume: tuple[str, ...], env_only: bool, snapshot_out: str | None, **options: object
) -> NoReturn | None:
    """Check the environment that a bug report describes.

    FILE is the pasted text, or JSON from gh or GitHub's API; - is standard input. It reads the output of
    transformers env, accelerate env, collect_env, ds_report, llamafactory-cli env, pip, conda and nvidia-smi,
    tracebacks, and prose in English or Chinese. A fact on which lines contradict one another is unknown.
    """
    import json

    from compatcheck import matrix
    from compatcheck.environment.assumptions import assumed_paths
    from compatcheck.pipelines.triage import described_environment
    from compatcheck.results.areas import Given

    view = view_of(options)
    chosen = options_of(options)._replace(given=Given("", assumed_paths(assume)))
    environment = described_environment(file, assume)
    snapshot = json.dumps(environment.dump(), indent=2, ensure_ascii=False) + "\n"
    if snapshot_out is not None:
        write(snapshot, snapshot_out)
    if env_only:
        write(snapshot, view.output)
        return None
    if view.format_name == "text" and view.output is None and not view.quiet:
        from compatcheck.report import render
        from compatcheck.report.subjects.triage import document

        write(render(document(environment), "text"), None)
    judge_and_exit(environment, matrix.load(), chosen, None, view)
