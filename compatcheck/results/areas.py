"""The areas of a run, and what of each was judged; frozen values, no I/O."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple, get_args

from compatcheck.errors import InputError
from compatcheck.language.suggestion import did_you_mean

AreaName = Literal["packages", "gpu", "training", "model", "imports", "numerics"]
AREAS: tuple[AreaName, ...] = get_args(AreaName)

INPUTS: tuple[AreaName, ...] = ("packages", "training", "model", "gpu")
"""What entries have conditions on; the other areas are checks of their own."""


class Given(NamedTuple):
    """How what is judged was given: the snapshot's name if it is one, and the facts that the user states, by path."""

    snapshot: str = ""
    assumed: tuple[str, ...] = ()


class Source(NamedTuple):
    """A file, an interpreter or a snapshot: how many packages it has, and how many of those a file asks for it pins."""

    name: str
    packages: int = 0
    pinned: int | None = None


class Area(NamedTuple):
    """One area: where the facts that were judged come from, or ``why`` there are none (empty: nothing was given)."""

    name: AreaName
    judged: bool
    sources: tuple[Source, ...] = ()
    why: str = ""


def require_areas(names: Iterable[str]) -> tuple[AreaName, ...]:
    """The areas of these names, in their order. Raises `InputError` for a name that no area has."""
    named = list(names)
    unknown = next((name for name in named if name not in AREAS), None)
    if unknown is not None:
        raise InputError("requiring", unknown, "there is no such area", did_you_mean(unknown, AREAS, ", ".join(AREAS)))
    return tuple(area for area in AREAS if area in named)


def is_enough(areas: tuple[Area, ...]) -> bool:
    """Whether finding nothing says much: nearly every entry needs packages, two of three need settings or a model."""
    judged = {area.name for area in areas if area.judged}
    return "packages" in judged and bool(judged & {"training", "model"})
