"""Names of packages that are spelled almost like one that the tables know, and belong to nobody."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from compatcheck.packages.frameworks import frameworks

Table = Callable[[str], Mapping[str, Any]]
SHORTEST = 5
"""A shorter name has too many neighbours."""
_LONG = 8
"""From this length on a name may differ by two letters."""


def known_names(table: Table) -> set[str]:
    """The packages that the tables and the frameworks speak of."""
    trainers = (name for framework in frameworks().values() for name in framework.distributions)
    return {*table("release-history")["releases"], *table("package-names")["known"], *trainers}


def similar(name: str, table: Table) -> str | None:
    """The known name that an unknown one is most like; None for a name that somebody has, or that is like none."""
    known = known_names(table)
    if name in known or name in table("similar-names")["taken"]:
        return None
    near = sorted((distance, each) for each, distance in neighbours(name, known))
    return near[0][1] if near else None


def neighbours(name: str, known: Collection[str]) -> list[tuple[str, int]]:
    """The known names within reach of a typing error, with the number of letters that differ."""
    letters = set(name)
    found = []
    for each in known:
        most = 2 if len(each) >= _LONG else 1
        if len(each) < SHORTEST or abs(len(each) - len(name)) > most or len(letters ^ set(each)) > 2 * most:
            continue
        distance = letters_apart(name, each)
        if 0 < distance <= most and _letters(each) != _letters(name):
            found.append((each, distance))
    return found


def _letters(name: str) -> str:
    """Without digits and dashes: a number behind a name makes another package, and no typing error."""
    return "".join(filter(str.isalpha, name))


def letters_apart(one: str, other: str) -> int:
    """Letters to insert, drop, change or swap with the next."""
    before: list[int] = []
    above = list(range(len(other) + 1))
    for row, letter in enumerate(one, 1):
        current = [row]
        for column, beside in enumerate(other, 1):
            cost = min(above[column] + 1, current[-1] + 1, above[column - 1] + (letter != beside))
            if row > 1 and column > 1 and letter == other[column - 2] and one[row - 2] == beside:
                cost = min(cost, before[column - 2] + 1)
            current.append(cost)
        before, above = above, current
    return above[-1]
