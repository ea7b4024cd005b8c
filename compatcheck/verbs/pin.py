"""`compatcheck pin`."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NoReturn

import click

from compatcheck.advice import formats
from compatcheck.errors import CompatcheckError, InputError
from compatcheck.language import gettext as _
from compatcheck.results import exit_status
from compatcheck.terminal.messages import lines, one_line
from compatcheck.terminal.stopwatch import print_times, stage
from compatcheck.verbs import _help, _options
from compatcheck.verbs._output import write

if TYPE_CHECKING:
    from compatcheck.environment import Target
    from compatcheck.pipelines.pin import Plan
    from compatcheck.results.pins import PinReport

_SUBJECT_OPTIONS = (
    "python", "snapshot", "python_version", "platform", "torch_backend", "output", "offline", "build", "verify",
    "strict", "latest", "prefer",
)  # fmt: skip

SECTION = "fix"
EXAMPLES = (
    "compatcheck pin requirements.in -o requirements.txt",
    "compatcheck pin 'torch==2.5.0' transformers peft",
    "compatcheck pin --snapshot node.json --torch-backend cu126",
)


_REQUIREMENT = re.compile(r"[A-Za-z0-9][\w.-]*\s*(\[[^\]]*\])?\s*([=<>!~;@(].*)?\Z")
_FILES = (".txt", ".in", ".toml", ".lock", ".cfg", ".yaml", ".yml", ".json", ".sh", ".py", ".ipynb")


@_help.verb()
@click.argument("inputs", nargs=-1, metavar="[INPUT]...")
@_options.python
@_options.trust
@_options.snapshot("Pin for the machine recorded in this file; - is standard input.", aliases=("--target",))
@_options.config("INPUT")
@_help.option(
    "--python-version",
    rare=True,
    metavar="VERSION",
    help="Pin for this Python version. Default: the interpreter's own.",
)
@_help.option(
    "--platform",
    rare=True,
    metavar="NAME",
    help="Pin for this platform, in uv's notation, such as aarch64-manylinux_2_28.",
)
@_help.option(
    "--torch-backend",
    metavar="NAME",
    help="Build of torch, such as cpu or cu126. With `index`, your own package indexes decide.",
)
@_options.assume
@_help.option(
    "--format",
    "format_name",
    type=click.Choice(formats.names()),
    metavar="FORMAT",
    help=f"Output format: {', '.join(formats.names())}. Default: inferred from the file name.",
)
@_help.option("--generate-hashes", rare=True, is_flag=True, help="Write the hash of every file that may be installed.")
@_options.output
@_help.option("--check", "only_check", is_flag=True, help="Write nothing; exit with 1 if the file is out of date.")
@_help.option("--diff", "only_diff", is_flag=True, help="Write nothing; show what would change in the file.")
@_help.option(
    "--upgrade-to-latest",
    "latest",
    rare=True,
    is_flag=True,
    help="Start from the newest versions. Default: the current ones.",
)
@_help.option(
    "--verify", is_flag=True, help="Build the pinned set in a temporary environment and re-run the failed probes there."
)
@_help.option(
    "--prefer",
    rare=True,
    type=click.Choice(["pins", "config"]),
    help="When both a pin and a setting would fix a finding, prefer this.",
)
@_help.option("--strict", rare=True, is_flag=True, help="Also avoid possible findings.")
@_options.ignore
@_options.budget("Stop resolving after this many seconds.", default=120.0, show_default=True, rare=True)
@_options.page_reports
@_help.option("--offline", rare=True, is_flag=True, help="Resolve from uv's cache only.")
@_help.option(
    "--build",
    rare=True,
    is_flag=True,
    help="Build local projects if their dependencies cannot be read otherwise. Building runs their code.",
)
@_options.project
@_options.quiet
@_options.verbose("Also print every package that changes, and timings.")
def command(**options: Any) -> NoReturn:
    """Print the version pins closest to yours that fix all problems with status affected.

    INPUT is a file or folder of the project, as for `check`, a requirement such as 'torch==2.5.0', or - for
    requirements on standard input. The search starts from the requirements or the project's pyproject.toml, otherwise
    from the installed packages. [tool.compatcheck] supplies assumed facts and the entries that are ignored in every
    file.

    Exit status: 0 for clean pins, 1 if a finding remains or no versions fit together, 2 for wrong input, such as a
    version that does not exist.
    """
    from compatcheck import matrix
    from compatcheck.advice import search
    from compatcheck.pipelines import pin
    from compatcheck.pipelines.verdict import ignored_everywhere
    from compatcheck.report import render
    from compatcheck.report.subjects.pins import document
    from compatcheck.terminal.progress import resolving_progress

    options["paths"], texts = _sorted_inputs((*options.pop("inputs"), *options.pop("configs")), options["snapshot"])
    output = _output(options)
    format_name = _format(output, options)
    known, project = matrix.load(), _options.settings_of(options["settings_file"], options["isolated"])
    subject = pin.subject(
        known,
        options["paths"],
        **{key: options[key] for key in _SUBJECT_OPTIONS},
        assume=(*(() if options["snapshot"] else project.assume), *options["assume"]),
        ignore=(*ignored_everywhere(known, project), *options["ignore"]),
        texts=texts,
    )
    if not options["quiet"]:
        click.echo(one_line(_("pinning {subject}").format(subject=subject.place)), err=True)
    before = {path: _content(path) for path in (output, *subject.sources) if path}
    deadline = time.monotonic() + options["budget"]
    with resolving_progress(options["budget"]) as show, stage("resolving"):
        planned = pin.plan(subject.task, lambda: time.monotonic() > deadline, show, _print_refusal)
    if isinstance(planned, search.Conflict):
        click.echo(lines(search.explain(planned)), err=True, nl=False)
        sys.exit(exit_status.FINDINGS)
    previous = before.get(output) if output else None
    text = pin.written(planned, format_name, previous, options["generate_hashes"], _command(output))
    if options["verify"] and not planned.moves:
        planned = pin.noted(planned, _("no version changed, so nothing was built or verified"))
    elif options["verify"]:
        with stage("verifying"):
            planned = _prove(planned, subject.installed)
    _print_outcome(planned.report, pin.left_out(planned, format_name, previous, text), options)
    for name, file in options["reports"]:
        write(render(document((pin.with_maps(planned) if name == "html" else planned).report), name), file)
    if planned.report.refuted or (planned.report.unfinished and output):
        sys.exit(exit_status.FINDINGS)
    differs = _deliver(text, before, output, options)
    sys.exit(_exit_status(planned.report, differs))


def _sorted_inputs(inputs: Iterable[str], snapshot: str | None) -> tuple[tuple[str, ...], dict[str, str]]:
    """The paths among the inputs, and the requirements that stand in no file, by what to call their place."""
    paths: list[str] = []
    bare: list[str] = []
    texts: dict[str, str] = {}
    for given in inputs:
        if given == "-" and snapshot != "-":
            texts[_("standard input")] = sys.stdin.read()
        elif not os.path.lexists(given) and _REQUIREMENT.match(given) and not given.endswith(_FILES):
            bare.append(given)
        else:
            paths.append(given)
    if bare:
        texts[_("the command line")] = "\n".join(bare)
    return tuple(paths), texts


def _print_refusal(error: CompatcheckError) -> None:
    """Say at once why the versions as they are asked for cannot be had together."""
    from compatcheck.terminal.cells import fold
    from compatcheck.terminal.progress import above
    from compatcheck.terminal.screen import screen

    text = _("these versions cannot be installed together: {why}").format(why=error.seen)
    if sys.stderr.isatty():
        text = "\n".join(fold(text, screen(sys.stderr).width))
    with above():
        click.echo(click.style(lines(text), "yellow"), err=True)


def _output(options: Mapping[str, Any]) -> str | None:
    """The file that is written or compared: the one named, else the only file given where it is only looked at."""
    named: str | None = None if options["output"] == "-" else options["output"]
    if options["snapshot"] and options["python"]:
        raise click.UsageError(_("--snapshot and --python exclude each other"))
    folder = os.path.dirname(os.path.realpath(named)) if named else os.curdir
    if not os.path.isdir(folder):
        raise InputError(
            "writing", str(named), f"there is no folder {folder}", "create the folder, or pass another path"
        )
    taken = {os.path.realpath(path) for path in (*options["paths"], *filter(None, [named]))}
    if any(os.path.realpath(file) in taken for _name, file in options["reports"]):
        raise click.UsageError(_("--report names a file that is read or written already"))
    if named or not (options["only_check"] or options["only_diff"]):
        return named
    if len(options["paths"]) == 1 and os.path.isfile(options["paths"][0]):
        return str(options["paths"][0])
    raise click.UsageError(_("--check and --diff need -o FILE, the file to compare"))


def _format(output: str | None, options: Mapping[str, Any]) -> str:
    """The format asked for, else the one that the file's name tells. Raises InputError for a file of another kind."""
    name = os.path.basename(output or "")
    told = "requirements"
    if name.endswith(".toml"):
        told = "pylock" if name.startswith("pylock") else "pyproject"
    elif name.startswith("constraints"):
        told = "constraints"
    chosen: str = options["format_name"] or told
    if options["generate_hashes"] and chosen not in ("requirements", "pylock"):
        raise click.UsageError(_("--generate-hashes goes with --format requirements and pylock"))
    plain = chosen in ("requirements", "constraints")
    kinds = (".txt", ".in") if plain else (".toml",)
    if output and os.path.isfile(output) and os.path.getsize(output) and not name.endswith(kinds):
        seen = f"the file exists, but is not a {' or '.join(kinds)} file"
        raise InputError(f"writing {chosen} over", output, seen, "choose another file with -o, or another --format")
    return chosen


