"""Who has presented itself with which digest, and whose snapshot is still wanted; no I/O.

Only digests come from everybody: what is kept of a rank is its hello, and of snapshots one of each kind.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compatcheck.cluster._messages import Has, Hello
from compatcheck.results.cluster import Failure, Fault, Member


class Ledger:
    """Fill it with `hear`, `note` and `keep`; ``wanting`` has the digests without a snapshot, and who was asked."""

    def __init__(self, world: int) -> None:
        self.world = world
        self.hellos: dict[int, Hello] = {}
        self.has: dict[int, Has] = {}
        self._alike: dict[Has, Has] = {}
        self.snapshots: dict[str, Mapping[str, Any]] = {}
        self.wanting: dict[str, int] = {}
        self.lost: set[int] = set()

    def hear(self, hello: Hello) -> None:
        """Whoever is the first with its number counts."""
        if 0 <= hello.rank < self.world:
            self.hellos.setdefault(hello.rank, hello)

    def note(self, rank: int, has: Has) -> bool:
        """Whether the snapshot of this rank is wanted, being the first of its kind."""
        self.has[rank] = self._alike.setdefault(has, has)
        if has.unread or has.digest in self.snapshots or has.digest in self.wanting:
            return False
        self.wanting[has.digest] = rank
        return True

    def keep(self, digest: str, snapshot: Mapping[str, Any]) -> None:
        if self.wanting.pop(digest, None) is not None:
            self.snapshots[digest] = snapshot

    def lose(self, rank: int) -> int | None:
        """Another rank to ask for the snapshot that the lost one was asked for, if there is any."""
        self.lost.add(rank)
        digest = next((digest for digest, asked in self.wanting.items() if asked == rank), None)
        if digest is None:
            return None
        alike = (each for each, has in self.has.items() if has.digest == digest and each not in self.lost)
        heir = next(alike, None)
        if heir is None:
            del self.wanting[digest]
        else:
            self.wanting[digest] = heir
        return heir

    def missing(self) -> list[int]:
        return [rank for rank in range(self.world) if rank not in self.hellos]

    def mute(self) -> list[int]:
        """Those that came and have not said what they have."""
        return sorted(self.hellos.keys() - self.has.keys() - self.lost)

    def complete(self) -> bool:
        """Whether everybody has come and has said what it has, or is lost."""
        return len(self.hellos) == self.world and not self.wanting and not self.mute()

    def alive(self) -> list[int]:
        return sorted(self.has.keys() - self.lost)

    def nodes(self) -> dict[int, str]:
        """The name of each rank's machine; machines that share a name are told apart by their numbers."""
        places: dict[str, set[str]] = {}
        for hello in self.hellos.values():
            places.setdefault(hello.node, set()).add(hello.place)
        return {
            rank: hello.node if len(places[hello.node]) == 1 else f"{hello.node}#{hello.place}"
            for rank, hello in self.hellos.items()
        }

    def members(self) -> dict[str, list[Member]]:
        """Those whose snapshot is known, by digest."""
        names, found = self.nodes(), dict[str, list[Member]]()
        for rank, has in sorted(self.has.items()):
            if has.digest in self.snapshots:
                found.setdefault(has.digest, []).append(Member(rank, names[rank]))
        return found

    def failures(self, own_version: str) -> list[Failure]:
        """Ranks whose snapshot could not be taken, that lack torch, or are of another compatcheck."""
        names = self.nodes()
        found: dict[tuple[Fault, str], list[Member]] = {}
        for rank, hello in sorted(self.hellos.items()):
            member = Member(rank, names[rank])
            if hello.version != own_version:
                what = (
                    f"this rank runs compatcheck {hello.version} and rank 0 runs {own_version}; install the "
                    "same version everywhere"
                )
                found.setdefault(("other version", what), []).append(member)
            has = self.has.get(rank)
            if has is not None and has.unread:
                found.setdefault(("unread", has.unread), []).append(member)
            elif has is not None and has.torch is None:
                found.setdefault(("no torch", "torch is not installed in its interpreter"), []).append(member)
        return [Failure(fault, tuple(members), what) for (fault, what), members in found.items()]
