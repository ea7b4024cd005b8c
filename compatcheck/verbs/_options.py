"""Options that several verbs share."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from compatcheck.report import FORMATS, PAGE_FORMATS

if TYPE_CHECKING:
    from compatcheck.results.areas import AreaName
    from compatcheck.settings import Settings

_Command = TypeVar("_Command", bound=Callable[..., object])

python = click.option(
    "--python",
    metavar="PATH",
    help="Inspect this interpreter, venv folder or Python version. Default: the active one, then .venv.",
)
output = click.option("-o", "--output", metavar="FILE", help="Write to this file. Default: standard output.")
snapshot = click.option(
    "--snapshot", metavar="FILE", help="Judge the environment recorded in this file; - is standard input."
)
assume = click.option(
    "--assume",
    multiple=True,
    metavar="KEY=VALUE",
    help="Supply a fact, such as gpu.compute_capability=9.0; repeatable.",
)


def _not_both(context: click.Context, parameter: click.Parameter, value: bool) -> bool:
    if value and (context.params.get("quiet") or context.params.get("verbose")):
        raise click.UsageError("--quiet and --verbose exclude each other")
    if value and parameter.name == "quiet":
        from compatcheck.terminal import progress

        progress.silence()
    return value


quiet = click.option(
    "-q", "--quiet", is_flag=True, callback=_not_both, help="Print only failures, one per line, and no progress."
)


def verbose(explanation: str) -> Callable[[_Command], _Command]:
    return click.option("-v", "--verbose", is_flag=True, callback=_not_both, help=explanation)


page_format = click.option(
    "--format",
    "format_name",
    type=click.Choice(PAGE_FORMATS),
    default="text",
    show_default=True,
    help="Output format.",
)


def _reports(
    context: click.Context, parameter: click.Parameter, values: tuple[str, ...]
) -> tuple[tuple[str, str], ...]:
    split = [(name, file) for name, _, file in (value.partition("=") for value in values)]
    for value, (name, file) in zip(values, split):
        if name not in FORMATS or not file:
            raise click.BadParameter(f"{value!r} is not FORMAT=FILE; FORMAT is one of {', '.join(FORMATS)}.")
    return tuple(split)


report_format = click.option(
    "--format",
    "format_name",
    type=click.Choice(FORMATS),
    default="text",
    show_default=True,
    help="Output format.",
)
reports = click.option(
    "--report",
    "reports",
    multiple=True,
    metavar="FORMAT=FILE",
    callback=_reports,
    help="Also write the report to this file in this format; repeatable.",
)


def _known_device(context: click.Context, parameter: click.Parameter, value: str) -> str:
    if value == "auto":
        return value
    from compatcheck import probes

    return probes.require_device(value)


device = click.option(
    "--device",
    metavar="auto|cpu|cuda",
    default="auto",
    callback=_known_device,
    help="Device for probes. Default: a GPU if there is one.",
)
fresh = click.option("--fresh", is_flag=True, help="Ignore earlier results and run every probe again.")

imports = click.option(
    "--imports/--no-imports",
    default=None,
    help="Follow all imports of a training run (about ten seconds, then cached). Default: use the cached result.",
)


fail_on = click.option(
    "--fail-on",
    type=click.Choice(["confirmed", "affected", "possible", "never"]),
    help="Exit with 1 if any finding has at least this status. Default: affected.",
)
select = click.option("--select", multiple=True, metavar="ID", help="Check only this entry; repeatable.")
ignore = click.option("--ignore", multiple=True, metavar="ID", help="Skip this entry; repeatable.")


def _known_areas(context: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> tuple[AreaName, ...]:
    """The areas that are named, separated by commas."""
    if not values:
        return ()
    from compatcheck.results.areas import require_areas

    return require_areas(name.strip() for value in values for name in value.split(","))


require = click.option(
    "--require",
    multiple=True,
    metavar="AREA,...",
    callback=_known_areas,
    help="Exit with 4 if an area was not judged: packages, gpu, training, model, imports or numerics.",
)
baseline = click.option("--baseline", metavar="FILE", help="Suppress findings that this earlier JSON report contains.")


def project(command: Any) -> Any:
    """The options of every verb that works in the name of a project, whose settings then count."""
    for option in reversed(
        [
            click.option(
                "--settings",
                "settings_file",
                metavar="FILE",
                help="Read [tool.compatcheck] from this file. Default: the nearest pyproject.toml.",
            ),
            click.option("--isolated", is_flag=True, help="Ignore the project's settings."),
        ]
    ):
        command = option(command)
    return command


def settings_of(settings_file: str | None, isolated: bool) -> Settings:
    """The project's settings as the options of `project` have it."""
    from compatcheck import settings

    if isolated and settings_file is not None:
        raise click.UsageError("--isolated and --settings exclude each other")
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
            click.option("--show-refuted", is_flag=True, help="Also list findings that a probe refuted."),
            quiet,
            verbose("Also print evidence, refuted findings, unknown facts with reasons, and timings."),
        ]
    ):
        command = option(command)
    return command
