"""The ranks of one run, joined: rank 0 leads and judges, every rank takes part."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

from compatcheck import __version__, cluster, probes
from compatcheck.cluster import Conductor, Has, Hub, Leader, Participant, Plan, Stopped, Work
from compatcheck.environment import Environment
from compatcheck.environment.snapshot import check_snapshot
from compatcheck.errors import CompatcheckError, InputError
from compatcheck.language import gettext as _
from compatcheck.pipelines.cluster._present import Presented, hello
from compatcheck.results.cluster import Link
from compatcheck.results.findings import ProbeResult
from compatcheck.terminal.messages import say
from compatcheck.terminal.progress import probe_progress

_SLOW_SHARE = 0.4
_NODES_THAT_COMPARE = 3
_SPREAD = 4
_OTHER_SHAPE = (AttributeError, IndexError, KeyError, TypeError, ValueError)
"""What reading answers raises that no probe gives: a rank is another machine, and its interpreter may be anybody's."""


class Trials(NamedTuple):
    """What is to be tried: nothing, where ``names`` is empty; ``seconds`` is for one operation or arrival."""

    names: tuple[str, ...]
    device: str
    seconds: float
    request: Mapping[str, object] = {}


class Live(NamedTuple):
    """What the ranks have shown: who has what, and what came of trying."""

    gathered: cluster.Gathered
    results: tuple[ProbeResult, ...]
    links: tuple[Link, ...]
    limits: tuple[str, ...]
    cut_short: bool


def follow(launch: cluster.Launch, look: Callable[[], Presented], seconds: float) -> int:
    """Take part as a rank that is not the first; the exit status is what rank 0 says."""
    part = _Part(launch, look)
    with _ending(lambda name: setattr(part.participant, "stopping", f"the launcher sent {name}")):
        return part.take(seconds)


def lead(launch: cluster.Launch, look: Callable[[], Presented], trials: Trials, publish: Callable[[Live], int]) -> int:
    """Lead as rank 0, which takes part beside that; ``publish`` makes a verdict of it all, and the exit status."""
    with Hub(launch) as hub:
        with _ending(lambda _: setattr(hub, "stopping", True)):
            part = _Part(launch._replace(ports=(hub.port(),)), look)
            taking_part = threading.Thread(target=part.take_beside, args=(trials.seconds,), daemon=True)
            taking_part.start()
            leader = Leader(hub, __version__, trials.seconds)
            live = _look(leader, trials)
            status = CompatcheckError.exit_status
            try:
                status = publish(live)
            except CompatcheckError as error:
                status = error.exit_status
                raise
            finally:
                leader.part(status)
                part.participant.stopping = part.participant.stopping or "the run is over"
                taking_part.join(2.0)
        return status


def _look(leader: Leader, trials: Trials) -> Live:
    """Gather, then try; where the launcher ends the run, what is known until then."""
    results: list[ProbeResult] = []
    links: list[Link] = []
    limits: list[str] = []
    cut_short = False
    try:
        leader.gather()
        with probe_progress() as show:
            _try(Conductor(leader, show), trials, results, links, limits)
    except Stopped:
        cut_short = True
        leader.settle()
        limits.append("the launcher or a user ended the run before it finished")
    ledger = leader.ledger
    environments = _environments(leader)
    gathered = cluster.Gathered(ledger.members(), environments, ledger.snapshots, tuple(leader.failures))
    return Live(gathered, tuple(results), tuple(links), tuple(limits), cut_short)


def _environments(leader: Leader) -> dict[str, Environment]:
    """The environments of the snapshots; ranks whose snapshot cannot be read are failures, and it is dropped."""
    ledger, environments = leader.ledger, dict[str, Environment]()
    for digest, snapshot in list(ledger.snapshots.items()):
        ranks = [member.rank or 0 for member in ledger.members()[digest]]
        try:
            environments[digest] = check_snapshot(dict(snapshot), f"rank {ranks[0]}")
        except InputError as error:
            leader.fail("unread", ranks, str(error))
            del ledger.snapshots[digest]
    return environments


def _try(
    conductor: Conductor, trials: Trials, results: list[ProbeResult], links: list[Link], limits: list[str]
) -> None:
    """Reach, then every probe in turn, on those ranks that live and have torch."""
    leader = conductor.leader
    firsts = leader.firsts()
    if len(firsts) > 1:
        leader.reach()
    ledger = leader.ledger
    alike = (rank for rank in ledger.alive() if ledger.hellos[rank].version == leader.version)
    ranks = tuple(rank for rank in alike if ledger.has[rank].torch)
    if len(ranks) < 2:
        if trials.names:
            limits.append("no probe was run: fewer than two ranks have torch and this compatcheck")
        return
    if any(failure.fault == "cut off" for failure in leader.failures):
        limits.append("no probe was run: nodes cannot reach one another")
        return
    broken = ""
    backend, device, stands_in = _backend(leader, ranks, trials.device)
    for name in trials.names:
        chosen = _choose(probes.joint_ranks(name), ranks, leader)
        if len(chosen) < 2:
            continue
        if broken:
            limits.append(f"{name} was not run: {broken}")
            continue
        started = time.monotonic()
        cases = probes.joint_cases(name, {**_own_run(leader), **trials.request}, device)
        environ = {"DS_ACCELERATOR": "cpu"} if device == "cpu" else {}
        plan = Plan(name, cases, chosen, backend, device, environ, trials.seconds)
        outcomes, unmet, broken = conductor.conduct(plan)
        names = [
            f"rank {number} is {'' if member.rank == number else f'rank {member.rank} of the run, '}on {member.node}"
            for number, member in enumerate(leader.members(chosen))
        ]
        try:
            result = probes.joint_result(name, outcomes, stands_in, names, time.monotonic() - started)
            between = list(_links(outcomes, [member.node for member in leader.members(chosen)]))
        except _OTHER_SHAPE:
            limits.append(f"{name} has no result: a rank sent measurements of another shape")
            continue
        if broken:
            result = result._replace(outcome="timeout", why=f"{broken}; before that: {result.why}")
        elif unmet:
            result = result._replace(outcome="skip", why=unmet)
        results.append(result._replace(why=f"{len(chosen)} ranks over {backend}: {result.why}"))
        links += between
    if device == "cpu" and results:
        limits.append(
            "tested on the CPU over gloo, which has no streams, so faults in the overlap of GPU streams do not appear"
        )


