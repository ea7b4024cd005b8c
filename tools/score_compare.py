"""What `compare` makes of pairs of stacks whose difference is known, and of pairs that have none.

    python -m tools.score_compare                 every pair without a result in the record, one by one, and the sums
    python -m tools.score_compare --only NAME     the pairs whose name holds this, whether recorded or not
    python -m tools.score_compare --sums          the sums of the record, without a run

A known pair counts where the package and the release are the ones that its source names; a harmless pair where no
difference is found. Needs uv, the package index and some GiB of disk. Each pair is written to the record as it ends:
seconds by the clock, and of the processor, which do not depend on what else the machine does.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

RECORD = Path(__file__).with_name("score_compare.json")
_SMALL: dict[str, Any] = {
    "hidden_size": 128,
    "intermediate_size": 256,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "vocab_size": 512,
    "max_position_embeddings": 2048,
}
_GPT: dict[str, Any] = {"n_embd": 128, "n_layer": 2, "n_head": 4, "n_positions": 128, "vocab_size": 512}
MODELS: Mapping[str, dict[str, Any]] = {
    "opt": {**_SMALL, "model_type": "opt", "ffn_dim": 256, "word_embed_proj_dim": 128},
    "phi": {**_SMALL, "model_type": "phi"},
    "gemma2": {**_SMALL, "model_type": "gemma2", "head_dim": 32, "query_pre_attn_scalar": 32, "sliding_window": 8},
    "mistral": {**_SMALL, "model_type": "mistral", "num_key_value_heads": 2, "sliding_window": 8},
    "gpt_bigcode": {**_GPT, "model_type": "gpt_bigcode"},
    "doge": {**_SMALL, "model_type": "doge", "num_key_value_heads": 2},
    "llama": {**_SMALL, "model_type": "llama", "num_key_value_heads": 2},
}


class Pair(NamedTuple):
    """Two stacks; ``expected`` is the package and the release that changes the result, None where nothing does.

    ``entry`` is the matrix entry or the page that says so, ``model`` a key of MODELS, empty for the standard models.
    """

    name: str
    old: tuple[str, ...]
    new: tuple[str, ...]
    expected: tuple[str, str] | None = None
    entry: str = ""
    model: str = ""


def _stack(transformers: str, accelerate: str, *others: str) -> tuple[str, ...]:
    torch = () if any(each.startswith("torch==") for each in others) else ("torch==2.13.0",)
    return (*torch, f"transformers=={transformers}", f"accelerate=={accelerate}", *others)


_PEFT = "peft==0.17.1"
PAIRS = (
    Pair("opt-scale", _stack("4.51.3", "1.6.0"), _stack("4.52.3", "1.7.0"), ("transformers", "4.52.1"),
         "CC-2025-1065", "opt"),
    Pair("phi-bias", _stack("4.47.1", "1.2.0"), _stack("4.48.0", "1.2.1"), ("transformers", "4.48.0"),
         "CC-2025-1258", "phi"),
    Pair("lora-dtype", _stack("4.44.2", "0.33.0", "peft==0.11.1"), _stack("4.44.2", "0.34.2", "peft==0.13.2"),
         ("peft", "0.12.0"), "CC-2024-0041", "llama"),
    Pair("token-weighted-accumulation", _stack("4.45.2", "1.0.1"), _stack("4.46.3", "1.1.1"),
         ("transformers", "4.46.1"), "https://github.com/huggingface/transformers/pull/34191"),
    Pair("bigcode-attention", _stack("4.53.3", "1.9.0"), _stack("4.55.0", "1.10.0"), ("transformers", "4.54.0"),
         "CC-2025-1432", "gpt_bigcode"),
    Pair("accumulation-in-5", _stack("5.1.0", "1.12.0"), _stack("5.3.0", "1.13.0"), ("transformers", "5.2.0"),
         "CC-2026-1236", "llama"),
    Pair("doge-mask", _stack("5.16.0", "1.14.0"), _stack("5.18.0", "1.15.0"), ("transformers", "5.18.0"),
         "CC-2026-1784", "doge"),
    Pair("padding-free-borders", _stack("4.56.2", "1.10.1", "trl==0.23.0"), _stack("4.56.2", "1.11.0", "trl==0.24.0"),
         ("trl", "0.23.1"), "CC-2025-0051", "llama"),
    Pair("autocast-positions", _stack("4.38.1", "0.27.0", "numpy<2"), _stack("4.38.2", "0.27.2", "numpy<2"),
         ("transformers", "4.38.2"), "CC-2024-0070", "llama"),
    Pair("gemma2-first", _stack("4.42.2", "0.31.0", "numpy<2"), _stack("4.42.4", "0.32.1", "numpy<2"),
         ("transformers", "4.42.3"), "CC-2024-1259", "gemma2"),
    Pair("sliding-window", _stack("4.39.3", "0.28.0", "numpy<2"), _stack("4.40.2", "0.30.1", "numpy<2"),
         ("transformers", "4.40.0"), "CC-2026-0101", "mistral"),
    Pair("harmless-4.49", _stack("4.49.0", "1.4.0"), _stack("4.50.3", "1.5.2")),
    Pair("harmless-4.56", _stack("4.56.1", "1.10.0", "numpy==2.1.3"), _stack("4.56.2", "1.10.1", "numpy==2.3.3")),
    Pair("harmless-peft", _stack("4.52.4", "1.7.0", "peft==0.15.2"), _stack("4.52.4", "1.8.1", "peft==0.16.0")),
    Pair("harmless-4.44", _stack("4.44.0", "0.33.0"), _stack("4.44.2", "0.34.2")),
    Pair("harmless-accelerate", _stack("4.55.4", "1.8.1"), _stack("4.55.4", "1.12.0")),
    Pair("harmless-4.51", _stack("4.51.0", "1.6.0"), _stack("4.51.3", "1.6.0", "safetensors==0.6.2")),
    Pair("harmless-4.53", _stack("4.53.2", "1.8.1"), _stack("4.53.3", "1.9.0", "tokenizers==0.21.4")),
    Pair("harmless-4.57", _stack("4.57.0", "1.11.0"), _stack("4.57.1", "1.11.0")),
    Pair("harmless-4.48", _stack("4.48.1", "1.3.0"), _stack("4.48.3", "1.3.0", "numpy==2.2.6")),
    Pair("harmless-5.6", _stack("5.6.0", "1.13.0"), _stack("5.7.0", "1.14.0")),
)  # fmt: skip


def main() -> int:
    """Run what is asked, and print the sums."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", metavar="NAME", help="run the pairs whose name holds this")
    parser.add_argument("--sums", action="store_true", help="run nothing")
    parser.add_argument("--record", type=Path, default=RECORD, metavar="FILE", help="default: the committed record")
    asked = parser.parse_args()
    record: dict[str, Any] = json.loads(asked.record.read_text("utf-8")) if asked.record.exists() else {}
    for pair in () if asked.sums else PAIRS:
        if asked.only in pair.name and (asked.only or "error" in record.get(pair.name, {"error": ""})):
            record[pair.name] = _run(pair)
            asked.record.write_text(json.dumps(record, indent=1, sort_keys=True) + "\n", "utf-8")
            print(_line(pair, record[pair.name]), flush=True)
    return _print_sums(record)


