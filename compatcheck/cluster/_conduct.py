"""A probe on the ranks of many machines, as rank 0 conducts it."""

from __future__ import annotations

import socket
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from compatcheck.cluster import _watch
from compatcheck.cluster._hub import Heard
from compatcheck.cluster._lead import Leader
from compatcheck.cluster._messages import Ended, Said, Stop, Work

_PEER_SECONDS = 3.0
_SPARE_SECONDS = 60.0
_RECENT_SECONDS = 5.0
_JOINED = -1
_IMPORT_ERROR = "ImportError: "

Case = dict[str, object]
Answer = dict[str, object]


class Plan(NamedTuple):
    """A probe, its cases, the ranks that take part in their order, and on what; ``seconds`` is the patience."""

    probe: str
    cases: Sequence[Case]
    ranks: tuple[int, ...]
    backend: str
    device: str
    environ: Mapping[str, str]
    seconds: float


class Conducted(NamedTuple):
    """Each case with the answers of all ranks in order, or with none and what went wrong.

    ``unmet`` is what no rank has and the probe needs; ``broken`` why no other probe should be tried.
    """

    outcomes: list[tuple[Case, list[Answer], str]]
    unmet: str
    broken: str


class _Progress:
    """What one rank has said of its work; ``number`` is its rank among those that take part."""

    def __init__(self, rank: int) -> None:
        self.rank = rank
        self.arrived = 0
        self.doing = ""
        self.frame = ""
        self.answers: dict[int, Answer] = {}
        self.error: tuple[float, int, str] | None = None
        self.ended: Ended | None = None
        self.beats: deque[tuple[float, float | None, int | None]] = deque(maxlen=600)
        self.places: deque[tuple[float, str]] = deque(maxlen=60)


