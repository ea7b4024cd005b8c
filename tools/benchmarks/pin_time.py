"""Time `compatcheck pin FILE` against `uv pip compile FILE` on the same input, all in one run.

    python tools/benchmarks/pin_time.py --compatcheck PATH/TO/VENV/bin/compatcheck

Give a compatcheck that is installed from its wheel, as people have it. The two commands take turns, round by round, so
that a machine or an index that slows down slows both; a first round, which fills uv's cache, is not counted. Without a
conflict one resolution is all there is to do: exit status 1 where the median ratio is above the budget. What a conflict
takes is printed beside its number of resolutions.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

BUDGET = 1.5
PADDED = (
    "gpu.compute_capability=8.0",
    "cuda.driver=550.54.15",
    "training.attention=sdpa",
    "training.per_device_train_batch_size=2",
    "training.dtype=bfloat16",
)


class Input(NamedTuple):
    """Requirements, and the facts of the run that bring them into conflict with an entry."""

    requirements: tuple[str, ...]
    assumed: tuple[str, ...] = ()


INPUTS = {
    "without a conflict": Input(("torch==2.6.0", "transformers==4.53.0", "accelerate==1.8.1", "peft==0.15.2")),
    "with one conflict": Input(("torch==2.5.0", "transformers==4.49.0", "accelerate==1.4.0", "peft==0.14.0"), PADDED),
}


class Pair(NamedTuple):
    """Wall seconds of the two commands in one round."""

    uv: float
    ours: float


def timed(command: Sequence[str], folder: Path) -> float:
    """Seconds of a command; that Python keeps what it compiles, as it does for people, is seen to."""
    environ = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    begun = time.perf_counter()
    done = subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}: status {done.returncode}: {done.stderr[-2000:]}")
    return time.perf_counter() - begun


def measure(compatcheck: str, asked: Input, folder: Path, rounds: int) -> list[Pair]:
    """Both commands on the same file; no output of a round is there for the next."""
    from uv import find_uv_bin

    (folder / "requirements.in").write_text("\n".join(asked.requirements) + "\n", encoding="utf-8")
    assumed = [f"--assume={fact}" for fact in asked.assumed]
    ours = [compatcheck, "pin", "requirements.in", *assumed, "--report", "json=report.json"]
    python = str(Path(compatcheck).with_name("python"))
    uv = [find_uv_bin(), "pip", "compile", "requirements.in", "--python", python]
    return [Pair(timed(uv, folder), timed(ours, folder)) for _ in range(rounds + 1)][1:]


def told(name: str, pairs: Sequence[Pair], report: dict[str, object]) -> float:
    """The median ratio; what was measured is printed."""
    ratios = [pair.ours / pair.uv for pair in pairs]
    print(
        f"{name}: {report['resolutions']} resolutions, distance {report['distance']}; "
        f"uv {statistics.median(pair.uv for pair in pairs):.2f} s, "
        f"compatcheck {statistics.median(pair.ours for pair in pairs):.2f} s"
    )
    print(f"  ratio by round {' '.join(f'{ratio:.2f}' for ratio in ratios)}, median {statistics.median(ratios):.2f}")
    return statistics.median(ratios)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--compatcheck", default=str(Path(sys.executable).with_name("compatcheck")))
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    ratios = {}
    for name, asked in INPUTS.items():
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary)
            pairs = measure(os.path.abspath(options.compatcheck), asked, folder, options.rounds)
            report = json.loads((folder / "report.json").read_text(encoding="utf-8"))
        ratios[name] = told(name, pairs, report)
    kept = ratios["without a conflict"] <= BUDGET
    print(f"{'kept  ' if kept else 'MISSED'} at most {BUDGET} x the time of uv without a conflict")
    print(f"load of the machine {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    return int(not kept)


if __name__ == "__main__":
    sys.exit(main())
