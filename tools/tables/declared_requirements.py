"""Write matrix/tables/declared-requirements.toml: what releases of training packages demand of each other.

    python tools/tables/declared_requirements.py FOLDER... > TABLE
    python tools/tables/declared_requirements.py --onto FOLDER... > TABLE

The folders hold metadata as `_metadata` reads it. With ``--onto`` what the table holds already stays, and the releases
read now are added; none that neither of the two read is taken to be like its neighbours.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from packaging.version import Version

sys.path.insert(0, str(Path(__file__).parents[2]))

from compatcheck.matrix.compile import read_toml
from tools.tables import _metadata, _toml

TABLE = Path(__file__).parents[2] / "matrix" / "tables" / "declared-requirements.toml"
HISTORY = TABLE.with_name("release-history.toml")

DEMANDING = [
    "accelerate",
    "auto-gptq",
    "autoawq",
    "autoawq-kernels",
    "bitsandbytes",
    "datasets",
    "deepspeed",
    "diffusers",
    "evaluate",
    "liger-kernel",
    "lightning",
    "llamafactory",
    "llmcompressor",
    "lmdeploy",
    "ms-swift",
    "optimum",
    "peft",
    "pytorch-lightning",
    "safetensors",
    "sentence-transformers",
    "setfit",
    "tokenizers",
    "torchmetrics",
    "transformers",
    "trl",
    "unsloth",
    "unsloth-zoo",
    "verl",
    "vllm",
    "xformers",
    "xtuner",
]
"""torchvision, torchaudio and triton have a table of their own."""
DEMANDED = [
    "accelerate",
    "auto-gptq",
    "autoawq",
    "bitsandbytes",
    "datasets",
    "deepspeed",
    "diffusers",
    "huggingface-hub",
    "liger-kernel",
    "numpy",
    "optimum",
    "peft",
    "pyarrow",
    "pydantic",
    "safetensors",
    "tokenizers",
    "torch",
    "torchmetrics",
    "transformers",
    "trl",
    "xformers",
]
TOLD_BY_ENTRIES = {
    "accelerate": ("huggingface-hub",),
    "llamafactory": ("accelerate", "peft", "transformers", "trl"),
    "transformers": ("huggingface-hub", "safetensors", "tokenizers"),
}
"""Checked at start-up: entries tell these with what is printed then, and only ranges in lists are held against them."""
HARMLESS = {("xformers", "0.0.34", "torch")}
"""Its notes say that it loads beside later releases of torch, too."""
_WHAT = """What releases of training packages demand of each other in their metadata, on every platform, without extras:
the first and the last release of a run, and what it demands. A release between two runs was not read. `at_start` holds
in the same form what a package compares when it is imported, which entries tell."""
Runs = Mapping[str, Sequence[Sequence[str]]]


def render(folders: Sequence[Path], kept: Mapping[str, Any] | None = None) -> str:
    """The table as TOML, on top of the one that is given."""
    kept = kept or {}
    declared = _metadata.read(folders)
    parts = [_toml.header(_WHAT, "python tools/tables/declared_requirements.py FOLDER...", _metadata.SOURCES)]
    for package in DEMANDING:
        told = TOLD_BY_ENTRIES.get(package, ())
        others = [other for other in DEMANDED if other not in told]
        rows = _rows(package, others, declared[package], kept.get(package, {}))
        parts += [_toml.section(package, rows)] if rows else []
    for package, told in TOLD_BY_ENTRIES.items():
        rows = _rows(package, told, declared[package], kept.get("at_start", {}).get(package, {}))
        parts += [_toml.section(f"at_start.{package}", rows)] if rows else []
    return "".join(parts)


def _rows(
    package: str, others: Iterable[str], declared: Mapping[Version, Mapping[str, str]], kept: Runs
) -> dict[str, list[_metadata.Run]]:
    rows = {}
    for other in others:
        values = {
            version: "" if (package, str(version), other) in HARMLESS else required.get(other, "")
            for version, required in declared.items()
        }
        values = {**_values(package, kept[other]), **values} if other in kept else values
        if runs := _metadata.runs(values):
            rows[other] = runs
    return rows


def _values(package: str, runs: Sequence[Sequence[str]]) -> dict[Version, str]:
    """What each release of a package demands by the runs of a table; nothing for those that no run encloses."""
    known = {Version(each) for each in read_toml(HISTORY)["releases"].get(package, ())}
    ends = {Version(end) for first, last, _ in runs for end in (first, last)}
    values = dict.fromkeys(known | ends, "")
    for first, last, demand in runs:
        values.update({each: demand for each in values if Version(first) <= each <= Version(last)})
    return values


if __name__ == "__main__":
    onto = sys.argv[1] == "--onto"
    sys.stdout.write(render([Path(folder) for folder in sys.argv[1 + onto :]], read_toml(TABLE) if onto else None))
