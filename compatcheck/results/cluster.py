"""Frozen values of many machines that are judged together; no I/O."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from compatcheck.environment import Environment
from compatcheck.inference.inferred import Inferred
from compatcheck.results.findings import Finding, ProbeResult

Fault = Literal["absent", "dead", "hung", "silent", "no torch", "lacks a package", "other version", "unread", "cut off"]


class Member(NamedTuple):
    """One rank and the machine it runs on; a machine that was recorded without a launcher has no rank."""

    rank: int | None
    node: str


class Group(NamedTuple):
    """The members whose environments are the same: ``label`` is A for the largest group, then B.

    ``environment`` is that of one of them, and ``inferred`` what follows from it. ``split`` names the nodes of which
    only some ranks are here, with them.
    """

    label: str
    digest: str
    members: tuple[Member, ...]
    environment: Environment
    findings: tuple[Finding, ...] = ()
    inferred: Inferred = Inferred()
    split: Mapping[str, tuple[int, ...]] = {}

    @property
    def nodes(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(member.node for member in self.members))


class Difference(NamedTuple):
    """A fact that is not the same in all groups: its path, and each value with the labels of the groups that have it.

    ``None`` is known to be absent, `Unknown` is not known.
    """

    path: tuple[str, ...]
    values: tuple[tuple[Any, tuple[str, ...]], ...]


class Failure(NamedTuple):
    """Ranks that fell out, or links that do not carry: ``what`` says when and how in words."""

    fault: Fault
    members: tuple[Member, ...]
    what: str


class Link(NamedTuple):
    """What one pair of nodes exchanged, in bytes a second each way; ``slow`` is against what the other pairs reach."""

    nodes: tuple[str, str]
    speed: float
    slow: bool


class ClusterReport(NamedTuple):
    """What a look at many machines has to say.

    ``launcher`` says who started the ranks, or where the snapshots lie; ``world`` is how many were expected.
    ``shared`` are the findings of every group, which then stand in no group's own. ``limits`` say what was not tried
    and what a pass does not prove; ``cut_short`` is that the run was ended before it was through.
    """

    launcher: str
    world: int
    groups: tuple[Group, ...]
    differences: tuple[Difference, ...]
    shared: tuple[Finding, ...]
    failures: tuple[Failure, ...]
    matrix_revision: str
    matrix_entries: int
    matrix_date: str = ""
    matrix_stale: bool = False
    trials: tuple[ProbeResult, ...] = ()
    links: tuple[Link, ...] = ()
    limits: tuple[str, ...] = ()
    cut_short: bool = False

    @property
    def findings(self) -> tuple[Finding, ...]:
        return (*self.shared, *(finding for group in self.groups for finding in group.findings))

    @property
    def nodes(self) -> int:
        return len({member.node for group in self.groups for member in group.members})
