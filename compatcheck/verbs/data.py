"""`compatcheck data`."""

from __future__ import annotations

import sys
from typing import NoReturn

import click

from compatcheck.results import exit_status
from compatcheck.verbs import _options
from compatcheck.verbs._output import progress, screen_of, write


@click.command()
@click.argument("file")
@click.option("--model", metavar="DIR", help="The model's folder: its tokenizer and chat template are run on a sample.")
@click.option("--training", metavar="FILE", help="Training configuration that states the length rows are cut to.")
@click.option("--max-length", type=click.IntRange(min=1), metavar="TOKENS", help="State that length here.")
@click.option("--rows", type=click.IntRange(min=1), default=200, show_default=True, help="Size of the sample.")
@click.option("--trust-remote-code", is_flag=True, help="Run code that comes with the model, offline all the same.")
@click.option("--timeout", type=click.FloatRange(min=1), metavar="SECONDS", help="End the tokenizer after this long.")
@_options.python
@_options.page_format
@_options.output
@_options.quiet
def command(
    file: str,
    model: str | None,
    training: str | None,
    max_length: int | None,
    rows: int,
    trust_remote_code: bool,
    timeout: float | None,
    python: str | None,
    format_name: str,
    output: str | None,
    quiet: bool,
) -> NoReturn:
    """Look at training data: broken rows, rows with nothing to learn, templates and tokens that do not fit.

    FILE holds conversations as JSON or JSON lines, also gzipped: messages with roles, ShareGPT, Alpaca, prompt and
    completion, preference pairs.
    """
    from compatcheck.pipelines import data
    from compatcheck.report import render
    from compatcheck.report.document import Exit
    from compatcheck.report.subjects import data as subject

    options = data.Options(model, training, max_length, rows, trust_remote_code, python, timeout)
    report, status, reason = data.judge(file, options, progress)
    screen = screen_of(output)
    if quiet and format_name == "text":
        unrun = f"{file}: {reason}\n" if status == exit_status.PROBE_MISSING else ""
        write(render(subject.failing(report), format_name, screen) + unrun, output)
    else:
        write(render(subject.document(report, Exit(reason, status)), format_name, screen), output)
    sys.exit(status)
