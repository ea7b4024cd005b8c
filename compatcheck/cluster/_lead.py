"""What rank 0 does: wait for all, ask for what differs, have nodes reach one another, and part."""

from __future__ import annotations

import time
from collections.abc import Sequence

from compatcheck.cluster._hub import Heard, Hub, Stopped
from compatcheck.cluster._ledger import Ledger
from compatcheck.cluster._messages import Has, Hello, Over, Reach, Reached, Snapshot, Want
from compatcheck.results.cluster import Failure, Fault, Member

_TICK_SECONDS = 0.2
_SETTLE_SECONDS = 1.0
_REACH_SECONDS = 5.0
_BOTH_WAYS = 64
_LONGEST_SILENCE, _SHORTEST_SILENCE = 20.0, 8.0


class Leader:
    """The run as rank 0 sees it, with so many ``seconds`` of patience; ``failures`` grows as ranks fall out."""

    def __init__(self, hub: Hub, version: str, seconds: float) -> None:
        self.hub = hub
        self.version = version
        self.seconds = seconds
        self.silence = min(max(seconds, _SHORTEST_SILENCE), _LONGEST_SILENCE)
        self.ledger = Ledger(hub.launch.world)
        self.failures: list[Failure] = []
        self.doing = "the ranks connected"
        self._looked = time.monotonic()

    def gather(self) -> None:
        """Hear every rank and one snapshot of each kind; who has not come in time is absent.

        Raises Stopped where this process is asked to end; what has come until then is kept.
        """
        deadline = time.monotonic() + self.seconds
        try:
            while not self.ledger.complete() and time.monotonic() < deadline:
                self.listen()
        finally:
            waited = self.seconds - max(deadline - time.monotonic(), 0)
            missing, mute = self.ledger.missing(), self.ledger.mute()
            if missing:
                what = (
                    f"did not connect within {waited:.0f} s; check the launcher's output and the network path to rank 0"
                )
                self.fail("absent", missing, what)
            if mute:
                what = f"connected, but did not report its environment within {waited:.0f} s; its disk may not respond"
                self.fail("hung", mute, what)
            self.failures += self.ledger.failures(self.version)

    def listen(self, seconds: float = _TICK_SECONDS) -> list[Heard]:
        """What ranks say beside their introductions, which are dealt with here, as is their falling out."""
        rest = []
        for heard in self.hub.poll(seconds):
            message = heard.message
            if isinstance(message, Hello):
                if message.rank == heard.rank:
                    self.ledger.hear(message)
            elif isinstance(message, Has):
                if self.ledger.note(heard.rank, message):
                    self.hub.send(heard.rank, Want())
            elif isinstance(message, Snapshot):
                self.ledger.keep(message.digest, message.snapshot)
            else:
                if message is None:
                    self._lose(heard)
                rest.append(heard)
        self.hub.flush()
        self._notice_silence()
        return rest

    def settle(self) -> None:
        """Learn for a moment who is gone already, where the launcher ends the run because of one rank."""
        deadline = time.monotonic() + _SETTLE_SECONDS
        self.hub.stopping = False
        while time.monotonic() < deadline:
            try:
                self.listen()
            except Stopped:
                self.hub.stopping = False
        left = sorted(self.hub.leaving)
        if left and not self.failures:
            self.fail("dead", left, f"left when {self.doing}: {self.hub.leaving[left[0]]}")

    def members(self, ranks: Sequence[int]) -> tuple[Member, ...]:
        names = self.ledger.nodes()
        return tuple(Member(rank, names.get(rank, "node unknown")) for rank in ranks)

    def fail(self, fault: Fault, ranks: Sequence[int], what: str) -> None:
        self.failures.append(Failure(fault, self.members(ranks), what))

    def firsts(self) -> dict[str, int]:
        """The first living rank of each node."""
        names = self.ledger.nodes()
        found: dict[str, int] = {}
        for rank in self.ledger.alive():
            found.setdefault(names[rank], rank)
        return found

    def reach(self) -> None:
        """Have the first rank of every node connect to the others, and tell which pairs of nodes cannot."""
        firsts = self.firsts()
        places = list(firsts.values())
        answers: dict[int, dict[int, str]] = {}
        asked = {}
        for number, rank in enumerate(places):
            others = [each for each in places if each != rank] if len(places) <= _BOTH_WAYS else places[number + 1 :]
            peers = {each: (self.hub.address(each), self.ledger.hellos[each].port) for each in others}
            if peers:
                asked[rank] = peers
                self.hub.send(rank, Reach(peers=peers, seconds=_REACH_SECONDS))
        deadline = time.monotonic() + 2 * _REACH_SECONDS + len(places) / 10
        while len(answers) < len(asked) and time.monotonic() < deadline:
            for heard in self.listen():
                if isinstance(heard.message, Reached):
                    answers[heard.rank] = heard.message.failed
                elif heard.message is None:
                    asked.pop(heard.rank, None)
        self._tell_cut(asked, answers)

    def _tell_cut(self, asked: dict[int, dict[int, tuple[str, int]]], answers: dict[int, dict[int, str]]) -> None:
        names = self.ledger.nodes()
        told: set[frozenset[int]] = set()
        for rank, failed in sorted(answers.items()):
            for other, seen in sorted(failed.items()):
                if frozenset((rank, other)) not in told and other in self.ledger.alive():
                    told.add(frozenset((rank, other)))
                    both = " (in either direction)" if rank in answers.get(other, {}) else ""
                    host = asked[rank][other][0]
                    what = f"{names[rank]} cannot reach {names[other]} at {host}: {seen}{both}"
                    self.fail("cut off", (rank, other), what)
        for rank in sorted(asked.keys() - answers.keys() - self.ledger.lost):
            self.fail("silent", (rank,), "did not report which nodes it can reach")

    def part(self, status: int) -> None:
        self.hub.part(Over(status=status))

    def _lose(self, heard: Heard) -> None:
        heir = self.ledger.lose(heard.rank)
        if heir is not None:
            self.hub.send(heir, Want())
        if heard.rank not in self.hub.leaving:
            self.fail("dead", (heard.rank,), f"gone when {self.doing}: {heard.why}")

    def _notice_silence(self) -> None:
        """Looked for once a second, for there may be many ranks."""
        now = time.monotonic()
        if now - self._looked < 1.0:
            return
        self._looked = now
        for rank in self.ledger.alive():
            quiet = now - self.hub.heard_at.get(rank, now)
            if quiet > self.silence:
                self.ledger.lose(rank)
                what = f"sent nothing for {quiet:.0f} s when {self.doing}; its machine, process or link is down"
                self.fail("silent", (rank,), what)
