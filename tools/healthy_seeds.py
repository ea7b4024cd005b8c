"""Run the numeric probes over many seeds on a stack that is known to be healthy: none may convict.

Run: python tools/healthy_seeds.py [--seeds 100] [--python PATH] [--probes NAME,NAME] [--limit SECONDS] [--write]
One process of the target's interpreter measures and judges, seed by seed, so that a time limit cuts all
probes alike. Prints convictions, and theta and rho of the worst judged row of each probe and dtype; --write puts
the table into compatcheck/probes/README.md under the torch it was measured with.
Leaves with status 1 where a probe convicted or raised.
"""

from __future__ import annotations

import argparse
import importlib
import json
import math
import os
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PROBES = ROOT / "compatcheck" / "probes"
OPERATORS = (
    *("matmul", "attention_masked", "softmax", "layer_norm", "rms_norm", "cross_entropy", "embedding_backward"),
    *("reduction", "adamw", "gradient_clipping", "rotary_embedding", "bitwise_repeat"),
)
MODELS = (
    *("quantized_linear", "optimizer_8bit", "packed_sequences", "gradient_checkpointing", "save_reload"),
    *("memory_growth", "micro_training"),
)


def main() -> int:
    options = _options()
    if options.child:
        return _child(json.loads(options.child))
    order = {"probes": options.probes.split(","), "seeds": options.seeds, "limit": options.limit}
    command = [options.python, "-B", str(Path(__file__).resolve()), "--child", json.dumps(order)]
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        environ = {**os.environ, "OMP_NUM_THREADS": "1", "TMPDIR": folder, "HF_HUB_OFFLINE": "1"}
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environ, cwd=folder
        )
        assert process.stdout is not None
        for text in process.stdout:
            if text.startswith("{"):
                lines.append(json.loads(text))
                if lines[-1].get("outcome") in ("fail", "raised"):
                    print(f"{lines[-1]['probe']}, seed {lines[-1]['seed']}: {lines[-1]['why']}", flush=True)
        process.wait()
    versions = next((line["versions"] for line in lines if "versions" in line), {})
    told = table([line for line in lines if "outcome" in line])
    print(", ".join(f"{name} {version}" for name, version in versions.items()) + "\n\n" + told)
    if options.out:
        Path(options.out).write_text(json.dumps({"versions": versions, "lines": lines}), encoding="utf-8")
    if options.write:
        from probe_notes import README, replace_part

        release = versions["torch"].split("+")[0]
        heading = ", ".join(f"{name} {version}" for name, version in versions.items())
        replace_part(README, f"healthy {release}", f"{heading}\n\n{told}")
    return int(process.returncode != 0 or any(line.get("outcome") in ("fail", "raised") for line in lines))


def table(lines: list[dict]) -> str:
    """Markdown: a line for each probe and dtype."""
    rows = [
        "| probe | seeds | failures | watched | in float32: theta, rho | in bfloat16 |",
        "|---|---|---|---|---|---|",
    ]
    for probe in dict.fromkeys(line["probe"] for line in lines):
        mine = [line for line in lines if line["probe"] == probe]
        ran = [line for line in mine if line["outcome"] != "skip"]
        if not ran:
            rows.append(f"| `{probe}` | 0 | | | {mine[0]['why'][:100]} | |")
            continue
        count = {word: sum(line["outcome"] in words for line in ran) for word, words in COUNTED.items()}
        figures = [worst(ran, dtype) for dtype in ("float32", "bfloat16")]
        rows.append(f"| `{probe}` | {len(ran)} | {count['fail']} | {count['watch']} | {figures[0]} | {figures[1]} |")
    return "\n".join(rows)


COUNTED = {"fail": ("fail", "raised"), "watch": ("watch",)}


