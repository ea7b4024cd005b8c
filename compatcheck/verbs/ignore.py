"""`compatcheck ignore`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

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
@_help.option("--reason", metavar="TEXT", help="Why it is harmless here, or what it waits for.")
@_help.option("--until", metavar="YYYY-MM-DD", help="Last day on which it is ignored.")
@_help.option(
    "--path",
    "paths",
    multiple=True,
    metavar="GLOB",
    help="Ignore it only in these files, relative to pyproject.toml; repeatable.",
)
@_help.option("--remove", is_flag=True, help="Remove the ignore.")
def command(entry: str, reason: str | None, until: str | None, paths: tuple[str, ...], remove: bool) -> None:
    """Ignore an entry until a date, with a reason.

    Edits the pyproject.toml whose [tool.compatcheck] is in effect here, then the nearest one, else a new one.
    Comments and order are kept.
    """
    from compatcheck import matrix, settings
    from compatcheck.files import storage

    if remove and (reason is not None or until is not None):
        raise click.UsageError("--remove goes with ID and --path only")
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
    return _(" in {paths}").format(paths=", ".join(paths)) if paths else ""


def _require_removed(same: int, path: str, entry: str, paths: tuple[str, ...]) -> None:
    from compatcheck.errors import InputError

    if not same:
        seen = f"{entry} is not ignored{_path_scope(paths)} there"
        raise InputError("removing an ignore from", path, seen, "give ID and every --path as written there")


def _parse_reason_and_day(entry: str, reason: str | None, until: str | None) -> tuple[str, date]:
    """Parse the reason and the day. Raises InputError if one is missing or the day is invalid or past."""
    from datetime import date, timedelta

    from compatcheck import settings
    from compatcheck.errors import InputError

    today = date.today()
    example = f"as --reason 'batch size is 1' --until {today + timedelta(days=90)}"
    why = " ".join((reason or "").split())
    if not why:
        raise InputError("ignoring", entry, "no reason is given", f"say why it does no harm here, {example}")
    if until is None:
        raise InputError("ignoring", entry, "no day is given", f"say up to when, {example}")
    last = settings.day(until)
    if last is None:
        raise InputError("ignoring", entry, f"{until} is no day", f"give one {example}")
    if last < today:
        raise InputError("ignoring", entry, f"{until} is past", f"give a day to come, {example}")
    return why, last
