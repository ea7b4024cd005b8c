"""The parts that need no other process: launchers' variables, who keeps whom waiting, what is asked of whom."""

from __future__ import annotations

import socket
import time
from types import SimpleNamespace
from typing import Any, cast

import pytest

from compatcheck import probes
from compatcheck.cluster import _launch, _messages, _watch
from compatcheck.cluster._channel import Channel
from compatcheck.cluster._conduct import Conductor, _Progress
from compatcheck.cluster._hub import Heard
from compatcheck.cluster._lead import Leader
from compatcheck.cluster._ledger import Ledger
from compatcheck.cluster._messages import Has, Hello
from compatcheck.errors import InputError
from compatcheck.files import limits
from compatcheck.pipelines.cluster import _live
from compatcheck.probes.distributed import link_speed

ADDRESS = {"MASTER_ADDR": "node01", "MASTER_PORT": "29400"}
TORCHRUN = {"RANK": "3", "WORLD_SIZE": "8", "LOCAL_RANK": "1", "GROUP_RANK": "1", "TORCHELASTIC_RUN_ID": "none"}
IN_ALL_REDUCE = "all_reduce, line 2806 of distributed_c10d.py"


def test_the_ports_under_torchrun_leave_out_that_of_its_agent() -> None:
    read = _launch.launch({**TORCHRUN, **ADDRESS, "TORCHELASTIC_USE_AGENT_STORE": "True"})
    assert (read.launcher, read.rank, read.world, read.local_rank, read.place) == ("torchrun", 3, 8, 1, "1")
    assert (read.address, read.ports[0], len(read.ports)) == ("node01", 29401, 16)


@pytest.mark.parametrize(
    ("environ", "launcher", "address", "port"),
    [
        ({"OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_SIZE": "8", **ADDRESS}, "Open MPI", "node01", 29400),
        (
            {"OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_SIZE": "8", "OMPI_COMM_WORLD_LOCAL_SIZE": "8"},
            "Open MPI",
            "127.0.0.1",
            29500,
        ),
        (
            {"SLURM_PROCID": "3", "SLURM_NTASKS": "8", "SLURM_JOB_ID": "123456", "SLURM_JOB_NODELIST": "gpu[003-4,9]"},
            "srun",
            "gpu003",
            20000 + 123456 % 20000,
        ),
        ({"PMI_RANK": "3", "PMI_SIZE": "8", **ADDRESS}, "MPI", "node01", 29400),
        ({"RANK": "3", "WORLD_SIZE": "8", **ADDRESS}, "ranks of the environment", "node01", 29400),
    ],
)
def test_every_launcher_is_understood(environ: dict[str, str], launcher: str, address: str, port: int) -> None:
    read = _launch.launch(environ)
    assert (read.launcher, read.rank, read.world) == (launcher, 3, 8)
    assert (read.address, read.ports[0]) == (address, port)


@pytest.mark.parametrize(
    "environ",
    [
        {},
        {"RANK": "0"},
        {"RANK": "0", "WORLD_SIZE": "2"},
        {"RANK": "2", "WORLD_SIZE": "2", **ADDRESS},
        {"RANK": "one", "WORLD_SIZE": "2", **ADDRESS},
        {"RANK": "0", "WORLD_SIZE": "2", **ADDRESS, "MASTER_PORT": "http"},
    ],
)
def test_variables_that_cannot_be_used_are_named(environ: dict[str, str]) -> None:
    with pytest.raises(InputError):
        _launch.launch(environ)


@pytest.mark.parametrize(
    ("listed", "first"), [("gpu[003-007,012],login", "gpu003"), ("node7,node8", "node7"), ("a[12]", "a12"), ("x", "x")]
)
def test_the_first_node_of_a_list(listed: str, first: str) -> None:
    assert _launch.first_node(listed) == first


def pulse(rank: int, arrived: int = 5, **more: object) -> _watch.Pulse:
    return _watch.Pulse(rank, arrived, f"step {arrived}", **more)  # type: ignore[arg-type]


