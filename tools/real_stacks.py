"""Build real stacks that are known to be bad and their good neighbours, and let compatcheck judge both.

Run: python tools/real_stacks.py [--only WORDS] [--folder KEPT] [--out record.json] [--write]
Needs uv, the package index and some GiB of disk; UV_FIND_LINKS and the like are passed on to uv.
For each pair the finding has to be confirmed on the bad stack and absent or refuted on the good one, and
so has the probe alone. Prints a table; leaves with status 1 where a stack was judged otherwise.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

PYTHON = "3.11"
LLAMA = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 512,
    "max_position_embeddings": 256,
    "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0,
    "torch_dtype": "float32",
}
COMMON = ("torch==2.13.0", "numpy<2")


class Pair(NamedTuple):
    """Two stacks, the finding that tells them apart, and the training that meets it.

    ``files`` lie in the project's folder beside a small Llama's config.json. ``neighbour`` is what the finding
    may be on the good stack. ``seconds`` limits one command.
    """

    name: str
    finding: str
    probe: str
    bad: tuple[str, ...]
    good: tuple[str, ...]
    files: Mapping[str, str]
    assumed: tuple[str, ...] = ()
    neighbour: tuple[str, ...] = ("absent", "refuted")
    request: Mapping[str, Any] = {}
    seconds: float = 600.0


TRAINER = (
    "python train.py --model_name_or_path model --per_device_train_batch_size 2 --gradient_accumulation_steps 4 "
    "--output_dir out"
)
ZERO_2 = json.dumps({"zero_optimization": {"stage": 2}, "gradient_accumulation_steps": 4, "bf16": {"enabled": False}})
PAIRS = (
    Pair(
        "accumulation multiplies the update",
        "CC-2024-0040",
        "gradient_accumulation",
        (*COMMON, "transformers==4.48.0", "accelerate==1.2.1"),
        (*COMMON, "transformers==4.48.1", "accelerate==1.2.1"),
        {"train.sh": TRAINER},
    ),
    Pair(
        "left padding under sdpa",
        "CC-2026-0007",
        "micro_training",
        (*COMMON, "transformers==4.48.0", "accelerate==1.2.1"),
        (*COMMON, "transformers==4.53.0", "accelerate==1.8.1"),
        {"train.sh": TRAINER + " --attn_implementation sdpa"},
        ("training.padding_side=left", "training.attention=sdpa"),
        request={"label_first_token": True, "device": "cpu"},
    ),
    Pair(
        "adapters in float16",
        "CC-2024-0041",
        "low_precision_trainables",
        (*COMMON, "transformers==4.44.2", "accelerate==0.33.0", "peft==0.10.0"),
        (*COMMON, "transformers==4.44.2", "accelerate==0.33.0", "peft==0.12.0"),
        {
            "train.sh": TRAINER
            + " --use_peft --lora_r 8 --torch_dtype float16 --fp16 --load_in_4bit False --load_in_8bit False"
        },
        request={"dtype": "float16"},
    ),
    Pair(
        "ZeRO-2 keeps the last micro-batch alone",
        "CC-2025-0025",
        "zero_backward_passes",
        (*COMMON, "transformers==4.48.1", "accelerate==1.2.1", "deepspeed==0.17.6", "setuptools<80"),
        (*COMMON, "transformers==4.48.1", "accelerate==1.2.1", "deepspeed==0.18.6", "setuptools<80"),
        {
            "train.sh": TRAINER.replace("python", "deepspeed --num_gpus 2", 1) + " --deepspeed zero2.json",
            "zero2.json": ZERO_2,
        },
        request={"stages": [2], "ways": ["managed", "boundary"]},
    ),
)


class Judged(NamedTuple):
    """What came of one stack: the finding's status, or absent; the probe's outcome by itself; seconds of either."""

    status: str
    outcome: str
    seconds: float
    probe_seconds: float
    why: str


def main() -> int:
    options = _options()
    lines, right = [], True
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(options.folder or temporary)
        for pair in PAIRS:
            if options.only in pair.name or options.only in pair.finding:
                lines += judge_pair(pair, folder)
    print("\n" + table(lines))
    if options.write:
        from probe_notes import README, replace_part

        replace_part(README, "real stacks", table(lines, timed=False))
    if options.out:
        Path(options.out).write_text(json.dumps(record(lines), indent=2) + "\n", encoding="utf-8")
    right = all(as_known(pair, kind, judged) for pair, kind, judged in lines)
    return int(not right)


def judge_pair(pair: Pair, folder: Path) -> list[tuple[Pair, str, Judged]]:
    lines = []
    for kind, requirements in (("bad", pair.bad), ("good", pair.good)):
        judged = judge_stack(pair, requirements, folder)
        lines.append((pair, kind, judged))
        print(f"{kind}: {pair.name}: {judged.status}, probe {judged.outcome}: {judged.why}", flush=True)
    return lines


def judge_stack(pair: Pair, requirements: Sequence[str], folder: Path) -> Judged:
    """Build the stack, check the project in it, and run the probe by itself."""
    python = built(requirements, folder)
    with tempfile.TemporaryDirectory() as project:
        (Path(project) / "model").mkdir()
        (Path(project) / "model" / "config.json").write_text(json.dumps(LLAMA), encoding="utf-8")
        for name, text in pair.files.items():
            (Path(project) / name).write_text(text, encoding="utf-8")
        assumed = [f"--assume={fact}" for fact in pair.assumed]
        common = ["--python", str(python), "--format", "json"]
        files = [*pair.files, "model"]
        check, seconds = compatcheck("check", *files, *common, "--fresh", *assumed, cwd=project, limit=pair.seconds)
        asked = ["--request", json.dumps(pair.request)]
        probe, probe_seconds = compatcheck(
            "probe", pair.probe, *common, "--fresh", *asked, cwd=project, limit=pair.seconds
        )
    found = next((finding for finding in check["findings"] if finding["id"] == pair.finding), None)
    alone = probe["probes"][0]
    status = found["status"] if found else "absent"
    return Judged(status, alone["outcome"], seconds, probe_seconds, alone["why"])


def as_known(pair: Pair, kind: str, judged: Judged) -> bool:
    if kind == "bad":
        return (judged.status, judged.outcome) == ("confirmed", "fail")
    return judged.status in pair.neighbour and judged.outcome in ("pass", "watch")


def built(requirements: Sequence[str], folder: Path) -> Path:
    """The interpreter of a virtual environment with these requirements, built once per folder."""
    name = hashlib.sha256(" ".join(requirements).encode()).hexdigest()[:12]
    python = folder / name / "bin" / "python"
    if not python.exists():
        uv("venv", "--python", PYTHON, str(folder / name))
        uv("pip", "install", "--python", str(python), *requirements)
    return python


def uv(*arguments: str) -> None:
    from uv import find_uv_bin

    done = subprocess.run([find_uv_bin(), *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"uv {' '.join(arguments)}: {done.stderr}")


def compatcheck(*arguments: str, cwd: str, limit: float) -> tuple[dict[str, Any], float]:
    """What a verb prints as JSON, and the seconds it took."""
    started = time.monotonic()
    environ = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV")}
    command = [sys.executable, "-m", "compatcheck", *arguments]
    done = subprocess.run(command, cwd=cwd, env=environ, capture_output=True, text=True, check=False, timeout=limit)
    if not done.stdout.startswith("{"):
        raise SystemExit(f"compatcheck {' '.join(arguments)}: status {done.returncode}: {done.stderr[-2000:]}")
    return json.loads(done.stdout), time.monotonic() - started


def table(lines: Sequence[tuple[Pair, str, Judged]], timed: bool = True) -> str:
    """Markdown; ``timed``: with the seconds of both commands."""
    rows = [["defect", "stack", "finding", "status", "probe", "outcome", *(["check s", "probe s"] if timed else [])]]
    rows.append(["---"] * len(rows[0]))
    for pair, kind, judged in lines:
        seconds = [f"{judged.seconds:.0f}", f"{judged.probe_seconds:.0f}"] if timed else []
        what = [pair.finding, judged.status, f"`{pair.probe}`", judged.outcome]
        rows.append([pair.name, told(pair, kind), *what, *seconds])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def told(pair: Pair, kind: str) -> str:
    """The requirements in which the two stacks differ."""
    mine, other = (pair.bad, pair.good) if kind == "bad" else (pair.good, pair.bad)
    return ", ".join(each for each in mine if each not in other)


def record(lines: Sequence[tuple[Pair, str, Judged]]) -> dict[str, Any]:
    stacks = [
        {"defect": pair.name, "requirements": list(getattr(pair, kind)), "finding": pair.finding, **judged._asdict()}
        for pair, kind, judged in lines
    ]
    return {"date": time.strftime("%Y-%m-%d"), "command": "python tools/real_stacks.py", "stacks": stacks}


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="pairs whose name or finding holds these words")
    parser.add_argument("--folder", help="keep the stacks there, and use those that are")
    parser.add_argument("--write", action="store_true", help="put the table into the README of the probes")
    parser.add_argument("--out", help="write a record there")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
