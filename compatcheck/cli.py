"""The command line: verbs, exit status, and the one top-level error handler."""

from __future__ import annotations

import gc
import os
import sys
from typing import TYPE_CHECKING, Any, Literal, NoReturn

import click

from compatcheck import __version__
from compatcheck.errors import CompatcheckError, InputError

if TYPE_CHECKING:
    from compatcheck.model import Environment, Report, Target

EXIT_CLEAN, EXIT_FINDINGS, EXIT_PROBE_MISSING, EXIT_BUG, EXIT_INTERRUPTED = 0, 1, 4, 5, 130


class _VerbGroup(click.Group):
    """A group whose verb may be left out: ``compatcheck --python X`` means ``compatcheck check --python X``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args or (args[0] not in self.commands and args[0] not in ("--help", "-h", "--version")):
            args = ["check", *args]
        return super().parse_args(ctx, args)


@click.group(cls=_VerbGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, message="compatcheck %(version)s")
def cli() -> None:
    """Find the combinations of versions, GPUs, settings and model files that break language-model training.

    Without a verb, `check` is meant.
    """


_python = click.option("--python", metavar="PATH", help="Interpreter, venv folder or version to inspect.")
_output = click.option("-o", "--output", metavar="FILE", help="Write here instead of standard output.")
_snapshot = click.option("--snapshot", metavar="FILE", help="Judge a recorded environment; - is standard input.")
_assume = click.option(
    "--assume", multiple=True, metavar="KEY=VALUE", help="State a fact, as gpu.compute_capability=9.0."
)
_format = click.option(
    "--format", "format_name", type=click.Choice(["text", "json"]), default="text", show_default=True
)


def _check_options(command: Any) -> Any:
    """The options that `check` and `demo` share, in the order in which help shows them."""
    for option in reversed(
        [
            _format,
            _output,
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


@cli.command()
@click.argument("paths", nargs=-1, metavar="[PATH]...")
@_python
@_snapshot
@_assume
@_check_options
@click.option("--no-probe", is_flag=True, help="Read only; run nothing in the target's interpreter.")
@click.option("--require-probe", is_flag=True, help="Exit with 4 where a probe could not run.")
@click.option("--budget", type=click.FloatRange(min=0), metavar="SECONDS", help="Start no probe after this long.")
def check(
    paths: tuple[str, ...],
    python: str | None,
    snapshot: str | None,
    assume: tuple[str, ...],
    no_probe: bool,
    require_probe: bool,
    budget: float | None,
    **options: Any,
) -> NoReturn:
    """Judge an environment.

    A PATH is a file or folder of the project: DeepSpeed JSON, requirements, a model folder. Pinned requirements count
    over what is installed in an active environment; with --python what is installed counts.
    """
    from compatcheck import matrix

    known = matrix.load()
    environment, target = _environment(known, paths, python, snapshot, assume)
    _judge(environment, known, None if no_probe else target, budget, require_probe, options)


@cli.command()
@_check_options
def demo(**options: Any) -> NoReturn:
    """Judge a recorded environment. It is that of a GLM-4 fine-tune on torch 2.5.0."""
    from compatcheck import facts, matrix

    path = os.path.join(os.path.dirname(__file__), "demo", "glm-4.json")
    _judge(facts.load_file(path), matrix.load(), None, None, False, options)


@cli.command()
@click.argument("paths", nargs=-1, metavar="[PATH]...")
@_python
@_assume
@_output
@click.option("--hash-weights", is_flag=True, help="Hash the weight files of a model folder as well.")
def env(
    paths: tuple[str, ...], python: str | None, assume: tuple[str, ...], output: str | None, hash_weights: bool
) -> None:
    """Print every fact that `check` would judge. The snapshot is JSON; `check --snapshot` reads it back."""
    import json

    from compatcheck import matrix
    from compatcheck.model import dump

    environment, _ = _environment(matrix.load(), paths, python, None, assume, hash_weights)
    _write(json.dumps(dump(environment), indent=2, ensure_ascii=False) + "\n", output)


@cli.command()
@click.argument("names", nargs=-1, metavar="[PROBE]...")
@_python
@_format
@_output
@click.option("--request", metavar="JSON", default="{}", help='What to ask of it, as {"dtype": "float16"}.')
def probe(names: tuple[str, ...], python: str | None, output: str | None, request: str, format_name: str) -> NoReturn:
    """Run probes in the target's interpreter. Without a name, all of them."""
    from compatcheck import facts, probes
    from compatcheck.report import probes as probe_report

    asked = probes.parse_request(request)
    trials = [(name, asked) for name in probes.require(names)]
    with _progress() as show:
        results = probes.run_all(trials, facts.find_target(python, os.environ), on_progress=show)
    _write(probe_report.render(results, format_name), output)
    outcomes = {result.outcome for result in results}
    if "fail" in outcomes:
        sys.exit(EXIT_FINDINGS)
    sys.exit(EXIT_CLEAN if outcomes & {"pass", "watch"} and not outcomes & {"crash", "timeout"} else EXIT_PROBE_MISSING)


