"""Start several fresh processes of a probe, joined by a process group, and collect what they measured.

A probe with ranks has ``work(case, rank)``, which runs in every rank for every case and returns plain JSON.
``measure`` calls ``run`` here. The ranks stay in the process group of the child that starts them, so the runner ends
them with it; they also end themselves when that child is gone, or past their own limit. A case that fails, crashes or
hangs in any rank costs that launch alone: the cases after it are run in fresh processes.

``rows`` makes the answers the rows of ``_criterion.judge_rows``, for cases whose ``work`` returns ``measured``
(theta, rho and the rest), ``control`` (the same of one process of plain torch) and ``digest`` (equal where every bit
is). Gloo over the loopback device, or NCCL where two GPUs are. Imported by the child; standard library alone at
import.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import socket
import subprocess
import sys
import tempfile
import time
from typing import TYPE_CHECKING, Any, Callable, Iterable, Iterator, List, Mapping, NamedTuple, Sequence, Tuple, Union

from compatcheck.probes import _criterion
from compatcheck.probes._clock import CAP, Clock
from compatcheck.probes._criterion import Measured, Measuring, Request, Row, Stage

if TYPE_CHECKING:
    from compatcheck.results.findings import Outcome

JOIN_SECONDS = 120.0
CASE_SECONDS = 90.0
PEER_SECONDS = 2.0
POLL_SECONDS = 0.05
STDERR_BYTES = 2000

# What a launcher set for the run that compatcheck itself may be part of.
_LAUNCHER_PREFIXES = (
    "TORCHELASTIC_",
    "ACCELERATE_",
    "OMPI_COMM_WORLD_",
    "PMI_",
    "GROUP_",
    "ROLE_",
    "LOCAL_",
    "TORCH_NCCL_",
)

UNANSWERED = "no answer"

Case = Row
Answer = Row
Outcomes = Tuple[Case, List[Answer], str]


class Place(NamedTuple):
    """``backend`` of torch.distributed, ``device`` of the tensors ("cpu" or "cuda"), number of ranks, and why so.

    ``stands_in``: a GPU is there and trains, and the CPU is measured in its place.
    """

    backend: str
    device: str
    world: int
    why: str
    stands_in: bool


def place(request: Request, world: int = 2) -> Union[Place, str]:
    """Where the ranks run, or why they cannot."""
    import torch

    if not torch.distributed.is_available():
        return "this torch is built without torch.distributed"
    wanted = str(request.get("device", "auto"))
    gpus = torch.cuda.device_count() if wanted != "cpu" else 0
    if gpus >= world and torch.distributed.is_nccl_available():
        return Place("nccl", "cuda", world, "%d GPUs" % gpus, False)
    if wanted == "cuda":
        return "NCCL needs one GPU for each of %d processes, but only %d can be used here" % (world, gpus)
    if not getattr(torch.distributed, "is_gloo_available", lambda: True)():
        return "this torch is built without gloo"
    few = "one GPU cannot serve two ranks of NCCL" if gpus else "no GPU is used"
    return Place("gloo", "cpu", world, few, gpus > 0)


def measure(
    probe: str,
    request: Request,
    stage: Stage,
    cases: Callable[[Request, str], List[Case]],
    environ: Callable[[str], Mapping[str, str]] = lambda device: {},
    several: bool = False,
) -> Measuring:
    """The rows of the cases for a request and a device, or why no ranks can run.

    ``environ`` gives the variables of the ranks on a device; ``several``: there is nothing to measure where the
    training runs in one process.
    """
    if several and (request.get("training") or {}).get("world_size") == 1:
        return {"unsupported": "the training runs in one process"}
    where = place(request)
    if isinstance(where, str):
        return {"unsupported": where}
    yield from rows(probe, cases(request, where.device), where, stage, environ(where.device))
    return {"ranks": where._asdict()}


def run(
    probe: str, cases: Sequence[Case], where: Place, stage: Stage, environ: Mapping[str, str]
) -> Iterator[Tuple[Case, List[Answer], str]]:
    """Each case with the answers of all ranks in order, or with none and what went wrong.

    Raises ``ImportError`` where a rank lacks what the probe needs.
    """
    todo = list(cases)
    while todo:
        finished = 0
        for case, answers, error in _launch(probe, todo, where, stage, environ):
            finished += 1
            yield case, answers, error
        todo = todo[finished:]


def passes(number: int) -> str:
    return "%d backward pass%s" % (number, "" if number == 1 else "es")


def rows(probe: str, cases: Sequence[Case], where: Place, stage: Stage, environ: Mapping[str, str]) -> Iterator[Row]:
    """The rows of all cases, run here; see `outcome_rows`."""
    yield from outcome_rows(run(probe, cases, where, stage, environ), where.stands_in)


def outcome_rows(outcomes: Iterable[Outcomes], stands_in: bool) -> Iterator[Row]:
    """The worst rank's row of each case, and once for each ``case`` that of one process.

    A case without an answer (a hang, a death, a machine too busy) is recorded, not judged. So is one that raised where
    the CPU stands in for GPUs, unless the case has ``any_device``: it says nothing about them.
    """
    controlled = set()
    for case, answers, error in outcomes:
        row: Row = {key: case[key] for key in ("case", "variant", "dtype", "recorded") if key in case}
        if error:
            row["error"] = error
            if error.startswith(UNANSWERED):
                row["recorded"] = UNANSWERED
            elif stands_in and not case.get("any_device"):
                row["recorded"] = "raised on the CPU, not on a GPU"
            yield row
            continue
        if case["case"] not in controlled:
            controlled.add(case["case"])
            yield {
                "case": case["case"],
                "variant": "one process",
                "dtype": case["dtype"],
                "control": True,
                **answers[0]["control"],
            }
        yield {**row, **max((answer["measured"] for answer in answers), key=lambda measured: measured["theta"])}
        if len({answer["digest"] for answer in answers}) > 1:
            differing = _minority([answer["digest"] for answer in answers])
            says = "the ranks' results of %s in %s differ in at least one bit: %s" % (
                case["case"],
                case["dtype"],
                differing,
            )
            disagreed = {"tensor": "agreement of the ranks", "theta": math.inf, "rho": math.inf, "nonfinite": 0}
            yield {**row, **disagreed, "says": says}


def _minority(digests: Sequence[str]) -> str:
    """Which ranks hold what most do not."""
    usual = max(digests, key=digests.count)
    odd = [str(number) for number, digest in enumerate(digests) if digest != usual]
    if 2 * len(odd) == len(digests):
        return "half of the ranks hold one value, half hold another"
    shown = ", ".join(odd[:8]) + (" and %d more" % (len(odd) - 8) if len(odd) > 8 else "")
    return "rank%s %s against the others" % ("" if len(odd) == 1 else "s", shown)


def judge(measured: Measured) -> "Tuple[Outcome, str]":
    """As `_criterion.judge`; a case without an answer keeps the whole from passing."""
    outcome, why = _criterion.judge(measured)
    silent = [row for row in measured.get("rows", ()) if row.get("recorded") == UNANSWERED]
    if outcome == "pass" and silent:
        return "watch", "%s (%s, %s)" % (silent[0]["error"], silent[0]["case"], silent[0]["variant"])
    return outcome, why


def _launch(
    probe: str, cases: Sequence[Case], where: Place, stage: Stage, environ: Mapping[str, str]
) -> Iterator[Tuple[Case, List[Answer], str]]:
    """One set of processes, until the last case or the first that went wrong."""
    with tempfile.TemporaryDirectory(prefix="ranks-") as folder:
        limit = CAP * (JOIN_SECONDS + CASE_SECONDS * len(cases))
        order = {"probe": probe, "cases": list(cases), "limit": limit, **where._asdict()}
        with open(os.path.join(folder, "order.json"), "w", encoding="utf-8") as stream:
            json.dump(order, stream)
        port = _free_port()
        ranks: "List[subprocess.Popen[bytes]]" = []
        try:
            ranks.extend(_start(folder, number, port, where, environ) for number in range(where.world))
            stage("%d ranks over %s" % (where.world, where.backend))
            joined = _await(ranks, folder, -1, JOIN_SECONDS)
            if isinstance(joined, str):
                if joined.startswith("ImportError: "):
                    raise ImportError(joined[len("ImportError: ") :])
                for case in cases:
                    yield case, [], "%s: the ranks did not connect: %s" % (UNANSWERED, joined)
                return
            for number, case in enumerate(cases):
                stage("%s, %s" % (case["case"], case["variant"]))
                answers = _await(ranks, folder, number, CASE_SECONDS)
                if isinstance(answers, str):
                    yield case, [], answers
                    return
                yield case, answers, ""
        finally:
            _end(ranks)


def _start(folder: str, number: int, port: int, where: Place, environ: Mapping[str, str]) -> "subprocess.Popen[bytes]":
    private = {
        "RANK": str(number),
        "LOCAL_RANK": str(number),
        "WORLD_SIZE": str(where.world),
        "LOCAL_WORLD_SIZE": str(where.world),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "OMP_NUM_THREADS": "1",
        **environ,
    }
    if where.backend == "gloo" and sys.platform != "win32":
        private["GLOO_SOCKET_IFNAME"] = "lo0" if sys.platform == "darwin" else "lo"
    kept = {key: value for key, value in os.environ.items() if not key.startswith(_LAUNCHER_PREFIXES)}
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_rank.py")
    with open(os.path.join(folder, "stderr%d" % number), "wb") as stderr:
        return subprocess.Popen(
            [sys.executable, "-B", script, folder, str(number), str(os.getpid())],
            env={**kept, **private},
            stdin=subprocess.DEVNULL,
            stdout=stderr,
            stderr=stderr,
        )


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def _await(
    ranks: "List[subprocess.Popen[bytes]]", folder: str, number: int, seconds: float
) -> Union[List[Answer], str]:
    """The answers of all ranks to one case (-1: that they have come together), or what went wrong first."""
    clock = Clock(seconds, os.getpid)
    deadline = math.inf
    while True:
        ended = [rank.poll() is not None for rank in ranks]
        answers = [_read_answer(folder, rank, number) for rank in range(len(ranks))]
        heard = [event for event in answers if event is not None]
        errors = [event for event in heard if "error" in event]
        if len(heard) == len(ranks) and not errors:
            return [event["answer"] for event in heard]
        dead = [rank for rank, event in enumerate(answers) if event is None and ended[rank]]
        if dead or errors:
            deadline = min(deadline, time.monotonic() + PEER_SECONDS)
        if len(heard) + len(dead) == len(ranks) or time.monotonic() >= deadline or clock.is_over():
            # Where one rank dies, the others raise that their peer is gone.
            if errors and not dead:
                return str(min(errors, key=lambda event: float(event["at"]))["error"])
            return _silence(ranks, folder, dead, seconds)
        time.sleep(POLL_SECONDS)


def _read_answer(folder: str, rank: int, number: int) -> Any:
    """What a rank wrote about a case, None so far; a line cut short is not there yet."""
    try:
        with open(os.path.join(folder, "rank%d.jsonl" % rank), encoding="utf-8") as stream:
            lines = stream.read().split("\n")[:-1]
    except FileNotFoundError:
        return None
    events = (json.loads(line) for line in lines)
    spoken = (event for event in events if "answer" in event or "error" in event)
    return next((event for event in spoken if event["number"] == number), None)


def _silence(ranks: "List[subprocess.Popen[bytes]]", folder: str, dead: Sequence[int], seconds: float) -> str:
    if not dead:
        return "%s within %g s" % (UNANSWERED, seconds)
    number = dead[0]
    status = ranks[number].returncode
    with open(os.path.join(folder, "stderr%d" % number), "rb") as stream:
        tail = stream.read()[-STDERR_BYTES:].decode("utf-8", "replace").strip().rpartition("\n")[2]
    return "%s from rank %d, which ended with status %s; stderr ends: %s" % (UNANSWERED, number, status, tail[:200])


def _end(ranks: "List[subprocess.Popen[bytes]]") -> None:
    """Leave none behind; ranks that are through get a moment to part in peace."""
    patience = time.monotonic() + PEER_SECONDS
    for rank in ranks:
        with contextlib.suppress(subprocess.TimeoutExpired):
            rank.wait(max(0.0, patience - time.monotonic()))
    for rank in ranks:
        if rank.poll() is None:
            rank.kill()
            rank.wait()