class Conductor:
    """Runs plans one after another; ``on_case`` hears the probe and what it is at."""

    def __init__(self, leader: Leader, on_case: Callable[[str, str], None]) -> None:
        self.leader = leader
        self.on_case = on_case
        self.turn = 0
        self.broken = ""
        self.unmet = ""

    def conduct(self, plan: Plan) -> Conducted:
        """A case that raises costs that set of processes alone, and those after it get a new one.

        Where a rank dies or hangs, it is named among the leader's failures and what is left is not tried.
        """
        outcomes: list[tuple[Case, list[Answer], str]] = []
        self.broken = self.unmet = ""
        while len(outcomes) < len(plan.cases) and not self.broken and not self.unmet:
            outcomes += self._launch(plan._replace(cases=plan.cases[len(outcomes) :]))
        return Conducted(outcomes, self.unmet, self.broken)

    def _launch(self, plan: Plan) -> Iterator[tuple[Case, list[Answer], str]]:
        """One set of processes, until the last case or the first that went wrong."""
        self.turn += 1
        self.leader.doing = f"{plan.probe} began"
        self.on_case(plan.probe, "starting")
        progress = {rank: _Progress(rank) for rank in plan.ranks}
        self._send(plan)
        try:
            joined = self._await(plan, progress, _JOINED)
            if isinstance(joined, str):
                self.broken = "" if self.unmet else self.broken or joined
                return
            for number, case in enumerate(plan.cases):
                self.leader.doing = f"{plan.probe} was at {case['case']}, {case['variant']}"
                self.on_case(plan.probe, f"{case['case']}, {case['dtype']}")
                answers = self._await(plan, progress, number)
                if isinstance(answers, str):
                    if not self.broken:
                        yield case, [], answers
                    return
                yield case, answers, ""
        finally:
            for rank in plan.ranks:
                self.leader.hub.send(rank, Stop())

    def _send(self, plan: Plan) -> None:
        hub, names = self.leader.hub, self.leader.ledger.nodes()
        on_node: dict[str, int] = {}
        for rank in plan.ranks:
            on_node[names[rank]] = on_node.get(names[rank], 0) + 1
        address, port = hub.address(plan.ranks[0]), _free_port()
        limit = _SPARE_SECONDS + _watch.PATIENCE * plan.seconds * (len(plan.cases) + 1)
        taken: dict[str, int] = {}
        for number, rank in enumerate(plan.ranks):
            local = taken.get(names[rank], 0)
            taken[names[rank]] = local + 1
            environ = {
                **plan.environ,
                "RANK": str(number),
                "WORLD_SIZE": str(len(plan.ranks)),
                "LOCAL_RANK": str(local),
                "LOCAL_WORLD_SIZE": str(on_node[names[rank]]),
                "MASTER_ADDR": address,
                "MASTER_PORT": str(port),
            }
            work = Work(
                turn=self.turn,
                probe=plan.probe,
                cases=[dict(case) for case in plan.cases],
                number=number,
                local=self.leader.ledger.hellos[rank].local_rank if plan.device == "cuda" else local,
                address=address,
                port=port,
                own=hub.address(rank),
                environ=environ,
                backend=plan.backend,
                device=plan.device,
                limit=limit,
                world=len(plan.ranks),
            )
            hub.send(rank, work)

    def _await(self, plan: Plan, progress: dict[int, _Progress], number: int) -> list[Answer] | str:
        """The answers of all ranks to one case (-1: that they have come together), or what went wrong first."""
        still = time.monotonic()
        trouble: float | None = None
        while True:
            for heard in self.leader.listen():
                if self._note(heard, progress):
                    still = time.monotonic()
            answers = [each.answers.get(number) for each in progress.values()]
            if all(answer is not None for answer in answers):
                return [answer for answer in answers if answer is not None]
            out = [each for each in progress.values() if each.error or each.ended or self._is_lost(each)]
            trouble = trouble or (time.monotonic() if out else None)
            if trouble and (time.monotonic() - trouble > _PEER_SECONDS or len(out) == len(progress)):
                return self._explain_failure(out, plan)
            waited = time.monotonic() - still
            found = None if trouble else _watch.stuck(self._pulses(progress, plan.seconds), waited, plan.seconds)
            if found is not None:
                self.leader.fail("hung", found.ranks, found.what)
                self.broken = f"a rank hung in {plan.probe}"
                self.leader.reach()
                return self.broken

    def _is_lost(self, each: _Progress) -> bool:
        return each.rank in self.leader.ledger.lost

    def _note(self, heard: Heard, progress: dict[int, _Progress]) -> bool:
        """Whether the rank has come on."""
        message, each = heard.message, progress.get(heard.rank)
        if each is None or not isinstance(message, (Said, Ended)) or message.turn != self.turn:
            return False
        if isinstance(message, Ended):
            each.ended = message
            return True
        try:
            return self._take(message.event, each)
        except (AttributeError, KeyError, OverflowError, TypeError, ValueError):
            each.error = (time.time(), heard.rank, "the process sent a line of another shape")
        return True

    def _take(self, event: Mapping[str, Any], each: _Progress) -> bool:
        """Whether a line of a diary tells of progress. Raises what reading a line of another shape raises."""
        if "mark" in event:
            each.arrived, each.doing, each.frame = int(event["arrived"]), str(event["mark"]), ""
        elif "frame" in event:
            each.frame = str(event["frame"])
            each.places.append((time.monotonic(), each.frame))
            return False
        elif "error" in event:
            each.error = (float(event["at"]), each.rank, str(event["error"]))
        elif "answer" in event:
            if not isinstance(event["answer"].get("measured", {}), dict):
                raise TypeError
            each.answers[int(event["number"])] = event["answer"]
        return True

    def _pulses(self, progress: Mapping[int, _Progress], seconds: float) -> list[_watch.Pulse]:
        """The state of those that still work, with what they did in the last seconds."""
        now, pulses = time.monotonic(), []
        since = now - min(seconds, _RECENT_SECONDS)
        for each in progress.values():
            beat = self.leader.hub.beats.get(each.rank)
            if beat is not None:
                each.beats.append((now, beat.cpu, beat.moved))
            window = [entry for entry in each.beats if entry[0] > since]
            wandered = len({place for told, place in each.places if told > since}) > 1
            state = beat.state if beat is not None else ""
            worked, moved = _processor_share(window), _bytes_moved(window)
            pulses.append(_watch.Pulse(each.rank, each.arrived, each.doing, each.frame, worked, moved, state, wandered))
        return pulses

    def _explain_failure(self, out: Sequence[_Progress], plan: Plan) -> str:
        """What went wrong, where a process raised or is gone: the first to raise, unless one died without a word."""
        dead = [each for each in out if not each.error and not self._is_lost(each)]
        lost = [each for each in out if self._is_lost(each)]
        errors = sorted(each.error for each in out if each.error)
        if lost:
            self.broken = f"a rank was lost in {plan.probe}"
        elif dead and dead[0].ended is not None:
            ended = dead[0].ended
            tail = f"; the last line of its output: {ended.tail}" if ended.tail else ""
            what = (
                f"the process of probe {plan.probe} {_describe_end(ended.status)} at "
                f"{dead[0].doing or 'the start'}{tail}"
            )
            self.leader.fail("dead", (dead[0].rank,), what)
            self.broken = f"a process died in {plan.probe}"
        else:
            _, rank, error = errors[0]
            if error.startswith(_IMPORT_ERROR):
                return self._unmet(plan, [each for _, each, text in errors if text.startswith(_IMPORT_ERROR)], error)
            return f"rank {rank}: {error}"
        return self.broken

    def _unmet(self, plan: Plan, ranks: Sequence[int], error: str) -> str:
        """A package that no rank has is no fault; one that some lack is."""
        what = error.removeprefix(_IMPORT_ERROR)
        if len(ranks) == len(plan.ranks):
            self.unmet = what
        else:
            self.leader.fail("lacks a package", ranks, f"{plan.probe} cannot run there: {what}")
            self.broken = f"a rank cannot import what {plan.probe} needs"
        return what


def _bytes_moved(window: Sequence[tuple[float, float | None, int | None]]) -> int | None:
    """Bytes the machine's network has moved over the window, None where that cannot be told."""
    if not window or window[0][2] is None or window[-1][2] is None:
        return None
    return window[-1][2] - window[0][2]


def _processor_share(window: Sequence[tuple[float, float | None, int | None]]) -> float | None:
    """Processor seconds a second over the window, None where that cannot be told."""
    if len(window) < 2 or window[0][1] is None or window[-1][1] is None:
        return None
    elapsed = window[-1][0] - window[0][0]
    return (window[-1][1] - window[0][1]) / elapsed if elapsed > 1 else None


def _describe_end(status: int | None) -> str:
    if status is None or status >= 0:
        return f"ended with exit status {status}"
    import signal

    try:
        return f"was ended by {signal.Signals(-status).name}"
    except ValueError:
        return f"was killed by signal {-status}"


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("", 0))
        return int(listener.getsockname()[1])