@cli.command()
@click.argument("paths", nargs=-1, metavar="[PATH]...")
@_python
@_assume
@_output
@click.option("--offline", is_flag=True, help="Resolve from uv's cache alone.")
def pin(
    paths: tuple[str, ...], python: str | None, assume: tuple[str, ...], output: str | None, offline: bool
) -> NoReturn:
    """Print pins that leave no affected finding.

    A PATH is a file or folder of the project, as for `check`. The pins come from the requirements among them, else from
    what is installed, and change as little as can be.
    """
    from compatcheck import check, facts, matrix
    from compatcheck.advice import pins

    known, target = matrix.load(), facts.find_target(python, os.environ)
    installed = facts.collect(target, known.environ)
    context = facts.with_paths(installed, paths, pins="ignored") if paths else installed
    requirements = facts.requirements_among(paths) if paths else ()
    wanted = (
        pins.read_wanted(requirements)
        if requirements
        else pins.installed_wanted(facts.top_level(target), installed.facts["distributions"])
    )
    environment = facts.assume_all(context, assume)
    result = check.pin(environment, known, wanted, target, offline=offline)
    _write(result.text, output)
    left = [finding for finding in result.report.findings if finding.status in check.BAD]
    for name, label in pins.lost_labels(result.text, wanted).items():
        click.echo(f"{name} was the {label} build: install these pins from the index it came from", err=True)
    for cause in result.causes:
        click.echo(f"not cleared: {cause}", err=True)
    for finding in left:
        steps = next((remedy.steps for remedy in finding.remedies if not remedy.pins), ())
        click.echo(f"left: {finding.id} {finding.title}" + (f": {'; '.join(steps)}" if steps else ""), err=True)
    sys.exit(EXIT_FINDINGS if left else EXIT_CLEAN)


@cli.command()
@click.argument("entry_id", metavar="ID")
@_output
def explain(entry_id: str, output: str | None) -> None:
    """Show one entry as a page. What goes wrong, why, the evidence, the way out, the advice that misleads."""
    from compatcheck import matrix, probes
    from compatcheck.report import explanation

    entry = matrix.find_entry(matrix.load(), entry_id)
    described = probes.describe(entry["probe"]["name"]) if entry.get("probe") else ()
    _write(explanation.render(entry, described), output)


@cli.group("matrix")
def matrix_group() -> None:
    """List, search, lint or build the matrix."""


@matrix_group.command("list")
@click.option("--package", metavar="NAME", help="Only entries about this distribution.")
def list_entries(package: str | None) -> None:
    """List the entries."""
    from compatcheck import matrix
    from compatcheck.report import explanation

    entries = matrix.all_entries(matrix.load())
    click.echo(explanation.render_list(e for e in entries if package in (None, *e["packages"])), nl=False)


@matrix_group.command()
@click.argument("words", nargs=-1, required=True)
def search(words: tuple[str, ...]) -> None:
    """Search titles, summaries, symptoms and mechanisms for all of the words."""
    from compatcheck import matrix
    from compatcheck.report import explanation

    found = matrix.search(matrix.load(), words)
    click.echo(explanation.render_list(found), nl=False)
    sys.exit(EXIT_CLEAN if found else EXIT_FINDINGS)


@matrix_group.command()
@click.argument("folder", required=False)
def lint(folder: str | None) -> None:
    """Prove every entry of a matrix FOLDER by its own examples."""
    from compatcheck import matrix, probes

    faults, entries = matrix.lint_folder(folder, probes.names())
    for fault in faults:
        click.echo(f"{fault.id}: {'stale: ' if fault.stale else ''}{fault.text}")
    errors = sum(not fault.stale for fault in faults)
    click.echo(f"{entries} entries, {errors} faults", err=True)
    sys.exit(EXIT_FINDINGS if errors else EXIT_CLEAN)


