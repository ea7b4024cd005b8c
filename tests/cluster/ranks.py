"""Ranks of `compatcheck cluster` as a launcher starts them: one process each, with torch's variables."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

COMMAND = (sys.executable, "-m", "compatcheck", "cluster")
OF_LAUNCHERS = ("SLURM", "OMPI_", "PMI", "TORCHELASTIC_", "GROUP_", "RANK", "WORLD_", "LOCAL_", "MASTER_", "PYTHONPATH")
LIMIT = 120.0


class Rank(NamedTuple):
    """What is one rank's own: variables, words before the command, its folder, and the command itself."""

    environ: Mapping[str, str] = {}
    prefix: Sequence[str] = ()
    folder: Path | None = None
    command: Sequence[str] = COMMAND
    options: Sequence[str] = ()


class Said(NamedTuple):
    """How each rank ended, what rank 0 printed, blanks as one, what each said beside it, and the seconds of it all."""

    statuses: list[int]
    text: str
    errors: list[str]
    seconds: float


def run(
    folder: Path,
    ranks: Sequence[Rank],
    *options: str,
    address: str = "127.0.0.1",
    absent: Iterable[int] = (),
    meanwhile: Callable[[list[subprocess.Popen[bytes]], Path], None] | None = None,
) -> Said:
    """Start the ranks that are not absent and wait for all; ``meanwhile`` is called with their processes."""
    port, processes, began = free_port(), list[subprocess.Popen[bytes]](), time.monotonic()
    try:
        for number, rank in enumerate(ranks):
            if number not in absent:
                private = {"RANK": str(number), "LOCAL_RANK": str(number), "WORLD_SIZE": str(len(ranks))}
                private.update(MASTER_ADDR=address, MASTER_PORT=str(port), **rank.environ)
                processes.append(_start(folder, number, rank, private, options))
        if meanwhile is not None:
            meanwhile(processes, folder / "out0")
        statuses = [process.wait(LIMIT) for process in processes]
    finally:
        for process in processes:
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.kill()
                process.wait()
    there = [number for number in range(len(ranks)) if number not in absent]
    text = " ".join((folder / "out0").read_text().split()) if 0 not in absent else ""
    return Said(statuses, text, [(folder / f"err{each}").read_text() for each in there], time.monotonic() - began)


def _start(
    folder: Path, number: int, rank: Rank, private: Mapping[str, str], options: Sequence[str]
) -> subprocess.Popen[bytes]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith(OF_LAUNCHERS)}
    with open(folder / f"out{number}", "wb") as out, open(folder / f"err{number}", "wb") as errors:
        return subprocess.Popen(
            [*rank.prefix, *rank.command, *options, *rank.options],
            cwd=rank.folder or folder,
            env={**clean, "NO_COLOR": "1", "OMP_NUM_THREADS": "1", **private},
            stdout=out,
            stderr=errors,
        )


def planted(folder: Path, code: str) -> Rank:
    """A rank in whose processes some code runs before anything else, as a broken stack's would."""
    place = folder / "planted"
    place.mkdir(exist_ok=True)
    (place / "sitecustomize.py").write_text(code, encoding="utf-8")
    return Rank({"PYTHONPATH": str(place)})


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])
