"""`compatcheck pin`."""

from __future__ import annotations

import difflib
import os
import sys
import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NoReturn

import click

from compatcheck.errors import InputError
from compatcheck.verbs import _options, _status
from compatcheck.verbs._output import write

if TYPE_CHECKING:
    from compatcheck.advice.model import Place
    from compatcheck.matrix import Matrix
    from compatcheck.model import Environment, PinReport, Target
    from compatcheck.pin import Plan, Task

_FORMATS = ("requirements", "constraints", "pylock", "pyproject")


@click.command()
@click.argument("paths", nargs=-1, metavar="[PATH]...")
@_options.python
@click.option("--target", "snapshot", metavar="FILE", help="Pin for the machine of this snapshot; - is standard input.")
@click.option("--python-version", metavar="VERSION", help="Pin for this Python rather than the interpreter's own.")
@click.option("--platform", metavar="NAME", help="Pin for this platform, as uv names it: aarch64-manylinux_2_28.")
@click.option("--torch-backend", metavar="NAME", help="The build of torch: cpu, cu126, or index for your own indexes.")
@_options.assume
@click.option("--format", "format_name", type=click.Choice(_FORMATS), default="requirements", show_default=True)
@click.option("--generate-hashes", is_flag=True, help="Write the hash of every file that may be installed.")
@_options.output
@click.option("--check", "only_check", is_flag=True, help="Write nothing; exit with 1 where the file is out of date.")
@click.option("--diff", "only_diff", is_flag=True, help="Write nothing; show what would change in the file.")
@click.option("--upgrade-to-latest", "latest", is_flag=True, help="Start from the newest versions, not those at hand.")
@click.option("--verify", is_flag=True, help="Build the pins apart, and run there what failed here.")
@click.option(
    "--prefer", type=click.Choice(["pins", "config"]), help="How to clear what a setting would clear as well."
)
@click.option("--strict", is_flag=True, help="Steer clear of what is only possible, too.")
@click.option("--ignore", multiple=True, metavar="ID", help="Let these entries steer nothing.")
@click.option("--budget", type=click.FloatRange(min=0), default=120.0, show_default=True, metavar="SECONDS")
@click.option("--report", "report_file", metavar="FILE", help="Write what moved, and why, as JSON.")
@click.option("--offline", is_flag=True, help="Resolve from uv's cache alone.")
def command(**options: Any) -> NoReturn:
    """Print pins that leave no affected finding, as near as can be to what there is.

    A PATH is a file or folder of the project, as for `check`. The pins come from the requirements or pyproject.toml
    among them, else from what is installed.
    """
    from compatcheck import matrix, pin
    from compatcheck._progress import resolving_progress
    from compatcheck.advice import search

    task, installed = _task(matrix.load(), options)
    output = _output(options)
    before = _content(output)
    deadline = time.monotonic() + options["budget"]
    with resolving_progress() as show:
        planned = pin.plan(task, lambda: time.monotonic() > deadline, show)
    if isinstance(planned, search.Conflict):
        click.echo(search.explain(planned), err=True, nl=False)
        sys.exit(_status.FINDINGS)
    text = pin.written(planned, options["format_name"], before, options["generate_hashes"])
    if options["verify"]:
        planned = _proven(planned, installed)
    _tell(planned.report, pin.left_out(planned, options["format_name"], before), options["report_file"])
    if planned.report.refuted:
        sys.exit(_status.FINDINGS)
    differs = _deliver(text, before, output, options)
    sys.exit(_exit_status(planned.report, differs))


