"""The rows of a table by package and release that speak of one release."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from packaging.version import Version

Row = Sequence[str]
_version = lru_cache(maxsize=10_000)(Version)


def rows_of(release: Version, rows: Mapping[str, Sequence[Row]]) -> Iterator[tuple[str, Row]]:
    """Each row whose first two cells, the first and the last release it holds for, enclose the release.

    It comes with the name of the other package that the row is about.
    """
    for other, listed in rows.items():
        for row in listed:
            if _version(row[0]) <= release <= _version(row[1]):
                yield other, row