def test_the_rank_that_others_wait_for_is_named() -> None:
    pulses = [pulse(0, frame=IN_ALL_REDUCE), pulse(1, 4, worked=0.0), pulse(2)]
    assert _watch.stuck(pulses, 9.0, 10.0) is None
    found = _watch.stuck(pulses, 11.0, 10.0)
    assert found is not None
    assert (found.ranks, found.what) == ((1,), "did not reach step 5 within 11 s: the rank is at step 4")


def test_a_rank_that_computes_is_slow_before_it_is_hung() -> None:
    pulses = [pulse(0), pulse(1, 4, worked=0.9)]
    assert _watch.stuck(pulses, 11.0, 10.0) is None
    assert _watch.stuck(pulses, 51.0, 10.0) is not None
    assert _watch.stuck([pulse(0), pulse(1, 4, worked=0.9, state="T")], 11.0, 10.0) is not None


def test_an_operation_that_moves_bytes_is_slow_before_it_is_hung() -> None:
    moving = [pulse(0, frame=IN_ALL_REDUCE, moved=2**24), pulse(1, frame=IN_ALL_REDUCE, moved=2**24)]
    assert _watch.stuck(moving, 11.0, 10.0) is None
    found = _watch.stuck([each._replace(moved=100) for each in moving], 11.0, 10.0)
    assert found is not None
    assert (found.ranks, found.what.startswith("all ranks entered step 5, but none finished")) == ((0, 1), True)


def test_of_those_that_arrived_the_one_that_is_elsewhere_is_named() -> None:
    pulses = [pulse(0, frame=IN_ALL_REDUCE), pulse(1, frame="nap, line 7 of site.py"), pulse(2, frame=IN_ALL_REDUCE)]
    for some in (pulses, pulses[:2]):
        found = _watch.stuck(some, 11.0, 10.0)
        assert found is not None
        assert (found.ranks, "the rank is in nap, line 7 of site.py" in found.what) == ((1,), True)
    stopped = [pulse(0, frame=IN_ALL_REDUCE), pulse(1, frame=IN_ALL_REDUCE, state="T")]
    found = _watch.stuck(stopped, 11.0, 10.0)
    assert found is not None
    assert (found.ranks, found.what.endswith("the process is stopped")) == ((1,), True)


def introduce(
    ledger: Ledger, rank: int, digest: str = "a", node: str = "n", place: str = "", version: str = "1"
) -> bool:
    """Whether its snapshot is wanted."""
    ledger.hear(Hello(rank=rank, local_rank=0, node=node, place=place, version=version))
    return ledger.note(rank, Has(digest=digest, torch="2.5.0"))


def test_one_snapshot_of_each_kind_is_asked_for() -> None:
    ledger = Ledger(5)
    assert [introduce(ledger, rank, digest) for rank, digest in enumerate("aabab")] == [True, False, True, False, False]
    assert not ledger.complete()
    ledger.keep("a", {"python": "3.11"})
    assert ledger.lose(2) == 4
    ledger.keep("b", {"python": "3.12"})
    assert ledger.complete()
    members = {digest: [each.rank for each in of] for digest, of in ledger.members().items()}
    assert members == {"a": [0, 1, 3], "b": [2, 4]}


def test_a_rank_that_came_and_says_nothing_is_told_from_one_that_never_came() -> None:
    ledger = Ledger(3)
    introduce(ledger, 0)
    ledger.keep("a", {})
    ledger.hear(Hello(rank=1, local_rank=0, node="n", place="", version="1"))
    assert (ledger.missing(), ledger.mute(), ledger.complete()) == ([2], [1], False)


def test_machines_that_share_a_name_are_told_apart() -> None:
    ledger = Ledger(4)
    for rank, (node, place) in enumerate([("pod", "0"), ("pod", "0"), ("pod", "1"), ("other", "2")]):
        introduce(ledger, rank, node=node, place=place)
    assert ledger.nodes() == {0: "pod#0", 1: "pod#0", 2: "pod#1", 3: "other"}


def test_another_compatcheck_is_named_once_for_all_its_ranks() -> None:
    ledger = Ledger(3)
    for rank, version in enumerate(["1", "2", "2"]):
        introduce(ledger, rank, version=version)
    (failure,) = ledger.failures("1")
    assert (failure.fault, [member.rank for member in failure.members]) == ("other version", [1, 2])


