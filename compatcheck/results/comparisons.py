"""What a comparison of two environments found."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Side(NamedTuple):
    """One of the two environments: how the user named it, and its packages by name."""

    name: str
    versions: Mapping[str, str]


class Difference(NamedTuple):
    """The first value of a case that differs by more than rounding.

    ``what`` is the kind of value and ``name`` the module or parameter, empty for the whole model. ``step`` is the
    optimizer step, 0 before any. ``old`` and ``new`` are norms, numbers or words. ``relative`` is the distance over the
    size, and ``theta`` that over the budget of rounding.
    """

    case: str
    what: str
    name: str
    step: int
    old: float | str
    new: float | str
    relative: float
    theta: float


class Trajectory(NamedTuple):
    """One kind of value of a case in both environments: over its steps, or over the modules of one pass.

    The points are (place, value) on the ``axis``; ``first`` is the place of the first difference.
    """

    case: str
    what: str
    old: tuple[tuple[float, float], ...]
    new: tuple[tuple[float, float], ...]
    first: float | None = None
    axis: str = "step"


class Trial(NamedTuple):
    """One environment that the search built: ``moved`` are the versions that differ from OLD's.

    ``like_new`` is None where it could not be built or run, for the reason ``why``.
    """

    moved: Mapping[str, str]
    like_new: bool | None
    why: str = ""
    seconds: float = 0.0


class Cause(NamedTuple):
    """The package whose release changes the result, between two versions of it with nothing else moved.

    ``last`` is the newest version that computes as OLD does, ``first`` the oldest that computes as NEW does.
    ``beside`` are the packages that had to move together with it, ``untried`` the releases between the two that could
    not be tried.
    """

    package: str
    last: str
    first: str
    beside: Mapping[str, tuple[str | None, str]] = {}
    untried: tuple[str, ...] = ()


class Comparison(NamedTuple):
    """Two environments, and what is different in what they compute.

    ``cases`` counts those that ran in both; ``skipped`` says of each other why it was not compared. ``differences``
    holds the first difference of each case that has one. ``unexplained`` says why no cause is named.
    """

    old: Side
    new: Side
    cases: int
    differences: tuple[Difference, ...]
    skipped: Mapping[str, str] = {}
    trajectory: Trajectory | None = None
    moved: Mapping[str, tuple[str | None, str | None]] = {}
    cause: Cause | None = None
    unexplained: str = ""
    trials: tuple[Trial, ...] = ()
    memory_mib: tuple[float, float] | None = None
    seconds: float = 0.0
    model: str = ""

    @property
    def first(self) -> Difference | None:
        """The first difference of all."""
        return self.differences[0] if self.differences else None
