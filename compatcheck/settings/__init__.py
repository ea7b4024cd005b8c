"""What a project has settled beforehand: the table ``[tool.compatcheck]``, its ignores, and a baseline.

The door; each function loads what it needs when it is called.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING

from compatcheck.settings._model import NONE as NONE
from compatcheck.settings._model import Ignore as Ignore
from compatcheck.settings._model import Settings as Settings

if TYPE_CHECKING:
    from datetime import date

    from compatcheck.results.findings import Report
    from compatcheck.settings._edit import Edited


def find(folder: str = ".") -> Settings:
    """The settings in the nearest ``pyproject.toml``, at or above the folder, that has any; see `_find.find`."""
    from compatcheck.settings import _find

    return _find.find(folder)


def read(path: str) -> Settings:
    """The settings in one file. Raises `InputError` where it has none, or they are not as they should be."""
    from compatcheck.settings import _find

    return _find.read(path)


def set_aside(report: Report, settings: Settings, today: date | None = None) -> Report:
    """The report with what the ignores speak of among the suppressed; see `_ignores.set_aside`."""
    from compatcheck.settings import _ignores

    return _ignores.set_aside(report, settings, today)


def ignored_everywhere(settings: Settings, today: date | None = None) -> tuple[Ignore, ...]:
    """The ignores that speak of every file, and whose day has not passed."""
    from compatcheck.settings import _ignores

    return _ignores.everywhere(settings, today)


def unused(report: Report, settings: Settings, ruled_out: Callable[[Collection[str]], Mapping[str, bool]]) -> Report:
    """The report with a remark for each ignore that nothing needs; see `_ignores.unused`."""
    from compatcheck.settings import _ignores

    return _ignores.unused(report, settings, ruled_out)


def hold_against(report: Report, baseline: str) -> Report:
    """The report with what an earlier one knew already among the suppressed; see `_baseline.hold_against`."""
    from compatcheck.settings import _baseline

    return _baseline.hold_against(report, baseline)


def with_ignore(folder: str, ignore: Ignore) -> Edited:
    """The project file with the ignore in it; see `_edit.with_ignore`."""
    from compatcheck.settings import _edit

    return _edit.with_ignore(folder, ignore)


def without_ignore(folder: str, entry: str, paths: tuple[str, ...]) -> Edited:
    """The project file without the ignore; see `_edit.without_ignore`."""
    from compatcheck.settings import _edit

    return _edit.without_ignore(folder, entry, paths)


def day(text: str) -> date | None:
    """The day that a text such as 2027-01-31 names, None where it names none."""
    from compatcheck.settings import _parse

    return _parse.day(text)