@pytest.mark.parametrize("world", range(2, 9))
def test_every_pair_meets_once(world: int) -> None:
    turns = [link_speed.partners(number, world) for number in range(world)]
    met = [(one, other) for one in range(world) for other in turns[one] if other is not None]
    assert sorted(met) == sorted((one, other) for one in range(world) for other in range(world) if one != other)
    assert all(
        turns[other][turn] == one for one in range(world) for turn, other in enumerate(turns[one]) if other is not None
    )


@pytest.mark.parametrize(
    ("probe", "chosen"),
    [
        ("collectives", (0, 1, 2, 3, 4, 5)),
        ("zero_training", (0, 1, 2, 3, 4, 5)),
        ("link_speed", (0, 3)),
        ("ddp_gradients", (0, 1, 2, 3)),
    ],
)
def test_a_joint_probe_says_which_ranks_take_part(probe: str, chosen: tuple[int, ...]) -> None:
    leader = SimpleNamespace(firsts=lambda: {"one": 0, "two": 3})
    assert _live._choose(probes.joint_ranks(probe), tuple(range(6)), cast(Any, leader)) == chosen


@pytest.mark.parametrize(
    "line",
    [
        '{"kind":"hello","rank":-1,"local_rank":0,"node":"n","place":"p","version":"1"}',
        '{"kind":"hello","rank":1,"local_rank":0,"node":"n","place":"p","version":"1","port":99999}',
        '{"kind":"reach","peers":{"1":["host",70000]},"seconds":1}',
        '{"kind":"has","gpus":-5}',
        '{"kind":"leaving","why":"' + "x" * 100_000 + '"}',
        '{"kind":"ended","turn":1,"status":' + "9" * 400 + ',"tail":""}',
        "[" * 100_000,
        "\x00",
    ],
    ids=range(8),
)
def test_what_no_rank_sends_is_no_message(line: str) -> None:
    assert _messages.decoded(line.encode()) is None


def test_little_is_taken_from_a_connection_without_a_rank() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.socket() as stranger:
        stranger.connect(listener.getsockname())
        guest = Channel(listener.accept()[0], is_guest=True)
        stranger.sendall(b"x" * (limits.HELLO_BYTES + 1000))
        deadline = time.monotonic() + 10
        while not guest.gone and time.monotonic() < deadline:
            assert guest.receive() == []
        guest.close()
        assert guest.gone == "the rank sent an invalid message"


@pytest.mark.parametrize(
    "event",
    [
        {"mark": "x"},
        {"mark": "x", "arrived": "many"},
        {"error": "x", "at": None},
        {"answer": 3, "number": 0},
        {"answer": {"measured": []}, "number": 0},
        {"answer": {"measured": {}}, "number": "first"},
        {"mark": "x", "arrived": float("inf")},
    ],
)
def test_a_diary_of_another_shape_is_an_error_of_its_rank(event: dict[str, Any]) -> None:
    conductor, progress = Conductor(cast("Any", None), lambda probe, at: None), {3: _Progress(3)}
    assert conductor._note(Heard(3, _messages.Said(turn=0, event=event)), progress)
    assert progress[3].error is not None and progress[3].error[1] == 3


@pytest.mark.parametrize(
    "snapshot", [{}, {"schema_version": 1, "distributions": 7}, {"schema_version": 1, "locations": {"a": 3}}]
)
def test_a_snapshot_that_cannot_be_read_is_a_failure_of_its_rank(snapshot: dict[str, Any]) -> None:
    leader = Leader(cast("Any", SimpleNamespace(launch=SimpleNamespace(world=2))), "1", 1.0)
    for rank, digest, facts in ((0, "good", {"schema_version": 1}), (1, "bad", snapshot)):
        leader.ledger.hear(Hello(rank=rank, local_rank=0, node=f"n{rank}", place="p", version="1"))
        leader.ledger.note(rank, Has(digest=digest, torch="2.5.0"))
        leader.ledger.keep(digest, facts)
    assert list(_live._environments(leader)) == ["good"]
    assert [(each.fault, [member.rank for member in each.members]) for each in leader.failures] == [("unread", [1])]
