"""What is installed in each stack: fresh on a day, mixtures of days, and one package upgraded later."""

from __future__ import annotations

from typing import NamedTuple

from tools.ground_truth._draws import drawn

STACK = ("transformers", "peft", "accelerate", "trl", "datasets", "deepspeed", "bitsandbytes", "sentencepiece")


class Recipe(NamedTuple):
    """How one stack is installed: each requirement as the index stood on a date, after torch of its own version."""

    torch: str
    until: str
    requirements: tuple[str, ...]
    upgraded: str = ""
    """One package that was upgraded later, alone, as ``pip install -U`` does."""
    upgraded_on: str = ""


def _only(torch: str, until: str, *requirements: str) -> Recipe:
    return Recipe(torch, until, requirements)


def _fresh(torch: str, until: str, *more: str) -> Recipe:
    return Recipe(torch, until, (*STACK, *more))


def _mixed(torch: str, until: str, *pins: str) -> Recipe:
    pinned = {pin.partition("=")[0].partition("<")[0].partition(">")[0] for pin in pins}
    return Recipe(torch, until, (*pins, *(name for name in STACK if name not in pinned)))


def _upgraded(torch: str, until: str, package: str, on: str, *requirements: str) -> Recipe:
    return Recipe(torch, until, (*STACK, *requirements), package, on)


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
    # Fresh on a day, with the libraries of one field besides.
    "linked-fresh-2024-04": _fresh("2.2.2", "2024-04-20", "numpy<2", "sentence-transformers", "diffusers", "evaluate"),
    "linked-fresh-2024-07": _fresh("2.2.2", "2024-07-15", "numpy<2", "setfit", "timm", "torchvision"),
    "linked-fresh-2024-08": _fresh("2.4.1", "2024-08-25", "numpy<2", "lightning", "optimum", "torchmetrics"),
    "linked-fresh-2024-10": _fresh("2.4.1", "2024-10-12", "diffusers", "liger-kernel", "tensorboard"),
    "linked-fresh-2025-02": _fresh("2.6.0", "2025-02-25", "sentence-transformers", "FlagEmbedding"),
    "linked-fresh-2025-04": _fresh("2.6.0", "2025-04-18", "diffusers", "optimum", "torchao"),
    "linked-fresh-2025-07": _fresh("2.6.0", "2025-07-20", "sentence-transformers", "setfit", "evaluate"),
    "linked-fresh-2025-09": _fresh("2.8.0", "2025-09-08", "diffusers", "timm", "torchvision", "open-clip-torch"),
    "linked-fresh-2025-11": _fresh("2.8.0", "2025-11-15", "lightning", "optimum", "wandb"),
    "linked-fresh-2026-01": _fresh("2.8.0", "2026-01-16", "sentence-transformers", "diffusers"),
    "linked-fresh-2026-03": _fresh("2.8.0", "2026-03-12", "liger-kernel", "gradio"),
    "linked-fresh-2026-05": _fresh("2.8.0", "2026-05-14", "sentence-transformers", "evaluate", "torchao"),
    "linked-fresh-2026-07": _fresh("2.8.0", "2026-07-18", "lightning", "torchmetrics", "timm", "torchvision"),
    "linked-fresh-2026-09": _fresh("2.13.0", "2026-09-16", "sentence-transformers", "pytorch-lightning"),
    "linked-fresh-2026-11": _fresh("2.13.0", "2026-11-20", "diffusers", "timm", "torchvision", "optimum"),
    # One package was upgraded in an older environment.
    "linked-upgrade-peft": _upgraded("2.2.2", "2024-03-25", "peft", "2025-08-01", "numpy<2"),
    "linked-upgrade-peft-2026": _upgraded("2.6.0", "2025-03-05", "peft", "2026-11-20"),
    "linked-upgrade-trl": _upgraded("2.2.2", "2024-06-10", "trl", "2025-02-01", "numpy<2"),
    "linked-upgrade-trl-2026": _upgraded("2.6.0", "2025-06-01", "trl", "2026-11-20"),
    "linked-upgrade-transformers-2023": _upgraded(
        "2.2.2", "2023-11-10", "transformers", "2024-12-20", "numpy<2", "scipy",
    ),
    "linked-upgrade-transformers-2024": _upgraded("2.4.1", "2024-05-20", "transformers", "2025-09-01", "numpy<2"),
    "linked-upgrade-transformers-5": _upgraded("2.6.0", "2025-03-15", "transformers", "2026-11-20", "diffusers"),
    "linked-upgrade-accelerate": _upgraded("2.2.2", "2023-10-20", "accelerate", "2026-01-15", "numpy<2", "scipy"),
    "linked-upgrade-hub": _upgraded(
        "2.2.2", "2024-02-10", "huggingface-hub", "2025-09-01", "numpy<2", "diffusers", "sentence-transformers",
    ),
    "linked-upgrade-datasets": _upgraded(
        "2.2.2", "2023-10-20", "datasets", "2025-09-01", "numpy<2", "scipy", "evaluate",
    ),
    "linked-upgrade-pyarrow": _upgraded("2.2.2", "2023-12-15", "pyarrow", "2025-09-01", "numpy<2"),
    "linked-upgrade-numpy": _upgraded("2.4.1", "2024-04-25", "numpy", "2025-09-01", "numpy<2", "sentence-transformers"),
    "linked-upgrade-setuptools": _upgraded(
        "2.4.1", "2024-02-20", "setuptools", "2026-11-20", "numpy<2", "pytorch-lightning<2", "tensorboard", "wandb",
    ),
    "linked-upgrade-fsspec": _upgraded("2.2.2", "2023-09-10", "fsspec", "2025-09-01", "numpy<2", "scipy"),
    # An old project holds one or two packages; the rest is of a later day.
    "linked-trl-0.7": _mixed("2.6.0", "2025-11-01", "trl==0.7.11"),
    "linked-trl-0.12-v5": _mixed("2.8.0", "2026-11-20", "trl==0.12.2"),
    "linked-trl-0.16-v5": _mixed("2.8.0", "2026-11-20", "trl==0.16.1"),
    "linked-trl-0.21-v5": _mixed("2.8.0", "2026-11-20", "trl==0.21.0"),
    "linked-trl-0.24-v5": _mixed("2.13.0", "2026-11-20", "trl==0.24.0", "transformers>=5"),
    "linked-peft-0.4": _mixed("2.6.0", "2025-11-01", "peft==0.4.0"),
    "linked-peft-0.8-v5": _mixed("2.8.0", "2026-11-20", "peft==0.8.2"),
    "linked-peft-0.15-v5": _mixed("2.8.0", "2026-11-20", "peft==0.15.2"),
    "linked-accelerate-0.34-v5": _mixed("2.8.0", "2026-11-20", "accelerate==0.34.2"),
    "linked-transformers-4.28": _mixed("2.4.1", "2025-03-10", "transformers==4.28.1", "numpy<2"),
    "linked-transformers-4.36": _mixed("2.4.1", "2025-10-10", "transformers==4.36.2", "numpy<2"),
    "linked-transformers-4.41": _mixed("2.8.0", "2026-11-20", "transformers==4.41.2", "numpy<2"),
    "linked-transformers-4.51": _mixed("2.8.0", "2026-11-20", "transformers==4.51.3"),
    "linked-deepspeed-0.9": _mixed("2.4.1", "2025-05-10", "deepspeed==0.9.5", "pydantic<2"),
    "linked-deepspeed-0.13": _mixed("2.4.1", "2025-11-01", "deepspeed==0.13.5"),
    "linked-bitsandbytes-0.41": _mixed("2.8.0", "2025-11-01", "bitsandbytes==0.41.3.post2"),
    "linked-datasets-2.10": _mixed("2.6.0", "2025-11-01", "datasets==2.10.1", "evaluate"),
    "linked-st-2.2": _only("2.6.0", "2026-11-20", "sentence-transformers==2.2.2"),
    "linked-st-3.4-old": _only(
        "2.4.1", "2025-03-01", "sentence-transformers", "transformers==4.41.2", "accelerate==0.26.1",
        "datasets==2.14.7",
    ),
    "linked-setfit-1.0": _only("2.6.0", "2025-11-01", "setfit==1.0.3", "sentence-transformers", "datasets"),
    "linked-setfit-1.1-v5": _only("2.8.0", "2026-11-20", "setfit==1.1.2", "sentence-transformers", "transformers>=5"),
    "linked-flagembedding-1.2": _only("2.6.0", "2025-11-01", "FlagEmbedding==1.2.11", "peft", "transformers"),
    "linked-flagembedding-1.3-v5": _only("2.8.0", "2026-11-20", "FlagEmbedding==1.3.4", "peft", "transformers>=5"),
    "linked-diffusers-0.25": _only("2.6.0", "2026-11-20", "diffusers==0.25.1", "transformers", "accelerate", "peft"),
    "linked-diffusers-0.30-v5": _only("2.8.0", "2026-11-20", "diffusers==0.30.3", "transformers>=5", "accelerate"),
    "linked-optimum-1.17": _only("2.6.0", "2026-11-20", "optimum==1.17.1", "transformers", "accelerate"),
    "linked-auto-gptq": _only(
        "2.4.1", "2025-11-01", "auto-gptq==0.7.1", "optimum==1.23.3", "transformers", "peft", "accelerate",
    ),
    "linked-autoawq": _only("2.4.1", "2025-11-01", "autoawq==0.2.5", "transformers", "peft", "accelerate"),
    "linked-lightning-1.9": _only("2.8.0", "2026-11-20", "pytorch-lightning==1.9.5", "torchmetrics", "tensorboard"),
    "linked-lightning-2.0": _only("2.13.0", "2026-11-20", "lightning==2.0.9", "torchmetrics==0.11.4"),
    "linked-timm-0.4": _only("2.6.0", "2026-11-20", "timm==0.4.12", "torchvision"),
    "linked-timm-0.6": _only("2.8.0", "2026-11-20", "timm==0.6.13", "open-clip-torch==2.20.0", "torchvision"),
    "linked-gradio-4": _only("2.8.0", "2026-11-20", "gradio==4.44.1", "transformers>=5", "accelerate"),
    "linked-torchao-0.6": _only("2.8.0", "2026-11-20", "torchao==0.6.1", "peft", "transformers", "accelerate"),
    "linked-torchtune-0.2": _only("2.6.0", "2025-11-01", "torchtune==0.2.1", "torchao"),
    "linked-liger-0.3-v5": _only("2.8.0", "2026-11-20", "liger-kernel==0.3.1", "transformers>=5", "trl", "peft"),
    "linked-loggers": _only(
        "2.6.0", "2026-11-20", "wandb==0.15.12", "tensorboard==2.12.3", "transformers", "accelerate", "evaluate==0.4.0",
    ),
}  # fmt: skip
RECIPES |= {f"drawn-{seed}": Recipe(*drawn(seed)) for seed in range(1, 61)}
