"""The rows of a table by package and release that speak of one release."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from packaging.version import Version

Row = Sequence[str]


def rows_of(release: Version, rows: Mapping[str, Sequence[Row]]) -> Iterator[tuple[str, Row]]:
    """Each row whose first two cells, the first and the last release it holds for, enclose the release.

    It comes with the name of the other package that the row is about.
    """
    for other, listed in rows.items():
        for row in listed:
            if Version(row[0]) <= release <= Version(row[1]):
                yield other, row
