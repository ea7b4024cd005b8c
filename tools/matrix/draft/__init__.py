"""A new entry, drafted from what a reporter filled in: everything known is in its place, and the rest is marked."""

from __future__ import annotations

import os
import re
from datetime import date
from typing import NamedTuple

from compatcheck import matrix
from compatcheck.bug_report import read_report
from compatcheck.errors import InputError
from compatcheck.packages.names import normalised
from tools.matrix.draft import _issue, _toml
from tools.matrix.draft._evidence import Draft, drafted

__all__ = ["Draft", "Written", "from_issue", "next_id", "skeleton", "write"]

_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,78}[a-z0-9])?")
_NOT_PACKAGES = ("tables", "frameworks", "records", "environments")
_DOING = "drafting an entry for"


class Written(NamedTuple):
    """Where a draft was put, and what is still to be filled in there."""

    path: str
    id: str
    open: tuple[str, ...]


def from_issue(path: str, today: date, package: str | None = None, title: str | None = None) -> Draft:
    """A draft of what the issue in a file says: its Markdown body, or the JSON that ``gh issue view`` makes of it.

    ``package`` and ``title`` count over the issue's own. Raises InputError where it cannot be read, is no issue of
    the form, or names no package.
    """
    issue = _issue.read(path)
    named = package or issue.fields["package"]
    if not named.strip():
        raise InputError(_DOING, path, "it names no package at fault", "give one with --package")
    return drafted(issue, require_name(named), title, today)


def skeleton(package: str, title: str | None, today: date) -> Draft:
    """A draft of which nothing is known but the package and perhaps what breaks."""
    empty = _issue.Issue(dict.fromkeys(_issue.LABELS, ""), "", read_report("", ""))
    return drafted(empty, require_name(package), title, today)


def require_name(package: str) -> str:
    """The normalised name; raises InputError where it is none that a distribution can have, or a folder's own."""
    name = normalised(package.strip().strip("`"))
    if not _NAME.fullmatch(name):
        raise InputError(_DOING, f"{package!r:.90}", "not a valid package name", "give the name on PyPI")
    if name in _NOT_PACKAGES:
        raise InputError(_DOING, name, "a folder of the matrix already has this name", "write the entry by hand")
    return name


def next_id(folder: str, year: int) -> str:
    """The number after the highest that any entry of the year has, withdrawn ones included."""
    numbers = [0]
    for _, _, names in os.walk(folder):
        numbers += [int(found[1]) for name in names if (found := re.fullmatch(rf"CC-{year}-(\d{{4}})\.toml", name))]
    if max(numbers) == 9999:
        raise InputError("numbering an entry in", folder, f"CC-{year}-9999 is taken", "take a free number by hand")
    return f"CC-{year}-{max(numbers) + 1:04d}"


def write(draft: Draft, folder: str | None, today: date) -> Written:
    """Put the draft into its package's folder of a matrix under the next free id; no file is ever written over."""
    source = matrix.source_folder(folder)
    entry_id = next_id(source, today.year)
    place = os.path.join(source, draft.package)
    path = os.path.join(place, f"{entry_id}.toml")
    try:
        os.makedirs(place, exist_ok=True)
        with open(path, "x", encoding="utf-8", newline="\n") as stream:
            stream.write(_toml.text(draft, entry_id))
    except OSError as error:
        seen = error.strerror or str(error)
        raise InputError("writing the draft", path, seen, "give a writable matrix folder with -o") from None
    return Written(path, entry_id, draft.open)
