"""Stacks as a fresh install gave them on a day of the past, and mixtures of several days.

``uv pip install --exclude-newer DATE`` sees the package index as it stood on that day.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from uv import find_uv_bin

STACK = ("transformers", "peft", "accelerate", "trl", "datasets", "deepspeed", "bitsandbytes", "sentencepiece")


class Recipe(NamedTuple):
    """How one stack is installed: each requirement as the index stood on a date, after torch of its own version."""

    torch: str
    until: str
    requirements: tuple[str, ...]


def _only(torch: str, until: str, *requirements: str) -> Recipe:
    return Recipe(torch, until, requirements)


def _fresh(torch: str, until: str, *more: str) -> Recipe:
    return Recipe(torch, until, (*STACK, *more))


def _mixed(torch: str, until: str, *pins: str) -> Recipe:
    pinned = {pin.partition("=")[0].partition("<")[0].partition(">")[0] for pin in pins}
    return Recipe(torch, until, (*pins, *(name for name in STACK if name not in pinned)))


RECIPES: dict[str, Recipe] = {
    "fresh-2023-06": _fresh("2.0.1", "2023-06-15"),
    "fresh-2023-09": _fresh("2.0.1", "2023-09-20"),
    "fresh-2023-12": _fresh("2.0.1", "2023-12-20"),
    "fresh-2024-03": _fresh("2.2.2", "2024-03-30"),
    "fresh-2024-06": _fresh("2.2.2", "2024-06-15", "numpy<2"),
    "fresh-2024-06-20": _fresh("2.3.1", "2024-06-21"),
    "fresh-2024-09": _fresh("2.4.1", "2024-09-15"),
    "fresh-2024-12": _fresh("2.4.1", "2024-12-20"),
    "fresh-2025-03": _fresh("2.6.0", "2025-03-20"),
    "fresh-2025-06": _fresh("2.6.0", "2025-06-20"),
    "fresh-2025-10": _fresh("2.8.0", "2025-10-20"),
    "fresh-2026-02": _fresh("2.8.0", "2026-02-15"),
    "fresh-2026-06": _fresh("2.8.0", "2026-06-15"),
    "fresh-2026-10": _fresh("2.13.0", "2026-10-30"),
    "mixed-trl-0.7.4": _mixed("2.4.1", "2024-12-20", "trl==0.7.4", "transformers==4.40.2"),
    "mixed-peft-0.15": _mixed("2.4.1", "2025-06-01", "peft==0.15.2", "accelerate==0.26.1", "transformers==4.37.2"),
    "mixed-transformers-4.30": _mixed("2.0.1", "2024-09-01", "transformers==4.30.2"),
    "mixed-deepspeed-0.14.3": _mixed("2.4.1", "2024-09-15", "deepspeed==0.14.3", "numpy==2.0.2"),
    "mixed-bitsandbytes-0.39": _mixed("2.0.1", "2023-12-20", "bitsandbytes==0.39.1"),
    "mixed-trl-0.15": _mixed("2.6.0", "2025-10-01", "trl==0.15.2", "transformers==4.53.3"),
    "mixed-trl-0.9": _mixed("2.4.1", "2025-03-20", "trl==0.9.6", "transformers==4.48.3"),
    "mixed-peft-0.10": _mixed("2.8.0", "2026-06-15", "peft==0.10.0"),
    "mixed-peft-0.17-v5": _mixed("2.8.0", "2026-06-15", "peft==0.13.2", "trl==0.13.0"),
    "mixed-torch-2.0-late": _mixed("2.0.1", "2025-06-20", "numpy<2"),
    "mixed-torch-2.2-late": _mixed("2.2.2", "2026-02-15", "numpy<2"),
    "mixed-deepspeed-0.12": _mixed("2.8.0", "2025-10-20", "deepspeed==0.12.6"),
    "mixed-deepspeed-0.10": _mixed("2.4.1", "2024-09-15", "deepspeed==0.10.3", "pydantic<2"),
    "mixed-accelerate-0.21": _mixed("2.4.1", "2024-09-15", "accelerate==0.21.0", "transformers==4.31.0"),
    "mixed-datasets-2.13": _mixed("2.6.0", "2025-03-20", "datasets==2.13.2", "fsspec==2023.9.2"),
    "mixed-datasets-numpy-2": _mixed("2.4.1", "2024-12-20", "datasets==2.14.7", "pyarrow==15.0.2"),
    "mixed-trl-0.4": _mixed("2.2.2", "2024-06-15", "trl==0.4.7", "transformers==4.41.2", "numpy<2"),
    "mixed-trl-0.19": _mixed("2.8.0", "2026-06-15", "trl==0.19.1", "transformers>=5"),
    "mixed-hub-1": _mixed("2.6.0", "2026-06-15", "transformers==4.42.4", "accelerate==0.32.1", "peft==0.11.1"),
    "mixed-setuptools-82": _mixed("2.4.1", "2024-09-15", "deepspeed==0.14.5", "setuptools"),
    "mixed-wide-2026": _mixed("2.13.0", "2026-10-30", "peft==0.14.0", "trl==0.14.0"),
    "mixed-wide-deepspeed": _mixed("2.13.0", "2026-10-30", "deepspeed==0.15.4", "transformers==4.46.3"),
    "mixed-wide-accelerate": _mixed("2.13.0", "2026-10-30", "accelerate==0.30.1", "transformers==4.44.2"),
    "fresh-2026-11": _fresh("2.13.0", "2026-11-27"),
    "mixed-wide-trl": _mixed("2.13.0", "2026-11-27", "trl==0.24.0", "transformers==4.57.6"),
    "mixed-wide-v5": _mixed("2.13.0", "2026-11-27", "transformers==5.2.0", "peft==0.18.1", "accelerate==1.12.0"),
    "held-2023-08": _fresh("2.0.1", "2023-08-05"),
    "held-2023-11": _fresh("2.2.2", "2024-01-25"),
    "held-2024-05": _fresh("2.2.2", "2024-05-10", "numpy<2"),
    "held-2024-08": _fresh("2.4.1", "2024-08-05"),
    "held-2024-11": _fresh("2.4.1", "2024-11-05"),
    "held-2025-01": _fresh("2.4.1", "2025-01-25"),
    "held-2025-05": _fresh("2.6.0", "2025-05-05"),
    "held-2025-08": _fresh("2.6.0", "2025-08-12"),
    "held-2025-12": _fresh("2.8.0", "2025-12-10"),
    "held-2026-04": _fresh("2.8.0", "2026-04-10"),
    "held-2026-08": _fresh("2.8.0", "2026-08-20"),
    "held-trl-0.8-new": _mixed("2.4.1", "2025-05-20", "trl==0.8.6"),
    "held-trl-0.11-v5": _mixed("2.8.0", "2026-04-10", "trl==0.11.4"),
    "held-accelerate-old": _mixed("2.4.1", "2025-08-12", "accelerate==0.27.2", "peft"),
    "held-peft-0.6": _mixed("2.4.1", "2025-01-25", "peft==0.6.2"),
    "held-transformers-4.34": _mixed("2.4.1", "2025-05-20", "transformers==4.34.1", "numpy<2"),
    "held-transformers-4.39": _mixed("2.6.0", "2025-08-12", "transformers==4.39.3", "trl", "peft"),
    "held-llamafactory": _only("2.6.0", "2025-06-20", "llamafactory", "deepspeed", "bitsandbytes"),
    "held-llamafactory-new": _only("2.8.0", "2026-04-10", "llamafactory", "deepspeed"),
    "held-ms-swift": _only("2.6.0", "2025-06-20", "ms-swift", "deepspeed"),
    "held-ms-swift-3.9": _only("2.8.0", "2025-11-10", "ms-swift", "liger-kernel"),
    "held-axolotl": _only("2.6.0", "2025-06-20", "axolotl"),
    "held-others": _only(
        "2.6.0", "2025-07-10", "optimum", "diffusers", "sentence-transformers", "lightning", "pytorch-lightning",
        "timm", "torchvision", "open-clip-torch", "torchtune", "torchao", "evaluate", "liger-kernel", "peft",
    ),
    "held-others-2024": _only(
        "2.2.2", "2024-06-20", "optimum", "diffusers", "sentence-transformers", "lightning", "timm", "torchvision",
        "open-clip-torch", "evaluate", "auto-gptq", "peft", "mmengine", "numpy<2",
    ),
    "held-others-2026": _only(
        "2.8.0", "2026-04-10", "optimum", "diffusers", "sentence-transformers", "lightning", "pytorch-lightning",
        "timm", "torchvision", "open-clip-torch", "evaluate", "liger-kernel", "peft", "torchmetrics", "scikit-learn",
    ),
    "held-unsloth": _only("2.6.0", "2025-06-20", "unsloth"),
    "held-gptqmodel": _only("2.6.0", "2025-06-20", "autoawq", "optimum", "transformers", "peft"),
}  # fmt: skip


def build(name: str, folder: Path, ends: float) -> Path:
    """The interpreter of a stack, installed if it is not there yet; raises where its requirements conflict."""
    recipe, venv = RECIPES[name], folder / name
    python = venv / "bin" / "python"
    if (venv / "built").exists():
        return python
    shutil.rmtree(venv, ignore_errors=True)
    _uv("venv", "-p", "3.11", str(venv), ends=ends)
    _uv("pip", "install", "--python", str(python), f"torch=={recipe.torch}", ends=ends)
    listed = _uv("pip", "list", "--python", str(python), "--format", "json", ends=ends)
    torch = next(each["version"] for each in json.loads(listed) if each["name"] == "torch")
    constraint = venv / "constraint"
    constraint.write_text(f"torch=={torch}\n", encoding="utf-8")
    options = ("--exclude-newer", recipe.until, "--constraint", str(constraint), "--only-binary", "av,vllm")
    requirements = ("numpy", "setuptools", *recipe.requirements)
    _uv("pip", "install", "--python", str(python), *options, *requirements, ends=ends)
    (venv / "built").touch()
    return python


def _uv(*arguments: str, ends: float) -> str:
    done = subprocess.run([find_uv_bin(), *arguments], capture_output=True, text=True, timeout=ends - time.monotonic())
    if done.returncode:
        raise RuntimeError(done.stderr[-1500:])
    return done.stdout


def parser_of(description: str | None) -> argparse.ArgumentParser:
    """The options of a script that builds stacks, one after another."""
    parser = argparse.ArgumentParser(description=(description or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(RECIPES)}")
    parser.add_argument("--folder", type=Path, help="where the environments are built; else a temporary folder")
    parser.add_argument("--keep", action="store_true", help="leave the environments for another run")
    parser.add_argument("--limit", type=float, default=1200, help="seconds for one stack, its installation included")
    return parser


def parsed(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """The options as given, with every stack where none is named, and a folder that is there."""
    options = parser.parse_args()
    unknown = [name for name in options.names if name not in RECIPES]
    if unknown:
        parser.error(f"no stack is called {unknown[0]}")
    options.names = options.names or list(RECIPES)
    options.folder = (options.folder or Path(tempfile.mkdtemp(prefix="stacks-"))).resolve()
    options.folder.mkdir(parents=True, exist_ok=True)
    return options