def _run(pair: Pair) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "compatcheck", "compare", f"{folder}/old.txt", f"{folder}/new.txt"]
        command += ["--format", "json"]
        for name, stack in (("old.txt", pair.old), ("new.txt", pair.new)):
            Path(folder, name).write_text("\n".join(stack) + "\n", "utf-8")
        if pair.model:
            Path(folder, "config.json").write_text(json.dumps(MODELS[pair.model]), "utf-8")
            command += ["--model", f"{folder}/config.json"]
        started, before = time.monotonic(), _processor()
        done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
        seconds, processor = time.monotonic() - started, _processor() - before
    if not done.stdout.startswith("{"):
        return {
            "error": done.stderr.strip().rpartition("\n")[2][:300],
            "status": done.returncode,
            "seconds": round(seconds),
        }
    found = json.loads(done.stdout)
    first = found["differences"][0] if found["differences"] else None
    return {
        "status": done.returncode,
        "cases": found["cases"],
        "skipped": found["skipped"],
        "cause": [found["cause"]["package"], found["cause"]["first"]] if found["cause"] else None,
        "unexplained": found["unexplained"],
        "first": first and {key: first[key] for key in ("case", "what", "name", "step", "old", "new", "theta")},
        "different": len(found["differences"]),
        "trials": [{key: each[key] for key in ("moved", "like_new", "why")} for each in found["trials"]],
        "seconds": round(seconds),
        "processor_seconds": round(processor),
    }


def _processor() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _is_right(pair: Pair, got: Mapping[str, Any]) -> bool:
    if pair.expected is None:
        return got["status"] == 0
    return got.get("cause") == list(pair.expected)


def _line(pair: Pair, got: Mapping[str, Any]) -> str:
    verdict = "right" if _is_right(pair, got) else "WRONG"
    named = (
        " ".join(got.get("cause") or ()) or got.get("error") or ("no difference" if got["status"] == 0 else "no cause")
    )
    spent = f"{got['seconds']} s, {got.get('processor_seconds', 0)} s of processor"
    return f"{verdict:<6}{pair.name:<30}{named:<28} {len(got.get('trials', ()))} built  {spent}"


def _print_sums(record: Mapping[str, Any]) -> int:
    for pair in PAIRS:
        if pair.name in record:
            print(_line(pair, record[pair.name]))
    for label, pairs in _groups():
        ran = [pair for pair in pairs if pair.name in record]
        right = sum(_is_right(pair, record[pair.name]) for pair in ran)
        spent = sorted(record[pair.name].get("processor_seconds", 0) for pair in ran)
        most = f", {spent[len(spent) // 2]} s of processor in the median, {spent[-1]} s at most" if spent else ""
        print(f"{label}: {right} of {len(ran)} right, {len(pairs) - len(ran)} not run{most}")
    return 0


def _groups() -> Sequence[tuple[str, list[Pair]]]:
    return (
        ("known", [pair for pair in PAIRS if pair.expected is not None]),
        ("harmless", [pair for pair in PAIRS if pair.expected is None]),
    )


if __name__ == "__main__":
    sys.exit(main())
