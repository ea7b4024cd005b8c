"""Options that several verbs share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import click

from compatcheck.language import gettext as _
from compatcheck.report import FORMATS, PAGE_FORMATS
from compatcheck.verbs._help import option

if TYPE_CHECKING:
    from compatcheck.results.areas import AreaName
    from compatcheck.settings import Settings

_Command = TypeVar("_Command", bound=Callable[..., object])

common = partial(option, common=True)


def _trust(context: click.Context, parameter: click.Parameter, value: bool) -> None:
    if value and not context.resilient_parsing:
        from compatcheck.files.repository import root
        from compatcheck.installed.trust import trust

        trust(root())


trust = option(
    "--trust",
    is_flag=True,
    rare=True,
    is_eager=True,
    expose_value=False,
    callback=_trust,
    help="Trust this folder from now on, and allow its interpreter to be started.",
)
python = common(
    "--python",
    metavar="PATH",
    help=("Inspect this interpreter, venv folder or Python version. Default: the active environment, then .venv."),
)


def _inside(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    if value is not None:
        from compatcheck.files import storage

        storage.require_inside("writing", value)
    return value


output = common(
    "-o", "--output", metavar="FILE", callback=_inside, help="Write to this file. Default: standard output."
)


def snapshot(explanation: str, **kwargs: Any) -> Callable[[_Command], _Command]:
    return common("--snapshot", metavar="FILE", help=explanation, **kwargs)


assume = common(
    "--assume",
    multiple=True,
    metavar="KEY=VALUE",
    help="Supply a fact, such as gpu.compute_capability=9.0; repeatable.",
)


def config(argument: str) -> Callable[[_Command], _Command]:
    """Project files by name, for verbs whose argument may also be something else."""
    return common(
        "--config",
        "configs",
        multiple=True,
        metavar="PATH",
        rare=True,
        help=f"File or folder of the project, the same as {argument}; repeatable.",
    )


def one_config(explanation: str) -> Callable[[_Command], _Command]:
    return common("--config", "training", metavar="FILE", help=explanation, aliases=("--training",))


SETTINGS_OF_A_RUN = "Use the settings of this training configuration or launch script."
model = option(
    "--model", metavar="MODEL", help="Use this architecture: a model folder, a config.json or a cached hub id."
)
trust_remote_code = option("--trust-remote-code", is_flag=True, rare=True, help="Run code from the model folder.")
hash_weights = option("--hash-weights", is_flag=True, help="Also hash the weight files of a model folder.")
require_probe = option("--require-probe", is_flag=True, rare=True, help="Exit with 4 if a probe could not run.")


def probe(explanation: str) -> Callable[[_Command], _Command]:
    return common("--probe/--no-probe", default=None, help=explanation)


def budget(explanation: str, **kwargs: Any) -> Callable[[_Command], _Command]:
    return option("--budget", type=click.FloatRange(min=0), metavar="SECONDS", help=explanation, **kwargs)


def _not_both(context: click.Context, parameter: click.Parameter, value: bool) -> bool:
    if value and (context.params.get("quiet") or context.params.get("verbose")):
        raise click.UsageError(_("--quiet and --verbose exclude each other"))
    if value and parameter.name == "quiet":
        from compatcheck.terminal import progress

        progress.silence()
    return value


quiet = common(
    "-q",
    "--quiet",
    is_flag=True,
    rare=True,
    callback=_not_both,
    help="Print only failures, one per line, and no progress.",
)


def verbose(explanation: str) -> Callable[[_Command], _Command]:
    return common("-v", "--verbose", is_flag=True, rare=True, callback=_not_both, help=explanation)


def _format(names: Sequence[str]) -> Callable[[_Command], _Command]:
    words = f"Output format: {', '.join(names)}. Default: text."
    return common("--format", "format_name", type=click.Choice(names), metavar="FORMAT", default="text", help=words)


page_format = _format(PAGE_FORMATS)
report_format = _format(FORMATS)


def reports_in(
    names: Sequence[str], explanation: str = "Also write the report to this file in this format; repeatable."
) -> Callable[[_Command], _Command]:
    """``--report FORMAT=FILE``, as pairs."""

    def split(
        context: click.Context, parameter: click.Parameter, values: tuple[str, ...]
    ) -> tuple[tuple[str, str], ...]:
        pairs = [(name, file) for name, _, file in (value.partition("=") for value in values)]
        for value, (name, file) in zip(values, pairs):
            if name not in names or not file:
                raise click.BadParameter(f"{value!r} is not FORMAT=FILE; FORMAT is one of {', '.join(names)}.")
        return tuple(pairs)

    return common("--report", "reports", multiple=True, metavar="FORMAT=FILE", callback=split, help=explanation)


reports = reports_in(FORMATS)
page_reports = reports_in(PAGE_FORMATS)


def _known_device(context: click.Context, parameter: click.Parameter, value: str) -> str:
    if value == "auto":
        return value
    from compatcheck import probes

    return probes.require_device(value)


device = option(
    "--device",
    metavar="auto|cpu|cuda",
    default="auto",
    rare=True,
    callback=_known_device,
    help="Device for probes. Default: a GPU if there is one.",
)
fresh = option("--fresh", is_flag=True, rare=True, help="Ignore earlier results and run every probe again.")

imports = option(
    "--imports/--no-imports",
    default=None,
    rare=True,
    help="Follow all imports of a training run (about ten seconds, then cached). Default: use the cached result.",
)


fail_on = option(
    "--fail-on",
    type=click.Choice(["confirmed", "affected", "possible", "never"]),
    metavar="STATUS",
    help="Exit with 1 if any finding has at least this status: confirmed, affected, possible or "
    "never. Default: affected.",
)
select = option("--select", multiple=True, rare=True, metavar="ID", help="Check only this entry; repeatable.")
ignore = option("--ignore", multiple=True, metavar="ID", help="Skip this entry; repeatable.")


def _known_areas(context: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> tuple[AreaName, ...]:
    """The areas that are named, separated by commas."""
    if not values:
        return ()
    from compatcheck.results.areas import require_areas

    return require_areas(name.strip() for value in values for name in value.split(","))


require = option(
    "--require",
    multiple=True,
    rare=True,
    metavar="AREA,...",
    callback=_known_areas,
    help="Exit with 4 if this area was not checked: packages, gpu, training, model, imports or numerics.",
)
baseline = option(
    "--baseline", metavar="FILE", rare=True, help="Suppress findings that this earlier JSON report contains."
)


def project(command: Any) -> Any:
    """The options of every verb that works in the name of a project, whose settings then count."""
    for each in reversed(
        [
            common(
                "--settings",
                "settings_file",
                metavar="FILE",
                rare=True,
                help="Read [tool.compatcheck] from this file. Default: the nearest pyproject.toml.",
            ),
            common("--isolated", is_flag=True, rare=True, help="Ignore the project's settings."),
        ]
    ):
        command = each(command)
    return command


def settings_of(settings_file: str | None, isolated: bool) -> Settings:
    """The project's settings as the options of `project` have it."""
    from compatcheck import settings

    if isolated and settings_file is not None:
        raise click.UsageError(_("--isolated and --settings exclude each other"))
    if isolated:
        return settings.NONE
    return settings.find() if settings_file is None else settings.read(settings_file)


def verdict(command: Any) -> Any:
    """The options of every verb that judges an environment, in the order in which help shows them."""
    for each in reversed(
        [
            report_format,
            output,
            reports,
            fail_on,
            select,
            ignore,
            option("--show-refuted", is_flag=True, rare=True, help="Also list findings that a probe refuted."),
            quiet,
            verbose("Also print evidence, refuted findings, unknown facts with reasons, and timings."),
        ]
    ):
        command = each(command)
    return command