def _task(known: Matrix, options: Mapping[str, Any]) -> tuple[Task, Target | None]:
    """What to pin, and the environment that is installed where that is what the pins are for."""
    from compatcheck import facts, matrix, pin
    from compatcheck._torch_build import backend_of
    from compatcheck.advice import wanted

    paths = options["paths"]
    target = None if options["snapshot"] else facts.find_target(options["python"], os.environ)
    here = facts.collect(target, known.environ) if target else facts.load_file(options["snapshot"])
    context = facts.with_paths(here, paths, pins="ignored") if paths else here
    environment = facts.assume_all(context, options["assume"])
    versions = here.facts.get("distributions") or {}
    sources = facts.requirements_among(paths)
    if sources:
        asked = wanted.read(sources, facts.marker_environment(target) if target else None)
        asked = wanted.preferring(asked, wanted.pins_in(options["output"]) if options["output"] else {})
        asked = wanted.preferring(asked, versions) if _is_meant(options) else asked
    else:
        asked = wanted.installed(facts.top_level(target) if target else versions, versions)
    stated = options["torch_backend"]
    backend = backend_of(asked.preferred.get("torch", "")) if stated is None else stated
    return (
        pin.Task(
            environment,
            known,
            asked,
            _place(environment, target, options),
            None if backend == "index" or "UV_TORCH_BACKEND" in os.environ else backend,
            insists=stated is not None,
            strict=options["strict"],
            latest=options["latest"],
            ignore=matrix.require_ids(known, options["ignore"]),
            by_hand_cost=pin.BY_HAND_COSTS[options["prefer"] or "nearest"],
        ),
        None if sources else target,
    )


def _is_meant(options: Mapping[str, Any]) -> bool:
    """Whether the pins are for the environment at hand: named or active, not the one we happen to run in."""
    return bool(options["python"] or options["snapshot"] or {"VIRTUAL_ENV", "CONDA_PREFIX"} & set(os.environ))


def _place(environment: Environment, target: Target | None, options: Mapping[str, Any]) -> Place:
    from compatcheck.advice import resolver
    from compatcheck.advice.model import Place

    python, platform = options["python_version"], options["platform"]
    if target is None:
        python = python or environment.facts.get("python")
        platform = platform or resolver.platform_of(environment.facts.get("platform") or {})
    return Place(target.executable if target else sys.executable, python, platform, options["offline"])


def _output(options: Mapping[str, Any]) -> str | None:
    """The file that is written or compared: the one named, else the only file given where it is only looked at."""
    named: str | None = options["output"]
    if named or not (options["only_check"] or options["only_diff"]):
        return named
    if len(options["paths"]) == 1 and os.path.isfile(options["paths"][0]):
        return str(options["paths"][0])
    raise click.UsageError("--check and --diff need -o FILE, the file to compare")


def _content(path: str | None) -> str | None:
    if path is None or not os.path.exists(path):
        return None
    from compatcheck.advice import wanted

    return wanted.text_of(path)


def _proven(planned: Plan, installed: Target | None) -> Plan:
    from compatcheck import pin
    from compatcheck._progress import building_progress
    from compatcheck.verbs._output import progress

    return pin.prove(planned, installed, building_progress, progress)


def _tell(report: PinReport, left_out: Iterable[str], file: str | None) -> None:
    from compatcheck.report import pins

    for line in left_out:
        click.echo(line, err=True)
    colour = sys.stderr.isatty() and "NO_COLOR" not in os.environ
    click.echo(pins.render(report, colour), err=True, nl=False)
    if file is not None:
        write(pins.render_json(report), file)


def _deliver(text: str, before: str | None, output: str | None, options: Mapping[str, Any]) -> bool:
    """Write the pins, or show or tell what would change; whether a file that was to be up to date is not."""
    if options["only_diff"]:
        old, new = ((side or "").splitlines(keepends=True) for side in (before, text))
        write("".join(difflib.unified_diff(old, new, str(output), f"{output} (new)")), None)
    if options["only_check"] and text != before:
        click.echo(f"{output} is out of date; write it anew with compatcheck pin -o {output}", err=True)
    if options["only_check"] or options["only_diff"]:
        return bool(options["only_check"]) and text != before
    if output is not None and _content(output) != before:
        raise InputError("writing", output, "it was changed meanwhile", "look at the change, and run this again")
    write(text, output)
    return False


def _exit_status(report: PinReport, differs: bool) -> int:
    if differs or report.left:
        return _status.FINDINGS
    return _status.PROBE_MISSING if report.unverified else _status.CLEAN
