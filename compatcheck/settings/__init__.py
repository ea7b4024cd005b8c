"""What a project has settled beforehand: the table ``[tool.compatcheck]``, its ignores, and a baseline.

Other rooms import from here alone; each function is loaded on first use, as most projects have no settings.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from compatcheck.files.units import on_first_use
from compatcheck.settings._model import NONE as NONE
from compatcheck.settings._model import Ignore as Ignore
from compatcheck.settings._model import Settings as Settings

if TYPE_CHECKING:
    from compatcheck.settings._baseline import hold_against as hold_against
    from compatcheck.settings._edit import with_ignore as with_ignore
    from compatcheck.settings._edit import without_ignore as without_ignore
    from compatcheck.settings._find import find as find
    from compatcheck.settings._find import read as read
    from compatcheck.settings._ignores import ignored_everywhere as ignored_everywhere
    from compatcheck.settings._ignores import set_aside as set_aside
    from compatcheck.settings._ignores import unused as unused
    from compatcheck.settings._parse import day as day

__getattr__ = on_first_use(
    __name__,
    {
        "_baseline": ("hold_against",),
        "_edit": ("with_ignore", "without_ignore"),
        "_find": ("find", "read"),
        "_ignores": ("ignored_everywhere", "set_aside", "unused"),
        "_parse": ("day",),
    },
)
