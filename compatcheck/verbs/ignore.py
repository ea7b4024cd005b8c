"""`compatcheck ignore`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from compatcheck.language import comma_list
from compatcheck.language import gettext as _
from compatcheck.verbs import _help

if TYPE_CHECKING:
    from datetime import date

SECTION = "fix"
EXAMPLES = (
    "compatcheck ignore CC-2024-0001 --reason 'batch size is 1' --until 2027-01-31",
    "compatcheck ignore CC-2024-0001 --remove",
)


@_help.verb()
@click.argument("entry", metavar="ID")
@_help.option("--reason", metavar="TEXT", help="Why the finding is harmless here, or what the fix is waiting for.")
@_help.option("--until", metavar="YYYY-MM-DD", help="Ignore the entry until the end of this day.")
@_help.option(
    "--path",
    "paths",
    multiple=True,
    metavar="GLOB",
    help="Ignore the entry only in these files, relative to pyproject.toml; repeatable.",
)
@_help.option("--remove", is_flag=True, help="Remove the ignore.")
def command(entry: str, reason: str | None, until: str | None, paths: tuple[str, ...], remove: bool) -> None:
    """Ignore an entry until a date, with a reason.

    Edits the pyproject.toml whose [tool.compatcheck] applies here. Without such a file, edits the nearest
    pyproject.toml or creates one.
    Comments and order are kept.
    """
    from compatcheck import matrix, settings
    from compatcheck.files import storage

    if remove and (reason is not None or until is not None):
        raise click.UsageError(_("--remove goes with ID and --path only"))
    if remove:
        path, text, same = settings.without_ignore(".", entry.upper(), paths)
        _require_removed(same, path, entry.upper(), paths)
        storage.write(path, text)
        text = _("{path}: {entry} is no longer ignored{scope}")
        click.echo(text.format(path=path, entry=entry.upper(), scope=_path_scope(paths)))
        return
    known = matrix.load()
    found = matrix.in_language(known, matrix.find_entry(known, entry))
    ignore = settings.Ignore(found["id"], *_parse_reason_and_day(found["id"], reason, until), paths)
    path, text, same = settings.with_ignore(".", ignore)
    storage.write(path, text)
    text = _("{path}: {entry} is ignored{scope} until {day}: {title}")
    click.echo(
        text.format(path=path, entry=found["id"], scope=_path_scope(paths), day=ignore.until, title=found["title"])
    )


def _path_scope(paths: tuple[str, ...]) -> str:
    return _(" in {paths}").format(paths=comma_list(paths)) if paths else ""


def _require_removed(same: int, path: str, entry: str, paths: tuple[str, ...]) -> None:
    from compatcheck.errors import InputError

    if not same:
        seen = f"{entry} is not ignored{_path_scope(paths)} there"
        raise InputError("removing an ignore from", path, seen, "pass ID and every --path as written there")


def _parse_reason_and_day(entry: str, reason: str | None, until: str | None) -> tuple[str, date]:
    """Parse the reason and the day. Raises InputError if one is missing or the day is invalid or past."""
    from datetime import date, timedelta

    from compatcheck import settings
    from compatcheck.errors import InputError

    today = date.today()
    example = f"such as --reason 'batch size is 1' --until {today + timedelta(days=90)}"
    why = " ".join((reason or "").split())
    if not why:
        raise InputError(
            "ignoring", entry, "no reason is given", f"add a reason why the finding is harmless here, {example}"
        )
    if until is None:
        raise InputError("ignoring", entry, "no date is given", f"add the last day, {example}")
    last = settings.day(until)
    if last is None:
        raise InputError("ignoring", entry, f"{until} is not a date", f"use a date, {example}")
    if last < today:
        raise InputError("ignoring", entry, f"{until} is in the past", f"use a date that is not in the past, {example}")
    return why, last
