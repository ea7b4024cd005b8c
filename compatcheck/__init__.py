"""compatcheck: which parts of a language-model training environment do not work together.

`check`, `probe` and `pin` are what the commands of these names do, for scripts and notebooks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from compatcheck.errors import CompatcheckError

if TYPE_CHECKING:
    from compatcheck.api import Measurements, Pins, Verdict, check, pin, probe

__version__ = "0.1.0"
__all__ = ["CompatcheckError", "Measurements", "Pins", "Verdict", "check", "pin", "probe"]


def __getattr__(name: str) -> object:
    """The interface for scripts, loaded when it is asked for: the command line starts without it."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from compatcheck import api

    return getattr(api, name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
