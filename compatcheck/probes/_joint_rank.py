"""One rank of a probe whose other ranks are on other machines: its process here, and what it writes."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from compatcheck.probes import _process, _units
from compatcheck.probes._criterion import Case, Request
from compatcheck.probes.distributed import _ranks
from compatcheck.results.findings import ProbeResult

JOINT = ("link_speed", "collectives", "ddp_gradients", "zero_training")
JointRanks = Literal["all", "few", "one_per_node"]
"""Which ranks take part in a joint probe; its unit may say so in ``RANKS``. A ``few`` are spread over the nodes."""

_SCRIPT = _units.FOLDER / "distributed" / "_ranks" / "_rank.py"


class Order(NamedTuple):
    """What a rank is to do; see `_rank.py`. ``limit`` is its whole life in seconds, ``timeout`` its patience."""

    probe: str
    cases: Sequence[Case]
    number: int
    world: int
    local: int
    backend: str
    device: str
    timeout: float
    limit: float
    environ: Mapping[str, str]


class RankProcess:
    """The process of one rank; `end` leaves nothing of it behind."""

    def __init__(self, order: Order, executable: str) -> None:
        with contextlib.ExitStack() as opening:
            self.folder = opening.enter_context(_process.control_folder())
            paths = {"probe": str(_units.paths()[order.probe]), "environ": dict(order.environ)}
            text = json.dumps({**order._asdict(), "cases": list(order.cases), **paths})
            (self.folder / "order.json").write_text(text, encoding="utf-8")
            command = [executable, "-B", str(_SCRIPT), str(self.folder), str(order.number), str(os.getpid())]
            self.process = _process.start(command, self.folder)
            self.opened = opening.pop_all()
        self.errors = _process.TailReader(self.process.stderr)
        self.diary = self.folder / f"rank{order.number}.jsonl"
        self.position = 0

    def new_lines(self) -> list[dict[str, Any]]:
        """The lines that came since the last time."""
        try:
            with open(self.diary, "rb") as stream:
                stream.seek(self.position)
                lines, _, _ = stream.read().rpartition(b"\n")
        except FileNotFoundError:
            return []
        self.position += len(lines) + bool(lines)
        return [json.loads(line) for line in lines.splitlines()]

    def status(self) -> int | None:
        """The exit status, negative for a signal, None while it runs."""
        return self.process.poll()

    def pulse(self) -> tuple[float | None, str]:
        """CPU seconds so far, and the state of the process as Linux has it in a letter; nothing elsewhere."""
        try:
            with open(f"/proc/{self.process.pid}/stat", encoding="ascii", errors="replace") as stream:
                state, *fields = stream.read().rpartition(")")[2].split()
        except OSError:
            return None, ""
        return (int(fields[10]) + int(fields[11])) / os.sysconf("SC_CLK_TCK"), state

    def tail(self) -> str:
        """The last line of its standard error."""
        return self.errors.text().strip().rpartition("\n")[2][-300:]

    def end(self) -> None:
        with self.opened:
            _process.end(self.process)


def joint_ranks(name: str) -> JointRanks:
    """Which ranks take part in a probe, one of `JOINT`, as its unit says."""
    ranks: JointRanks = getattr(_units.unit(name), "RANKS", "all")
    return ranks


def joint_cases(name: str, request: Request, device: str) -> list[dict[str, Any]]:
    """What the ranks of many machines are asked by a probe, one of `JOINT`."""
    cases: list[dict[str, Any]] = _units.unit(name).joint_cases(request, device)
    return cases


def joint_result(
    name: str, outcomes: Iterable[_ranks.Outcomes], stands_in: bool, names: Sequence[str], seconds: float
) -> ProbeResult:
    """The result that the answers of all ranks stand for; ``names`` says of each where it is.

    ``stands_in``: GPUs are there and train, and the CPU is measured in their place.
    """
    rows = list(_ranks.outcome_rows(outcomes, stands_in))
    measured = {"rows": rows, "world": len(names)}
    if not rows:
        return ProbeResult(name, "skip", "the probe returned no result", measured, seconds)
    outcome, why = _units.unit(name).judge(measured)
    wrong = {row["rank"] for row in rows if "rank" in row and str(row["theta"]) == "inf"}
    if outcome == "fail" and wrong:
        why += "; " + ", ".join(names[number] for number in sorted(wrong))
    return ProbeResult(name, outcome, why, measured, round(seconds, 3))
