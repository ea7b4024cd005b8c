"""Options that several verbs share."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from compatcheck.report import FORMATS, PAGE_FORMATS

if TYPE_CHECKING:
    from compatcheck.settings import Settings

_Command = TypeVar("_Command", bound=Callable[..., Any])

python = click.option("--python", metavar="PATH", help="Interpreter, venv folder or version to inspect.")
output = click.option("-o", "--output", metavar="FILE", help="Write here instead of standard output.")
snapshot = click.option("--snapshot", metavar="FILE", help="Judge a recorded environment; - is standard input.")
assume = click.option(
    "--assume", multiple=True, metavar="KEY=VALUE", help="State a fact, as gpu.compute_capability=9.0."
)


def _not_both(context: click.Context, parameter: click.Parameter, value: bool) -> bool:
    if value and (context.params.get("quiet") or context.params.get("verbose")):
        raise click.UsageError("--quiet and --verbose ask for opposite things: give one of them")
    if value and parameter.name == "quiet":
        from compatcheck.terminal import progress

        progress.silence()
    return value


quiet = click.option(
    "-q", "--quiet", is_flag=True, callback=_not_both, help="Print only what fails, a line each, and no progress."
)


def verbose(explanation: str) -> Callable[[_Command], _Command]:
    return click.option("-v", "--verbose", is_flag=True, callback=_not_both, help=explanation)


page_format = click.option(
    "--format", "format_name", type=click.Choice(PAGE_FORMATS), default="text", show_default=True
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


fail_on = click.option(
    "--fail-on",
    type=click.Choice(["confirmed", "affected", "possible", "never"]),
    show_default="affected",
    help="The least status that makes the exit status 1.",
)
select = click.option("--select", multiple=True, metavar="ID", help="Only these entries.")
ignore = click.option("--ignore", multiple=True, metavar="ID", help="All but these entries.")


baseline = click.option("--baseline", metavar="FILE", help="Set aside what an earlier JSON report knows already.")


def project(command: Any) -> Any:
    """The options of every verb that works in the name of a project, whose settings then count."""
    for option in reversed(
        [
            click.option("--settings", "settings_file", metavar="FILE", help="Read [tool.compatcheck] of this file."),
            click.option("--isolated", is_flag=True, help="Read no settings of the project."),
        ]
    ):
        command = option(command)
    return command


def settings_of(settings_file: str | None, isolated: bool) -> Settings:
    """The project's settings as the options of `project` have it."""
    from compatcheck import settings

    if isolated and settings_file is not None:
        raise click.UsageError("--isolated reads no settings, and --settings names some: give one of them")
    if isolated:
        return settings.NONE
    return settings.find() if settings_file is None else settings.read(settings_file)


def verdict(command: Any) -> Any:
    """The options of every verb that judges an environment, in the order in which help shows them."""
    for option in reversed(
        [
            report_format,
            output,
            reports,
            fail_on,
            select,
            ignore,
            click.option("--show-refuted", is_flag=True, help="Also list what a probe refuted here."),
            quiet,
            verbose("Also evidence, what was refuted, every fact that is not known and why, and times."),
        ]
    ):
        command = option(command)
    return command