def _content(path: str) -> str | None:
    """The text of an ordinary file; None for one that is not there yet, and for a pipe or a device."""
    if not os.path.isfile(path):
        return None
    from compatcheck.files.reading import marked_text

    return marked_text(path)


def _prove(planned: Plan, installed: Target | None) -> Plan:
    from compatcheck.pipelines import pin
    from compatcheck.terminal.progress import building_progress
    from compatcheck.verbs._output import progress

    return pin.prove(planned, installed, building_progress, progress)


def _print_outcome(report: PinReport, left_out: Iterable[str], options: Mapping[str, Any]) -> None:
    """Print what became of the request; a quiet one only where something is wrong with these pins."""
    from compatcheck.report import render
    from compatcheck.report.subjects.pins import document
    from compatcheck.terminal.screen import screen

    for line in left_out:
        click.echo(one_line(_(line)), err=True)
    if not options["quiet"] or report.left or report.refuted or report.unverified or report.unfinished:
        text = render(document(report, verbose=options["verbose"]), "text", screen(sys.stderr))
        click.echo(text, err=True, nl=False, color=True)
    if options["verbose"]:
        print_times()


def _deliver(text: str, before: Mapping[str, str | None], output: str | None, options: Mapping[str, object]) -> bool:
    """Write the pins, or show or tell what would change; whether a file that was to be up to date is not."""
    previous = before.get(output) if output else None
    if options["only_diff"]:
        current = previous is not None and formats.is_current(text, previous)
        write("" if current else lines(formats.difference(previous or "", text, str(output))), None)
    is_current = formats.is_current(text, previous)
    if options["only_check"] and not is_current:
        said = _("{file} is out of date; update it with {command}")
        click.echo(one_line(said.format(file=output, command=_command(output))), err=True)
    if options["only_check"] or options["only_diff"]:
        return bool(options["only_check"]) and not is_current
    for path, content in before.items():
        if _content(path) != content:
            raise InputError("pinning", path, "the file changed in the meantime", "check the change and run this again")
    write(text, output)
    return False


def _command(output: str | None) -> str:
    """The command line as it was given, to write the file rather than look at it."""
    import shlex

    arguments = [each for each in sys.argv[1:] if each not in ("--check", "--diff")]
    named = any(each == "-o" or each.startswith(("--output", "-o")) for each in arguments)
    return shlex.join(["compatcheck", *arguments, *(() if named or output is None else ("-o", output))])


def _exit_status(report: PinReport, differs: bool) -> int:
    if differs or report.left:
        return exit_status.FINDINGS
    return exit_status.REQUIRED_MISSING if report.unverified else exit_status.CLEAN
