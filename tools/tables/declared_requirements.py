"""Write matrix/tables/declared-requirements.toml: what releases of training packages demand of each other.

    python tools/tables/declared_requirements.py FOLDER... > matrix/tables/declared-requirements.toml

The folders hold metadata as `_metadata` reads it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from tools.tables import _metadata, _toml

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
"""Checked at start-up: entries tell these with what is printed then."""
HARMLESS = {("xformers", "0.0.34", "torch")}
"""Its notes say that it loads beside later releases of torch, too."""
_WHAT = """What releases of training packages demand of each other in their metadata, on every platform, without extras:
the first and the last release of a run, and what it demands. A release between two runs was not read."""


def render(folders: Sequence[Path]) -> str:
    """The table as TOML."""
    declared = _metadata.read(folders)
    parts = [_toml.header(_WHAT, "python tools/tables/declared_requirements.py FOLDER...", _metadata.SOURCES)]
    for package in DEMANDING:
        rows = {}
        for other in DEMANDED:
            if other in TOLD_BY_ENTRIES.get(package, ()):
                continue
            of_other = {
                version: "" if (package, str(version), other) in HARMLESS else required.get(other, "")
                for version, required in declared[package].items()
            }
            if runs := _metadata.runs(of_other):
                rows[other] = runs
        parts += [_toml.section(package, rows)] if rows else []
    return "".join(parts)


if __name__ == "__main__":
    sys.stdout.write(render([Path(folder) for folder in sys.argv[1:]]))