def worst(lines: list[dict], dtype: str) -> str:
    """The largest theta and the largest rho of judged rows over all seeds."""
    found = [line["errors"][dtype] for line in lines if dtype in line.get("errors", {})]
    return ", ".join(f"{max(float(pair[place]) for pair in found):.2g}" for place in (0, 1)) if found else ""


def _child(order: dict) -> int:
    """Measure in this interpreter, which holds torch and need not hold anything of ours; Python 3.8+."""
    sys.path[:] = [entry for entry in sys.path if Path(entry or os.curdir).resolve() != ROOT / "tools"]
    sys.path.insert(0, str(PROBES))
    machinery = importlib.import_module("_child")
    machinery._stand_alone()
    warnings.simplefilter("ignore")
    told, sys.stdout = sys.stdout, open(os.devnull, "w")  # noqa: SIM115 - libraries under test print
    units = {}
    for path in sorted(PROBES.glob("[!_]*/[!_]*.py")):
        if path.stem in order["probes"]:
            units[path.stem] = machinery._load("compatcheck_" + path.stem, str(path))

    def tell(**line: object) -> None:
        told.write(json.dumps(machinery._plain(line)) + "\n")
        told.flush()

    deadline = time.monotonic() + order["limit"]
    for seed in range(order["seeds"]):
        for name in list(units):
            if time.monotonic() > deadline:
                return 0
            line = _one(machinery, units[name], name, seed)
            if line["outcome"] == "skip":
                units.pop(name)
            tell(**line)
        if seed == 0:
            tell(versions={k: v for k, v in machinery._installed_versions().items() if k in ("torch", "transformers")})
    return 0


def _one(machinery, unit, name: str, seed: int) -> dict:  # type: ignore[no-untyped-def]
    line = {"probe": name, "seed": seed}
    try:
        for package, specifier in unit.NEEDS.items():
            if not machinery._satisfies(str(getattr(importlib.import_module(package), "__version__", "0")), specifier):
                return {**line, "outcome": "skip", "why": package + " is outside " + specifier}
    except ImportError as error:
        return {**line, "outcome": "skip", "why": str(error)}
    request = {"seed": seed, "device": "cpu", **REQUESTS.get(name, {})}
    try:
        measured = unit.measure(request, lambda stage: None)
        if hasattr(measured, "send"):
            measured = _drained(measured)
        measured = json.loads(json.dumps(machinery._plain(measured)))
        sys.modules["compatcheck"].__path__ = [str(PROBES.parent)]  # judging belongs to the parent, which has all of it
        outcome, why = unit.judge(measured)
    except Exception as error:  # noqa: BLE001 - a probe that raises on a healthy stack is what this looks for
        return {**line, "outcome": "raised", "why": type(error).__name__ + ": " + str(error)[:300]}
    return {**line, "outcome": outcome, "why": why, "errors": _errors(measured.get("rows", ()))}


REQUESTS: dict = {"micro_training": {"batch_sizes": [1, 2]}}


def _drained(rows) -> dict:  # type: ignore[no-untyped-def]
    collected = []
    while True:
        try:
            collected.append(next(rows))
        except StopIteration as end:
            return {"rows": collected, **(end.value or {})}


def _errors(rows) -> dict:  # type: ignore[no-untyped-def]
    """The largest theta and rho of judged rows by dtype."""
    errors: dict = {}
    for row in rows:
        if "recorded" in row or "by_design" in row or row.get("control") or "theta" not in row:
            continue
        mine = errors.setdefault(str(row.get("dtype", "float32")), [0.0, 0.0])
        for place, key in enumerate(("theta", "rho")):
            value = float(row.get(key, 0.0))
            mine[place] = math.inf if value != value else max(mine[place], value)
    return errors


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--probes", default=",".join(OPERATORS + MODELS))
    parser.add_argument("--limit", type=float, default=math.inf, help="seconds")
    parser.add_argument("--out", help="write every seed's outcome there, as JSON")
    parser.add_argument("--write", action="store_true", help="put the table into the README of the probes")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
