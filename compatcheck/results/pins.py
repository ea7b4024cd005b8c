"""What became of a request for pins; frozen values, no I/O."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from compatcheck.results.findings import Finding, ProbeResult, Step, VersionMap


class Moved(NamedTuple):
    """A distribution that pins move from ``was`` (None: it is new) to ``now``, with the entries that ask for it.

    ``cost`` is 1 for a patch, 10 for each minor and 100 for each major step. ``why`` is what the resolver said where no
    entry asks for the move. ``counts`` tells that the user named it or had it; else others bring it along. ``links``
    are the sentences of what would break without the move: the line of one package and what the other lacks.
    """

    name: str
    was: str | None
    now: str
    entries: tuple[str, ...] = ()
    cost: int = 0
    why: str = ""
    counts: bool = True
    links: tuple[str, ...] = ()

    @property
    def is_asked(self) -> bool:
        """Whether something known to be bad asks for the move."""
        return bool(self.entries or self.links)


class Choice(NamedTuple):
    """A finding that other versions clear, and settings as well: ``by_versions`` tells which way was taken."""

    entry: str
    moved: tuple[Moved, ...]
    settings: tuple[Step, ...]
    by_versions: bool


class Trial(NamedTuple):
    """One probe in the environment as it is and in the one the pins build; without ``entry``: the imports of both.

    ``before`` is None where there is no such environment to try.
    """

    entry: str | None
    title: str
    before: ProbeResult | None
    after: ProbeResult


class PinReport(NamedTuple):
    """What became of a request for pins, after ``resolutions`` tries.

    ``distance`` is the cost of all moves that count; ``proven`` tells that nothing nearer exists, ``unfinished`` that
    time ran out before a clean set was found, ``latest`` that moves are counted from the newest versions. ``left`` are
    the findings that these pins do not clear, ``possible`` those that lack facts and steered nothing; ``offers`` are
    the moves that would clear them. ``trials`` is what the built environment showed, None where none was built;
    ``unverified`` says why the set may then not be called verified. ``refusal`` is why the resolver refused the
    versions that were asked for, None where it took them.
    """

    moved: tuple[Moved, ...]
    titles: Mapping[str, str]
    distance: int
    resolutions: int
    proven: bool
    unfinished: bool = False
    latest: bool = False
    choices: tuple[Choice, ...] = ()
    left: tuple[Finding, ...] = ()
    possible: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()
    trials: tuple[Trial, ...] | None = None
    unverified: str | None = None
    maps: tuple[VersionMap, ...] = ()
    refusal: str | None = None
    offers: Mapping[str, tuple[Moved, ...]] = {}

    @property
    def verified(self) -> bool:
        return self.trials is not None and self.unverified is None

    @property
    def refuted(self) -> bool:
        """Whether a probe shows a fault in the very set that was to be clean."""
        return any(trial.after.outcome in ("fail", "crash", "timeout") for trial in self.trials or ())
