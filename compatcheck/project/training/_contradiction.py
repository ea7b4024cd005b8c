"""Two settings of the user's files that some package refuses to take together, as a stated fact."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from compatcheck.environment import Location

FACT = "training.contradictions"


class Setting(NamedTuple):
    """A setting with its value and where it is given; one without a place has its default."""

    name: str
    value: object
    place: Location | None


def contradiction(rule: str, setting: Setting, other: Setting) -> dict[str, Any]:
    """One entry of the fact: the rule is named as the trait that looks for it."""
    return {"rule": rule, **_stated(setting), **_stated(other, "other_", "other")}


def _stated(setting: Setting, prefix: str = "", name: str = "setting") -> dict[str, Any]:
    place = setting.place
    return {
        name: setting.name,
        f"{prefix}value": spell(setting.value),
        f"{prefix}file": place.file if place else None,
        f"{prefix}line": place.line if place else None,
    }


def spell(value: object) -> str:
    """A value as JSON has it."""
    return json.dumps(value, default=str)
