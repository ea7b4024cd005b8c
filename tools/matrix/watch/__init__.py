"""What of the matrix newer releases ask to be looked at again."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from compatcheck import matrix
from compatcheck.errors import InputError
from compatcheck.matrix.compile import read_tables
from tools.matrix.values import Due, Watched
from tools.matrix.watch import _caps, _index, _ranges, _tables

__all__ = ["PYPI", "Question", "question", "watch"]

PYPI = "https://pypi.org/simple"


class Question(NamedTuple):
    """What to ask an index about: the entries that stand, the tables by name, and the packages these speak of.

    ``read`` are the releases of each package that the tables of interfaces know.
    """

    entries: tuple[Mapping[str, Any], ...]
    tables: Mapping[str, Mapping[str, Any]]
    read: Mapping[str, Sequence[str]]
    packages: tuple[str, ...]


def question(folder: str | None, only: Collection[str] = ()) -> Question:
    """What the matrix in a folder, else the checkout's, leaves open; ``only`` limits it to these packages.

    Raises InputError for a package of which nothing is open.
    """
    source = matrix.source_folder(folder)
    entries = tuple(matrix.all_entries(matrix.load(source)))
    tables = read_tables(Path(source))
    read = _tables.read_interfaces(Path(source))
    packages = {*_ranges.packages(entries), *_tables.packages(tables), *read, *_caps.packages(entries)}
    for name in only:
        if name not in packages:
            advice = "give a package with an open range, a table or a remedy"
            raise InputError("watching", name, "the matrix has nothing to review for it", advice)
    return Question(entries, tables, read, tuple(sorted(packages & set(only) if only else packages)))


def watch(asked: Question, index_url: str, on_package: Callable[[str], None] = lambda name: None) -> Watched:
    """Ask the index for every package, and see what is due; a package that it does not give is unknown, with why."""
    with _index.Index(index_url) as index:
        releases, unknown = index.releases(asked.packages, on_package)
        newest = {name: each[-1].version for name, each in releases.items()}
        wanted = [pair for pair in _caps.wanted(asked.entries) if pair.holder in newest and pair.pinned in newest]
        holders = sorted({pair.holder for pair in wanted})
        demands, unread = index.requirements({name: newest[name] for name in holders})
    due: list[Due] = [
        *_ranges.due(asked.entries, releases),
        *_tables.due(asked.tables, releases),
        *_tables.due_interfaces(asked.read, releases),
        *_caps.due(wanted, demands, releases),
    ]
    return Watched(index.shown, tuple(sorted(releases)), tuple(due), {**unknown, **unread})
