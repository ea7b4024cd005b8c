"""Settings as values; they are parsed in `_parse`."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from compatcheck.environment import Location

if TYPE_CHECKING:
    from datetime import date

    from compatcheck.results.areas import AreaName


class Ignore(NamedTuple):
    """One entry that is set aside up to and with the day ``until``.

    ``paths`` are patterns relative to the project's folder; without any the ignore speaks of every file and of none.
    """

    id: str
    reason: str
    until: date
    paths: tuple[str, ...] = ()
    at: Location | None = None


class Settings(NamedTuple):
    """The table ``[tool.compatcheck]``; what it does not say is None or empty.

    ``file`` is the one that was read, as it is named from the working directory, None where there is none; ``baseline``
    and ``paths`` are named from there too.
    """

    file: str | None = None
    fail_on: str | None = None
    select: tuple[str, ...] = ()
    ignores: tuple[Ignore, ...] = ()
    baseline: str | None = None
    assume: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    probe: bool | None = None
    require: tuple[AreaName, ...] = ()


NONE = Settings()
