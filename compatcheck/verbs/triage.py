"""`compatcheck triage`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NoReturn

import click

from compatcheck.language import gettext as _
from compatcheck.terminal.cells import cells
from compatcheck.verbs import _options
from compatcheck.verbs._output import write
from compatcheck.verbs._verdict import judge

if TYPE_CHECKING:
    from compatcheck.environment import Environment

_WIDEST = 60
SUSPECTED = 3
"""So many entries are told beyond what the report speaks for: it fails, and people leave packages out."""


@click.command()
@click.argument("file", metavar="FILE")
@_options.assume
@_options.verdict
@click.option("--env", "env_only", is_flag=True, help="Print the snapshot that the report makes, and judge nothing.")
@click.option("--snapshot-out", metavar="FILE", help="Also write that snapshot here.")
def command(
    file: str, assume: tuple[str, ...], env_only: bool, snapshot_out: str | None, **options: Any
) -> NoReturn | None:
    """Judge the environment that a bug report describes.

    FILE holds its text as people paste it, or the JSON that gh or GitHub's API gives; - is standard input. Read are the
    output of transformers env, accelerate env, collect_env, ds_report, llamafactory-cli env, pip, conda or nvidia-smi,
    tracebacks, and plain words in English or Chinese. What its lines contradict is unknown.
    """
    import json

    from compatcheck import matrix
    from compatcheck.bug_report import read_report_file
    from compatcheck.environment import dump
    from compatcheck.environment.assumptions import assume_all

    stated = read_report_file(file)
    environment = assume_all(stated, assume)
    _require_something(environment, "standard input" if file == "-" else file)
    snapshot = json.dumps(dump(environment), indent=2, ensure_ascii=False) + "\n"
    if snapshot_out is not None:
        write(snapshot, snapshot_out)
    if env_only:
        write(snapshot, options["output"])
        return None
    if options["format_name"] == "text" and options["output"] is None and not options["quiet"]:
        write("".join(f"{line}\n" for line in _told(environment)), None)
    judge(environment, matrix.load(), None, None, False, options, suspected=SUSPECTED)


def _require_something(environment: Environment, source: str) -> None:
    from compatcheck.errors import NothingInspectedError

    if not environment.facts:
        seen = "nothing in it is a fact about an environment"
        if environment.reasons:
            path, why = next(iter(environment.reasons.items()))
            seen = f"nothing in it is settled; of {path}, {why}"
        raise NothingInspectedError("reading the report", source, seen, "paste versions, or state facts with --assume")


def _told(environment: Environment) -> Iterator[str]:
    """Where and when it was filed, each fact with the line it stands on, and what the report leaves open."""
    rows = [
        (path, _shown(value), at.line if at else None)
        for path, value in _flat(environment.facts)
        if (at := environment.locations.get(path)) or path.startswith("report.")
    ]
    width = max((min(len(path), _WIDEST) for path, _, _ in rows), default=0)
    yield _("the report states")
    for path, shown, line in sorted(rows, key=lambda row: (row[2] or 0, row[0])):
        place = _("line {number}").format(number=line) if line else ""
        yield f"{' ' * (10 - cells(place))}{place}  {path:<{width}}  {shown}"
    if environment.reasons:
        yield _("and leaves open")
        for path, why in environment.reasons.items():
            yield f"{'':10}  {path:<{width}}  {why}"
    yield ""


def _flat(facts: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in facts.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{above}{key}.")
        else:
            yield f"{above}{key}", value


def _shown(value: Any) -> str:
    from collections import Counter

    if isinstance(value, list) and all(isinstance(each, Mapping) for each in value):
        if all("module" in each for each in value):
            return ", ".join(".".join(filter(None, (each["module"], each.get("name")))) for each in value)
        counted = Counter((str(each.get("name") or "GPU"), bool(each.get("uncounted"))) for each in value)
        return ", ".join(name if uncounted else f"{count} x {name}" for (name, uncounted), count in counted.items())
    return "absent" if value is None else str(value)
