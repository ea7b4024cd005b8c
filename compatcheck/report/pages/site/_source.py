"""What the pages are made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

Entry = Mapping[str, Any]
Choice = Mapping[str, Any]

IMPACTS = ("silent-wrong", "divergence", "hang", "crash", "oom", "import-fail", "install-fail", "slow")
"""The worst first: what trains on unnoticed costs more than what stops."""

CONFIDENCES = ("reproduced", "upstream-fixed", "corroborated", "reported")


class Surveyed(Protocol):
    """Where an entry applies: its status by the places of the choices in the dimensions that decide about it."""

    @property
    def id(self) -> str: ...
    @property
    def dimensions(self) -> tuple[int, ...]: ...
    @property
    def statuses(self) -> Mapping[tuple[int, ...], str]: ...


class Source(NamedTuple):
    """The matrix and what judges by it; ``entries`` are those in force.

    ``histories`` holds the releases of each package and their days, the oldest first, ``runtimes`` the CUDA of the
    torch that the package index serves by minor release, ``records`` what was measured by the path that entries cite,
    ``probes`` what each probe measures. ``survey`` judges every combination of choices, ``suspected`` gives the ids
    that facts do not rule out, ``within`` tells whether a release lies in a range, and ``patterns`` gives an entry's
    error patterns, each with a text that every match holds in some letter case, or none.
    """

    revision: str
    entries: Sequence[Entry]
    withdrawn: Sequence[Entry]
    histories: Mapping[str, list[tuple[str, str]]]
    runtimes: Mapping[str, str]
    records: Mapping[str, Mapping[str, Any]]
    probes: Mapping[str, str]
    survey: Callable[[Sequence[Sequence[Choice]], Sequence[Sequence[Choice]]], Sequence[Sequence[Surveyed]]]
    suspected: Callable[[Choice], set[str]]
    within: Callable[[str, str], bool]
    patterns: Callable[[str], Sequence[tuple[str, str]]]

    def history(self, name: str) -> list[tuple[str, str]]:
        """The releases of a package and their days; none of a package that is not recorded."""
        return self.histories.get(name, [])
