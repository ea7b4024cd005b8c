"""`compatcheck data`."""

from __future__ import annotations

import sys
from typing import NoReturn

import click

from compatcheck.results import exit_status
from compatcheck.verbs import _help, _options
from compatcheck.verbs._output import progress, screen_of, write, write_reports

SECTION = "judge"
EXAMPLES = (
    "compatcheck data train.jsonl",
    "compatcheck data train.jsonl --model Qwen3-8B/ --max-length 4096",
)


@_help.verb()
@click.argument("file")
@_help.option("--model", metavar="FOLDER", help="Model folder; its tokenizer and chat template run on a sample.")
@_options.one_config("Take the maximum length from this training configuration or launch script.")
@_help.option(
    "--max-length",
    type=click.IntRange(min=1),
    metavar="TOKENS",
    help="Maximum length in tokens. Default: from --config.",
)
@_help.option("--rows", type=click.IntRange(min=1), default=200, show_default=True, help="Number of rows to sample.")
@_options.trust_remote_code
@_help.option(
    "--timeout",
    rare=True,
    type=click.FloatRange(min=1),
    metavar="SECONDS",
    help="Stop the tokenizer after this many seconds.",
)
@_options.python
@_options.trust
@_options.page_format
@_options.output
@_options.page_reports
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
    reports: tuple[tuple[str, str], ...],
    quiet: bool,
) -> NoReturn:
    """Check training data: broken rows, missing labels, template errors.

    FILE contains conversations as JSON or JSON lines, also gzipped: messages with roles, ShareGPT, Alpaca, prompt and
    completion, preference pairs.
    """
    from compatcheck.pipelines import data
    from compatcheck.report import render
    from compatcheck.report.document import Exit
    from compatcheck.report.subjects import data as subject

    options = data.Options(model, training, max_length, rows, trust_remote_code, python, timeout)
    report, status, reason = data.judge(file, options, progress)
    write_reports(subject.document(report, Exit(reason, status)), reports)
    screen = screen_of(output)
    if quiet and format_name == "text":
        unrun = f"{file}: {reason}\n" if status == exit_status.REQUIRED_MISSING else ""
        write(render(subject.failing(report), format_name, screen) + unrun, output)
    else:
        write(render(subject.document(report, Exit(reason, status)), format_name, screen), output)
    sys.exit(status)
