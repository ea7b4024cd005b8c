"""Run every probe on this machine's GPU and write down what came of it.

Run: python tools/gpu_suite.py --out record.json [--limit 300] [--device cuda|cpu] [--python PATH] [--only WORDS]
Needs this checkout and a Python 3.10 or later whose torch sees the GPU (transformers, DeepSpeed, PEFT and
bitsandbytes where they are to be tried); none of compatcheck's own dependencies, no network.
The probes that a GPU alone can decide come first, so that a short limit still settles them. The
record has the form of those in matrix/records/; a table goes to standard output.
Leaves with status 1 where a probe failed, 3 where nothing could be measured.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from compatcheck import probes  # noqa: E402
from compatcheck.environment import Target  # noqa: E402
from compatcheck.probes import _forked_children, _run, _units  # noqa: E402
from compatcheck.probes._criterion import RANK, verdict  # noqa: E402
from compatcheck.results.findings import ProbeResult

ROWS_KEPT = 12
ATTENTION = ("padded_right", "padded_left", "transposed_inputs")
FIRST: tuple[tuple[str, dict[str, Any]], ...] = (
    ("attention_masked", {"groups": ["shifted_logits"]}),
    ("attention_masked", {"groups": list(ATTENTION)}),
    ("attention_masked", {"groups": ["fully_masked_rows"]}),
    ("matmul", {}),
)
"""Rows 1, 2, 6, 7 and 21 of the catalogue: cuDNN's gradients, masks, strides, empty rows, partial sums in 16 bits."""

LAST: tuple[tuple[str, dict[str, Any]], ...] = (
    ("matmul", {"training": {"tf32": True}}),
    ("attention_masked", {"groups": list(ATTENTION), "head_dim": 128}),
)
"""More of the same, for which other probes do not have to wait: each new shape costs cuDNN a new plan."""

FULL: dict[str, dict[str, Any]] = {
    "micro_training": {"profile": "deep"},
    "packed_sequences": {"training": {"packing": True}},
}
"""What makes a probe try all that it can."""

FACTS = """
import json, torch
facts = {"torch": torch.__version__, "cuda": torch.version.cuda, "gpus": [], "usable": torch.cuda.is_available()}
if facts["usable"]:
    facts["cudnn"] = torch.backends.cudnn.version()
    facts["architectures"] = torch.cuda.get_arch_list()
    facts["nccl"] = list(torch.cuda.nccl.version()) if torch.distributed.is_nccl_available() else None
    for number in range(torch.cuda.device_count()):
        seen = torch.cuda.get_device_properties(number)
        facts["gpus"].append({"name": seen.name, "compute_capability": f"{seen.major}.{seen.minor}",
                              "memory_mib": seen.total_memory >> 20})
print(json.dumps(facts))
"""


class Trial(NamedTuple):
    """A probe and what is asked of it."""

    probe: str
    request: Mapping[str, Any]