def _own_run(leader: Leader) -> dict[str, object]:
    """What probes are told of the user's own run, as rank 0 knows it."""
    has = leader.ledger.has.get(0)
    training = (leader.ledger.snapshots.get(has.digest, {}) if has else {}).get("training") or {}
    return {"training": training, **({"dtype": training["dtype"]} if training.get("dtype") else {})}


def _choose(which: probes.JointRanks, ranks: tuple[int, ...], leader: Leader) -> tuple[int, ...]:
    """The ranks that take part; a few are spread over the nodes."""
    firsts = tuple(rank for rank in leader.firsts().values() if rank in ranks)
    if which == "one_per_node":
        return firsts
    if which == "few":
        spread = (*firsts, *(rank for rank in ranks if rank not in firsts))[:_SPREAD]
        return tuple(sorted(spread[: 4 if len(spread) >= 4 else 2]))
    return ranks


def _backend(leader: Leader, ranks: tuple[int, ...], wanted: str) -> tuple[str, str, bool]:
    """Backend, device, and whether the CPU stands in for GPUs that train: NCCL where every rank has a GPU."""
    ledger = leader.ledger
    have = all(ledger.has[rank].gpus > ledger.hellos[rank].local_rank for rank in ranks)
    if wanted == "cpu" or (wanted == "auto" and not have):
        return "gloo", "cpu", any(ledger.has[rank].gpus for rank in ranks)
    return "nccl", "cuda", False


def _links(outcomes: list[tuple[Any, Any, str]], nodes: list[str]) -> Iterator[Link]:
    """The best exchange of each pair, by its slower end; slow against the median of what each node has at best.

    Empty for a probe that measures no speeds.
    """
    measured = [answer["measured"] for _, answers, _ in outcomes for answer in answers]
    told = [each["speeds"] for each in measured if "speeds" in each]
    speeds = {
        (one, int(other)): max(map(min, own, told[int(other)][str(one)]))
        for one, partners in enumerate(told)
        for other, own in partners.items()
        if one < int(other)
    }
    best = sorted(
        max((speed for pair, speed in speeds.items() if number in pair), default=0.0) for number in range(len(nodes))
    )
    usual = best[len(best) // 2] if len(best) >= _NODES_THAT_COMPARE else 0.0
    for (one, other), speed in sorted(speeds.items()):
        yield Link((nodes[one], nodes[other]), speed, speed < _SLOW_SHARE * usual)


class _Part:
    """One rank's own part: what it looks at, and the processes it starts."""

    def __init__(self, launch: cluster.Launch, look: Callable[[], Presented]) -> None:
        self.hello = hello(launch)
        self.look = look
        self.executable = ""
        self.participant = Participant(launch, self._start)

    def take(self, seconds: float) -> int:
        return self.participant.run(self.hello, self._look, seconds)

    def take_beside(self, seconds: float) -> None:
        """Rank 0's own part; what goes wrong there is heard at its hub."""
        try:
            self.take(seconds)
        except CompatcheckError as error:
            if not self.participant.stopping:
                say(str(error))

    def _look(self) -> tuple[Has, Mapping[str, object]]:
        presented = self.look()
        self.executable = presented.target.executable if presented.target else ""
        if presented.refused and not self.hello.local_rank:
            said = _(
                "probes do not run in {prefix}, because the environment is in this folder; activate it, or pass --trust"
            )
            say(said.format(prefix=presented.refused))
        return presented.has, presented.snapshot

    def _start(self, work: Work) -> probes.RankProcess:
        order = probes.Order(
            work.probe,
            work.cases,
            work.number,
            work.world,
            work.local,
            work.backend,
            work.device,
            work.limit,
            work.limit,
            {**work.environ, **_interface(work)},
        )
        return probes.RankProcess(order, self.executable)


def _interface(work: Work) -> dict[str, str]:
    """Gloo looks for its interface by the host's name, which may lead to loopback: it gets the one in use."""
    if work.backend != "gloo" or "GLOO_SOCKET_IFNAME" in os.environ:
        return {}
    name = cluster.interface_of(work.own)
    return {"GLOO_SOCKET_IFNAME": name} if name else {}


@contextmanager
def _ending(stop: Callable[[str], None]) -> Iterator[None]:
    """Within it a request to end calls ``stop`` with the signal's name."""
    numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGINT", "SIGHUP") if hasattr(signal, name)]
    before = {number: signal.signal(number, lambda got, _: stop(signal.Signals(got).name)) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
