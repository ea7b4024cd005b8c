"""Time the smoke and the quick set of probes, beyond importing torch, and say where the time goes.

    python tools/benchmarks/probe_time.py --target PATH/TO/VENV/bin/python

Nothing remembered is used. The budgets are those of two processor cores that have nothing else to do; the processor
seconds printed beside the wall tell how far that holds. Exit status 1 where a budget is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from typing import Any, NamedTuple

BUDGETS = {"smoke": 5.0, "quick": 60.0}
BUDGET_ON_A_GPU = 15.0
KINDS = ("importing", "compiling", "measuring")


class Run(NamedTuple):
    wall: float
    processor: float
    output: str


def timed(command: list[str], cache: str) -> Run:
    """Wall and processor seconds of a command with all it starts."""
    begun, before = time.perf_counter(), os.times()
    environ = {**os.environ, "XDG_CACHE_HOME": cache}
    done = subprocess.run(command, env=environ, stdout=subprocess.PIPE, text=True, check=False)
    after = os.times()
    spent = after.children_user + after.children_system - before.children_user - before.children_system
    return Run(time.perf_counter() - begun, spent, done.stdout)


def table(probes: list[dict[str, Any]]) -> None:
    print(f"  {'probe':26} {'outcome':8} {'s':>6} " + " ".join(f"{kind:>10}" for kind in KINDS))
    for probe in sorted(probes, key=lambda each: -each["seconds"]):
        times = probe["measured"].get("child", {}).get("times", {})
        shares = " ".join(f"{times.get(kind, 0.0):10.2f}" for kind in KINDS)
        print(f"  {probe['name']:26} {probe['outcome']:8} {probe['seconds']:6.2f} {shares}")


def kept(name: str, budget: float, device: str, target: str, cache: str) -> bool:
    """Whether a set of probes stays within its budget; what was measured is printed."""
    torch = timed([target, "-c", "import torch"], cache)
    options = ["--python", target, "--device", device, "--fresh", "--format", "json"]
    run = timed([sys.executable, "-m", "compatcheck", "probe", f"--{name}", *options], cache)
    report = json.loads(run.output)
    beyond, processor = run.wall - torch.wall, run.processor - torch.processor
    spent = sum(report["times"].values()) or 1.0
    shares = ", ".join(f"{report['times'][kind] / spent:.0%} {kind}" for kind in KINDS)
    told = "kept  " if beyond <= budget else "MISSED"
    print(f"{told} {name} at most {budget:g} s: {beyond:.1f} s beyond importing torch ({torch.wall:.1f} s); {shares}")
    print(
        f"  {processor:.1f} processor seconds; load of the machine {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
    )
    table(report["probes"])
    return beyond <= budget


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", default=sys.executable, help="the interpreter that has torch")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    options = parser.parse_args()
    budgets = BUDGETS if options.device == "cpu" else {"quick": BUDGET_ON_A_GPU}
    with tempfile.TemporaryDirectory() as cache:
        results = [kept(name, budget, options.device, options.target, cache) for name, budget in budgets.items()]
    return int(not all(results))


if __name__ == "__main__":
    sys.exit(main())
