"""Options that several verbs share."""

from __future__ import annotations

from typing import Any

import click

from compatcheck.report import FORMATS

python = click.option("--python", metavar="PATH", help="Interpreter, venv folder or version to inspect.")
output = click.option("-o", "--output", metavar="FILE", help="Write here instead of standard output.")
snapshot = click.option("--snapshot", metavar="FILE", help="Judge a recorded environment; - is standard input.")
assume = click.option(
    "--assume", multiple=True, metavar="KEY=VALUE", help="State a fact, as gpu.compute_capability=9.0."
)
format_name = click.option(
    "--format", "format_name", type=click.Choice(["text", "json"]), default="text", show_default=True
)


def _reports(
    context: click.Context, parameter: click.Parameter, values: tuple[str, ...]
) -> tuple[tuple[str, str], ...]:
    split = [(name, file) for name, _, file in (value.partition("=") for value in values)]
    for value, (name, file) in zip(values, split):
        if name not in FORMATS or not file:
            raise click.BadParameter(f"{value!r} is not FORMAT=FILE; FORMAT is one of {', '.join(FORMATS)}.")
    return tuple(split)


report_format = click.option("--format", "format_name", type=click.Choice(FORMATS), default="text", show_default=True)
reports = click.option(
    "--report",
    "reports",
    multiple=True,
    metavar="FORMAT=FILE",
    callback=_reports,
    help="Also write the same verdict here in another format; repeatable.",
)


def _known_device(context: click.Context, parameter: click.Parameter, value: str) -> str:
    if value == "auto":
        return value
    from compatcheck import probes

    return probes.require_device(value)


device = click.option(
    "--device", metavar="auto|cpu|cuda", default="auto", callback=_known_device, help="Where probes compute."
)
fresh = click.option("--fresh", is_flag=True, help="Measure again what a probe measured in this environment before.")

imports = click.option(
    "--imports/--no-imports",
    default=None,
    help="Follow every import of a training run (some ten seconds, then remembered); else what is remembered counts.",
)


def verdict(command: Any) -> Any:
    """The options of every verb that judges an environment, in the order in which help shows them."""
    for option in reversed(
        [
            report_format,
            output,
            reports,
            click.option(
                "--fail-on",
                type=click.Choice(["confirmed", "affected", "possible", "never"]),
                default="affected",
                show_default=True,
                help="The least status that makes the exit status 1.",
            ),
            click.option("--select", multiple=True, metavar="ID", help="Only these entries."),
            click.option("--ignore", multiple=True, metavar="ID", help="All but these entries."),
            click.option("--show-refuted", is_flag=True, help="Also list what a probe refuted here."),
        ]
    ):
        command = option(command)
    return command