@matrix_group.command()
@click.argument("folder")
@click.argument("destination")
def build(folder: str, destination: str) -> None:
    """Compile the matrix FOLDER into DESTINATION, in the form a wheel carries."""
    from compatcheck import matrix

    index = matrix.compile_folder(folder, destination)
    click.echo(f"{index['entries']} entries, revision {index['revision']}", err=True)


def _environment(
    known: Any,
    paths: tuple[str, ...],
    python: str | None,
    snapshot: str | None,
    assume: tuple[str, ...],
    hash_weights: bool = False,
) -> tuple[Environment, Target | None]:
    """The environment to judge, and the interpreter its probes can run in, where it is a real one on this machine."""
    from compatcheck import facts

    target = None if snapshot is not None else facts.find_target(python, os.environ)
    found = facts.collect(target, known.environ) if target else facts.load_file(snapshot or "-")
    stated = facts.with_paths(found, paths, pins=_pins_mode(python, target), weights=hash_weights) if paths else found
    judged = facts.assume_all(stated, assume)
    real = judged.facts.get("distributions") == found.facts.get("distributions")
    return judged, target if real else None


def _pins_mode(python: str | None, target: Target | None) -> Literal["ignored", "over", "instead"]:
    """What requirements mean beside an environment.

    An interpreter that is named counts as it is; into an active environment the pins will be installed; the one
    compatcheck happens to run in has nothing to do with them.
    """
    if python is not None:
        return "ignored"
    own = target is not None and target.prefix == sys.prefix and not {"VIRTUAL_ENV", "CONDA_PREFIX"} & set(os.environ)
    return "instead" if own else "over"


def _judge(
    environment: Environment,
    known: Any,
    target: Target | None,
    budget: float | None,
    require_probe: bool,
    options: dict[str, Any],
) -> NoReturn:
    from compatcheck import matrix
    from compatcheck.check import check as compare
    from compatcheck.check import confirm
    from compatcheck.report import render

    report = compare(
        environment,
        known,
        select=matrix.require_ids(known, options["select"]),
        ignore=matrix.require_ids(known, options["ignore"]),
    )
    if target is not None and any(finding.probe_name for finding in report.findings):
        with _progress() as show:
            report = confirm(report, target, budget_seconds=budget, on_probe=show)
    status, reason = _exit_status(report, options["fail_on"], require_probe)
    colour = options["output"] is None and sys.stdout.isatty() and "NO_COLOR" not in os.environ
    text = render(report, options["format_name"], exit_reason=reason, colour=colour, refuted=options["show_refuted"])
    _write(text, options["output"])
    sys.exit(status)


def _exit_status(report: Report, fail_on: str, require_probe: bool) -> tuple[int, str]:
    """The exit status, and the reason for it in words."""
    from compatcheck.model import STATUSES

    unrun = [
        f for f in report.findings if f.probe_name and (not f.probe or f.probe.outcome in ("skip", "crash", "timeout"))
    ]
    failing = STATUSES[: STATUSES.index(fail_on) + 1] if fail_on != "never" else ()
    count = sum(finding.status in failing for finding in report.findings)
    if require_probe and unrun:
        return EXIT_PROBE_MISSING, f"the probe of {unrun[0].id} could not run"
    if count:
        return EXIT_FINDINGS, f"{count} findings at or above {fail_on}"
    return EXIT_CLEAN, f"no finding at or above {fail_on}"


def _write(text: str, output: str | None) -> None:
    if output is not None:
        from compatcheck import _files

        _files.write(output, text)
        return
    try:
        click.echo(text, nl=False)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise InputError("writing", "standard output", error.strerror or str(error), "make room, or use -o") from None


def _progress() -> Any:
    """Progress of probes; a request to stop, however it comes, ends the probe's process as well."""
    import signal

    from compatcheck._progress import probe_progress

    for name in ("SIGTERM", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), lambda number, _: sys.exit(128 + number))
    return probe_progress()


def main() -> NoReturn:
    """Run the command line; every way out ends here with its own exit status."""
    gc.disable()  # a short process that keeps what it reads; collecting would walk the matrix's index again and again
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    try:
        sys.exit(cli.main(prog_name="compatcheck", standalone_mode=False) or EXIT_CLEAN)
    except CompatcheckError as error:
        click.echo(f"compatcheck: {error}", err=True)
        sys.exit(error.exit_status)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        click.echo("compatcheck: interrupted", err=True)
        sys.exit(EXIT_INTERRUPTED)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(EXIT_CLEAN)
    except Exception:  # noqa: BLE001
        import traceback

        traceback.print_exc()
        click.echo("compatcheck: this is a bug; please report it with the lines above", err=True)
        sys.exit(EXIT_BUG)
