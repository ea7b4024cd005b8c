"""Fuzz the readers, one target after another, each in a process of its own; a run goes on where the last one ended."""

from __future__ import annotations

import argparse
import importlib.util
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

if "--here" in sys.argv and "--unguided" not in sys.argv:
    import atheris

    atheris.instrument_imports(include=["compatcheck"]).__enter__()  # before anything of the package is imported

from tools.fuzz.engine import bounded, fault_of, guided, unguided  # noqa: E402
from tools.fuzz.targets import TARGETS  # noqa: E402


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.fuzz", description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"Default: all of {', '.join(TARGETS)}.")
    parser.add_argument("--seconds", type=float, default=60.0, help="Time for each target. Default: 60.")
    parser.add_argument("--inputs", type=int, default=10**9, help="Inputs for each target at most.")
    parser.add_argument("--state", default=".fuzz", help="Folder of the grown corpus and the findings. Default: .fuzz")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--unguided", action="store_true", help="Without coverage; as where atheris is not installed.")
    parser.add_argument("--try", dest="tried", metavar="FILE", help="Only read this input, and say what it does.")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    chosen = options.targets or list(TARGETS)
    unknown = set(chosen) - set(TARGETS)
    if unknown:
        parser.error(f"no target {', '.join(sorted(unknown))}")
    if options.tried:
        data = Path(options.tried).read_bytes()
        with bounded():
            fault = fault_of(chosen[0], data)
        print(fault.told if fault else "nothing")
        return int(fault is not None)
    if options.here:
        how = {"inputs": options.inputs, "seconds": options.seconds, "seed": options.seed}
        if not options.unguided:
            guided(chosen[0], options.state, **how)
        ran = unguided(chosen[0], str(Path(options.state, "findings").absolute()), **how)
        told = {"inputs": ran.inputs, "seconds": round(ran.seconds, 1), "faults": len(ran.faults)}
        Path(options.state, f"{chosen[0]}.last.json").write_text(json.dumps(told), encoding="utf-8")
        return 0
    return _all(chosen, options)


def _all(chosen: Sequence[str], options: argparse.Namespace) -> int:
    state = Path(options.state)
    state.mkdir(exist_ok=True)
    blind = options.unguided or importlib.util.find_spec("atheris") is None
    faults = 0
    for name in chosen:
        note = state / f"{name}.last.json"
        note.unlink(missing_ok=True)
        command = [sys.executable, "-m", "tools.fuzz", name, "--here", "--state", options.state]
        command += ["--seconds", str(options.seconds), "--inputs", str(options.inputs), "--seed", str(options.seed)]
        with open(state / f"{name}.log", "wb") as log:
            done = subprocess.run(command + ["--unguided"] * blind, stdout=log, stderr=log, check=False)
        ran = {"inputs": 0, "seconds": 0, "faults": 0}
        if note.exists():
            ran = json.loads(note.read_text(encoding="utf-8"))
        faults += ran["faults"] + (done.returncode != 0)
        rate = ran["inputs"] / (ran["seconds"] or 1)
        told = f"{name:20} {ran['inputs']:9,} inputs {rate:8.0f}/s {ran['faults']:3} new faults"
        died = f"; it died with {done.returncode}, see {state / f'{name}.log'}" if done.returncode else ""
        print(f"{told}; {_add(state, name, ran['inputs']):,} in all{died}", flush=True)
    print(f"{sum(_totals(state).values()):,} inputs in all; faults are in {state / 'findings'}")
    return int(faults > 0)


def _totals(state: Path) -> dict[str, int]:
    path = state / "totals.json"
    totals: dict[str, int] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return totals


def _add(state: Path, name: str, inputs: int) -> int:
    totals = _totals(state)
    totals[name] = totals.get(name, 0) + inputs
    (state / "totals.json").write_text(json.dumps(totals, indent=1) + "\n", encoding="utf-8")
    return totals[name]


if __name__ == "__main__":
    sys.exit(main())
