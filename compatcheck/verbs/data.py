"""`compatcheck data`."""

from __future__ import annotations

import sys
from typing import NoReturn

import click

from compatcheck.results import exit_status
from compatcheck.verbs import _options
from compatcheck.verbs._output import progress, screen_of, write

EXAMPLES = (
    "compatcheck data train.jsonl",
    "compatcheck data train.jsonl --model Qwen3-8B/ --max-length 4096",
)


@click.command()
@click.argument("file")
@click.option("--model", metavar="DIR", help="Model folder whose tokenizer and chat template run on a sample.")
@click.option("--training", metavar="FILE", help="Training configuration that sets the maximum length.")
@click.option(
    "--max-length",
    type=click.IntRange(min=1),
    metavar="TOKENS",
    help="Maximum length in tokens. Default: from --training.",
)
@click.option("--rows", type=click.IntRange(min=1), default=200, show_default=True, help="Number of rows to sample.")
@click.option("--trust-remote-code", is_flag=True, help="Run the model's own code, offline.")
@click.option(
    "--timeout", type=click.FloatRange(min=1), metavar="SECONDS", help="Stop the tokenizer after this many seconds."
)
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
    """Check training data for broken rows, rows without labels, and template or token errors.

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
        unrun = f"{file}: {reason}\n" if status == exit_status.REQUIRED_MISSING else ""
        write(render(subject.failing(report), format_name, screen) + unrun, output)
    else:
        write(render(subject.document(report, Exit(reason, status)), format_name, screen), output)
    sys.exit(status)
