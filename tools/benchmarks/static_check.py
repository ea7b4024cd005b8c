"""Time the static check against the commands a person would run instead, all in one run.

    python tools/benchmarks/static_check.py --target PATH/TO/VENV/bin/python

The commands take turns, round by round, so that a machine that slows down slows them all; the medians, the ratios
round by round and each command's peak memory are printed, and the check with today's matrix takes turns with one grown
to 10,000 entries (`--entries N` for another number). Exit status 1 where a budget is missed.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

COMPATCHECK = "compatcheck check --no-probe"
TODAY, GROWN = f"{COMPATCHECK}, today's matrix", f"{COMPATCHECK}, grown matrix"


class Run(NamedTuple):
    seconds: float
    peak_mib: float
    status: int


def timed(command: list[str], environ: dict[str, str]) -> Run:
    """Wall time and peak memory of one whole process."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environ)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return Run(time.perf_counter() - start, usage.ru_maxrss / 1024, process.returncode)


def commands(target: str) -> dict[str, list[str]]:
    from uv import find_uv_bin

    return {
        COMPATCHECK: [str(Path(sys.executable).with_name("compatcheck")), "check", "--no-probe", "--python", target],
        "pip check": [target, "-m", "pip", "check"],
        "uv pip check": [find_uv_bin(), "pip", "check", "--python", target],
        "python -m torch.utils.collect_env": [target, "-m", "torch.utils.collect_env"],
    }


def grow_matrix(folder: str, number: int) -> None:
    """Copy this installation's package with a matrix of at least ``number`` entries: today's, and under new ids."""
    import compatcheck
    from compatcheck.matrix.compile import compile_entries, read_entries, read_tables, write_files

    sources = Path(__file__).parents[2] / "matrix"
    entries = list(read_entries(sources).values())
    copies = [
        entry.model_copy(update={"id": f"CC-{3000 + again}-{entry.id[3:7]}{entry.id[8:]}"})
        for again in range(-(-number // len(entries)) - 1)
        for entry in entries
    ][: max(0, number - len(entries))]
    package = Path(folder) / "compatcheck"
    subprocess.run(["cp", "-r", str(Path(compatcheck.__file__).parent), str(package)], check=True)
    write_files(compile_entries([*entries, *copies]), read_tables(sources), package / "matrix" / "data")
    subprocess.run([sys.executable, "-m", "compileall", "-q", str(package)], check=True)


def grown(folder: Path, number: int) -> dict[str, str]:
    """The environment in which the command uses a grown matrix.

    It is made in a process of its own, as a child's peak memory counts from what its parent holds.
    """
    folder.mkdir()
    subprocess.run([sys.executable, __file__, "--grow", str(folder), str(number)], check=True)
    return {**os.environ, "PYTHONPATH": str(folder), "PYTHONSAFEPATH": "1"}


def measure(listed: dict[str, list[str]], rounds: int, environs: dict[str, dict[str, str]]) -> dict[str, list[Run]]:
    runs: dict[str, list[Run]] = {name: [] for name in listed}
    for round_number in range(rounds + 1):
        for name, command in listed.items():
            run = timed(command, environs.get(name, dict(os.environ)))
            if round_number:
                runs[name].append(run)
    return runs


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", default=sys.executable, help="the interpreter whose environment is judged")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--entries", type=int, default=10_000, help="size of the grown matrix; 0 leaves it out")
    parser.add_argument("--grow", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.grow:
        grow_matrix(options.grow[0], int(options.grow[1]))
        return 0
    listed, environs = commands(options.target), {}
    with tempfile.TemporaryDirectory() as folder:
        if options.entries:
            for name, number in ((TODAY, 0), (GROWN, options.entries)):
                listed[name], environs[name] = listed[COMPATCHECK], grown(Path(folder) / str(number), number)
        runs = measure(listed, options.rounds, environs)
    return report(runs, options.entries)


def report(runs: dict[str, list[Run]], number: int) -> int:
    print(f"{'command':48} {'median ms':>10} {'peak MiB':>9} {'compatcheck / it':>17}")
    ratios = {}
    for name, taken in runs.items():
        ratios[name] = statistics.median(ours.seconds / run.seconds for ours, run in zip(runs[COMPATCHECK], taken))
        middle = statistics.median(run.seconds for run in taken) * 1000
        print(f"{name:48} {middle:10.1f} {max(run.peak_mib for run in taken):9.1f} {ratios[name]:17.3f}")
    peak = max(run.peak_mib for run in runs[COMPATCHECK])
    budgets = [
        ("at most 1/10 of pip check", ratios["pip check"], 1 / 10),
        ("at most 1/15 of collect_env", ratios["python -m torch.utils.collect_env"], 1 / 15),
        ("at most 40 MiB", peak, 40),
    ]
    if number:
        growth = statistics.median(b.seconds / a.seconds for a, b in zip(runs[TODAY], runs[GROWN]))
        budgets.append((f"{number:,} entries: at most 1.3 x the time of today's", growth, 1.3))
    for text, seen, allowed in budgets:
        print(f"{'kept  ' if seen <= allowed else 'MISSED'} {text}: {seen:.3f}")
    return int(any(seen > allowed for _, seen, allowed in budgets))


if __name__ == "__main__":
    sys.exit(main())
