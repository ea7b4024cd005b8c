"""What gathering many snapshots costs rank 0: seconds and memory, by ranks and by different snapshots.

Run: python tools/benchmarks/cluster_scale.py [--ranks N ...] [--kinds N ...]

Rank 0's own code leads, groups, compares and judges in one process; its memory is the growth of the resident set while
it does. The ranks are connections of another process that say what ranks say, each with a snapshot of this environment
in which one version tells its kind. 10000 ranks need 10100 open files.
"""

from __future__ import annotations

import argparse
import copy
import multiprocessing
import os
import resource
import selectors
import socket
import sys
import threading
import time
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from compatcheck import __version__, cluster, matrix
from compatcheck.cluster._channel import Channel
from compatcheck.cluster._hub import Hub
from compatcheck.cluster._lead import Leader
from compatcheck.cluster._messages import Greeting, Has, Hello, Over, Snapshot, Want
from compatcheck.environment import Environment
from compatcheck.installed.collect import collect
from compatcheck.installed.target import find_target
from compatcheck.pipelines.cluster import judge

PAGE = os.sysconf("SC_PAGE_SIZE")


class Cost(NamedTuple):
    """Seconds of gathering and of judging; MiB of memory that both took at most."""

    gathering: float
    judging: float
    memory: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, nargs="+", default=[100, 1000, 10000])
    parser.add_argument("--kinds", type=int, nargs="+", default=[1, 10, 100])
    arguments = parser.parse_args()
    print(f"{'ranks':>7} {'kinds':>6} {'gathering s':>12} {'judging s':>10} {'memory MiB':>11}")
    for ranks in arguments.ranks:
        for kinds in arguments.kinds:
            if kinds <= ranks:
                cost = measured(ranks, kinds)
                print(
                    f"{ranks:7} {kinds:6} {cost.gathering:12.2f} {cost.judging:10.2f} {cost.memory:11.1f}", flush=True
                )


def measured(ranks: int, kinds: int) -> Cost:
    """In a process of its own, so that memory starts from the same place."""
    context = multiprocessing.get_context("spawn")
    answers: Any = context.Queue()
    process = context.Process(target=lead, args=(ranks, kinds, answers))
    process.start()
    cost: Cost = answers.get(timeout=600)
    process.join()
    return cost


def lead(ranks: int, kinds: int, answers: Any) -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    known = matrix.load()
    snapshot = collect(find_target(sys.executable, os.environ), known.environ).dump()
    judge(_one(snapshot), known, "warming up", 1)
    launch = cluster.Launch("benchmark", 0, ranks, 0, "node", "", "127.0.0.1", (0,), "job")
    with Hub(launch) as hub, _Peak() as peak:
        others = multiprocessing.get_context("spawn").Process(target=follow, args=(hub.port(), ranks, kinds, snapshot))
        others.start()
        hub.poll(60.0)  # whoever comes first: starting their process is no work of rank 0
        began = time.monotonic()
        leader = Leader(hub, __version__, 300.0)
        leader.gather()
        gathered = time.monotonic()
        ledger = leader.ledger
        environments = {digest: _environment(each) for digest, each in ledger.snapshots.items()}
        all_of_it = cluster.Gathered(ledger.members(), environments, ledger.snapshots, tuple(leader.failures))
        report = judge(all_of_it, known, "benchmark", ranks)
        ended = time.monotonic()
        assert len(report.groups) == kinds and not report.failures, report.failures
        leader.part(0)
        others.join()
    answers.put(Cost(gathered - began, ended - gathered, peak.mebibytes()))


def follow(port: int, ranks: int, kinds: int, snapshot: dict[str, Any]) -> None:
    """Every other process's side: one connection for each rank, told apart by a version."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    snapshots = [_of_kind(snapshot, kind) for kind in range(kinds)]
    digests = [cluster.digest(each) for each in snapshots]
    with selectors.DefaultSelector() as selector:
        for rank in range(ranks):
            channel = Channel(socket.create_connection(("127.0.0.1", port)))
            channel.rank = rank
            selector.register(channel, selectors.EVENT_READ)
        left = ranks
        while left:
            for key, _ in selector.select():
                channel = key.fileobj  # type: ignore[assignment]
                assert channel.rank is not None
                kind = channel.rank % kinds
                for message in channel.receive():
                    if isinstance(message, Greeting):
                        channel.send(_hello(channel.rank))
                        channel.send(Has(digest=digests[kind], torch="2.13.0"))
                    elif isinstance(message, Want):
                        channel.send(Snapshot(digest=digests[kind], snapshot=snapshots[kind]))
                    elif isinstance(message, Over):
                        channel.gone = channel.gone or "over"
                channel.flush()
                if channel.gone:
                    selector.unregister(channel)
                    channel.close()
                    left -= 1


def _hello(rank: int) -> Hello:
    return Hello(rank=rank, local_rank=rank % 8, node=f"node{rank // 8:04}", place="", version=__version__)


def _of_kind(snapshot: dict[str, Any], kind: int) -> dict[str, Any]:
    own = copy.deepcopy(snapshot)
    own["distributions"]["a-package-of-our-own"] = f"1.0.{kind}"
    return own


def _one(snapshot: dict[str, Any]) -> cluster.Gathered:
    from compatcheck.results.cluster import Member

    return cluster.Gathered({"one": [Member(0, "node")]}, {"one": _environment(snapshot)}, {"one": snapshot})


def _environment(snapshot: Any) -> Environment:
    return Environment(
        {key: snapshot[key] for key in snapshot if key not in ("schema_version", "unknown", "locations")}
    )


class _Peak:
    """The largest growth of the resident set within it, looked at a hundred times a second."""

    def __enter__(self) -> _Peak:
        self.start = self.most = _resident()
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._look, daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self.thread.join()

    def mebibytes(self) -> float:
        return (self.most - self.start) / 2**20

    def _look(self) -> None:
        while not self.over.wait(0.01):
            self.most = max(self.most, _resident())


def _resident() -> int:
    with open("/proc/self/statm", encoding="ascii") as stream:
        return int(stream.read().split()[1]) * PAGE


if __name__ == "__main__":
    main()
