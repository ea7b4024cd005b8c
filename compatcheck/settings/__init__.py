"""What a project has settled beforehand: the table ``[tool.compatcheck]``, its ignores, and a baseline.

Other rooms import from here alone; each function is loaded on first use, as most projects have no settings.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from compatcheck.settings._model import NONE, Ignore, Settings

if TYPE_CHECKING:
    from compatcheck.settings._baseline import hold_against
    from compatcheck.settings._edit import with_ignore, without_ignore
    from compatcheck.settings._find import find, read
    from compatcheck.settings._ignores import ignored_everywhere, set_aside, unused
    from compatcheck.settings._parse import day

__all__ = [
    "NONE",
    "Ignore",
    "Settings",
    "day",
    "find",
    "hold_against",
    "ignored_everywhere",
    "read",
    "set_aside",
    "unused",
    "with_ignore",
    "without_ignore",
]

_ON_FIRST_USE = {
    "day": "_parse",
    "find": "_find",
    "hold_against": "_baseline",
    "ignored_everywhere": "_ignores",
    "read": "_find",
    "set_aside": "_ignores",
    "unused": "_ignores",
    "with_ignore": "_edit",
    "without_ignore": "_edit",
}


def __getattr__(name: str) -> object:
    if name not in _ON_FIRST_USE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_ON_FIRST_USE[name]}"), name)
