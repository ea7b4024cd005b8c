"""Options that several verbs share."""

from __future__ import annotations

from typing import Any

import click

python = click.option("--python", metavar="PATH", help="Interpreter, venv folder or version to inspect.")
output = click.option("-o", "--output", metavar="FILE", help="Write here instead of standard output.")
snapshot = click.option("--snapshot", metavar="FILE", help="Judge a recorded environment; - is standard input.")
assume = click.option(
    "--assume", multiple=True, metavar="KEY=VALUE", help="State a fact, as gpu.compute_capability=9.0."
)
format_name = click.option(
    "--format", "format_name", type=click.Choice(["text", "json"]), default="text", show_default=True
)
page_format = click.option(
    "--format", "format_name", type=click.Choice(["text", "json", "html"]), default="text", show_default=True
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
            page_format,
            output,
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