def main() -> int:
    options = _options()
    started = time.monotonic()
    hardware = facts(options.python)
    print(_headline(hardware), flush=True)
    if options.device == "cuda" and not hardware.get("usable"):
        print("no CUDA device is usable from this interpreter; --device cpu tries the suite without one")
        return 3
    results: list[tuple[Trial, ProbeResult]] = []
    target = Target(options.python, "", "", (), "named by the suite")
    chosen = trials(options.device, options.only)
    try:
        for trial, result in measured(chosen, target, started + options.limit, options.limit / 5):
            results.append((trial, result))
            print(_line(trial, result), flush=True)
    finally:
        record = _record(hardware, options, results, time.monotonic() - started)
        Path(options.out).write_text(json.dumps(record, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return _conclusion([result for _, result in results], time.monotonic() - started, options.out)


def trials(device: str, only: str = "") -> tuple[Trial, ...]:
    """What a GPU alone decides, then every other probe: those of small profiles first, the short before the long."""
    known = {name for name, _ in FIRST}
    others = [probes.card(name) for name in probes.names() if name not in known]
    others.sort(key=lambda card: (probes.PROFILES.index(card.profile), card.seconds))
    chosen = [Trial(name, request) for name, request in FIRST]
    chosen += [Trial(card.name, FULL.get(card.name, {})) for card in others]
    chosen += [Trial(name, request) for name, request in LAST]
    return tuple(Trial(name, {"seed": 0, "device": device, **request}) for name, request in chosen if only in name)


def measured(
    chosen: Sequence[Trial], target: Target, deadline: float, share: float
) -> Iterator[tuple[Trial, ProbeResult]]:
    """Every trial's result; none is given more than its share in seconds, nor more than is left."""
    with _forked_children.Children(target) as children:
        for trial in chosen:
            left = deadline - time.monotonic()
            if left < 2.0:
                yield trial, ProbeResult(trial.probe, "skip", "no time was left", {})
                continue
            full = _units.unit(trial.probe).TIMEOUT
            limit = min(left, share, full)
            result = _run._run(children, trial.probe, trial.request, limit, None)
            if result.outcome == "timeout" and limit < full:
                result = result._replace(outcome="skip", why=f"cut short by the suite's own limit: {result.why}")
            yield trial, result


def facts(python: str) -> dict[str, Any]:
    """The GPU, its driver and torch's own versions, asked of other processes: this one never touches CUDA."""
    found: dict[str, Any] = {"gpus": [], "usable": False}
    command = ["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"]
    try:
        found["nvidia-smi"] = subprocess.run(command, capture_output=True, text=True, timeout=60).stdout.splitlines()
    except (OSError, subprocess.TimeoutExpired):
        found["nvidia-smi"] = []
    try:
        done = subprocess.run([python, "-c", FACTS], capture_output=True, text=True, timeout=120)
        found.update(json.loads(done.stdout.splitlines()[-1]))
    except (OSError, subprocess.TimeoutExpired, ValueError, IndexError):
        found["why"] = "torch could not be asked"
    return found


def worst_rows(rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Of each variant and dtype the row with the largest error, the worst first, those only recorded last."""
    worst: dict[tuple[Any, ...], Mapping[str, Any]] = {}
    for row in rows:
        key = tuple(row.get(name) for name in ("group", "backend", "variant", "dtype"))
        if key not in worst or _severity(row) > _severity(worst[key]):
            worst[key] = row
    return sorted(worst.values(), key=_severity, reverse=True)[:ROWS_KEPT]


def _severity(row: Mapping[str, Any]) -> tuple[bool, int, float]:
    judged = "recorded" not in row and "by_design" not in row and not row.get("control")
    if isinstance(row.get("error"), str):
        return judged, RANK["fail"], math.inf
    if "theta" not in row:
        return judged, 0, 0.0
    rank = RANK[verdict(row["theta"], row.get("rho", 0.0))]
    return judged, rank, max(float(row["theta"]), float(row.get("rho", 0.0)) / 2)


def _record(
    hardware: Mapping[str, Any],
    options: argparse.Namespace,
    results: Sequence[tuple[Trial, ProbeResult]],
    seconds: float,
) -> dict[str, Any]:
    versions = next(
        (
            result.measured["child"]["versions"]
            for _, result in results
            if result.measured.get("child", {}).get("versions")
        ),
        {},
    )
    return {
        "date": time.strftime("%Y-%m-%d"),
        "platform": {"system": platform.system(), "machine": platform.machine(), "python": platform.python_version()},
        "hardware": hardware,
        "question": "What does every probe find on this machine?",
        "method": "tools/gpu_suite.py: every probe in a process of its own, a failure repeated with another seed",
        "device": options.device,
        "versions": versions,
        "seconds": round(seconds, 1),
        "probes": [_shape(trial, result) for trial, result in results],
    }


def _shape(trial: Trial, result: ProbeResult) -> dict[str, Any]:
    told = dict(result.measured)
    rows, child = told.pop("rows", []), told.pop("child", {})
    asked = {key: value for key, value in trial.request.items() if key not in ("seed", "device")}
    shape = {"probe": trial.probe, "request": asked, "outcome": result.outcome, "why": result.why}
    shape.update(seconds=result.seconds, times=child.get("times", {}), rows=len(rows), worst_rows=worst_rows(rows))
    return {**shape, "facts": told}


def _line(trial: Trial, result: ProbeResult) -> str:
    asked = ", ".join(f"{key}={value}" for key, value in trial.request.items() if key not in ("seed", "device"))
    return f"{result.outcome:8}{result.seconds or 0.0:6.1f} s  {trial.probe} {asked}\n{'':17}{result.why[:300]}"


def _headline(hardware: Mapping[str, Any]) -> str:
    gpus = ", ".join(f"{gpu['name']} ({gpu['compute_capability']})" for gpu in hardware["gpus"]) or "no GPU"
    return f"{gpus}; torch {hardware.get('torch', 'unknown')}; {'; '.join(hardware['nvidia-smi']) or 'no nvidia-smi'}"


def _conclusion(results: Sequence[ProbeResult], seconds: float, out: str) -> int:
    count = {
        outcome: sum(result.outcome == outcome for result in results)
        for outcome in sorted({r.outcome for r in results})
    }
    told = ", ".join(f"{number} {outcome}" for outcome, number in count.items())
    print(f"{len(results)} trials in {seconds:.0f} s: {told}; written to {out}")
    if set(count) & {"fail", "crash", "timeout"}:
        return 1
    return 0 if set(count) & {"pass", "watch"} else 3


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", default="record.json", help="the record's file")
    parser.add_argument("--limit", type=float, default=300.0, help="seconds in all")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--python", default=sys.executable, help="the interpreter whose torch is tried")
    parser.add_argument("--only", default="", help="probes whose name holds these words")
    options = parser.parse_args()
    options.python = os.path.abspath(shutil.which(options.python) or options.python)
    return options


if __name__ == "__main__":
    sys.exit(main())
