"""What a training run imports: the statements whose failure is worth reporting, by the distribution they need."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from compatcheck.packages.frameworks import frameworks

_STATEMENTS: dict[str, tuple[str, ...]] = {
    "torch": ("import torch",),
    "numpy": ("import numpy",),
    "tokenizers": ("import tokenizers",),
    "safetensors": ("import safetensors",),
    "huggingface-hub": ("import huggingface_hub",),
    "transformers": (
        "import transformers",
        "from transformers import AutoModelForCausalLM, AutoTokenizer",
        "from transformers import Trainer, TrainingArguments",
        "from transformers import LlamaForCausalLM",
        "from transformers import DataCollatorForSeq2Seq",
        "from transformers import BitsAndBytesConfig",
    ),
    "accelerate": ("from accelerate import Accelerator",),
    "peft": ("import peft", "from peft import LoraConfig, get_peft_model"),
    "trl": ("import trl", "from trl import SFTTrainer", "from trl import DPOTrainer"),
    "deepspeed": ("import deepspeed",),
    "datasets": ("import datasets",),
    "evaluate": ("import evaluate",),
    "bitsandbytes": ("import bitsandbytes",),
    "optimum": ("import optimum",),
    "auto-gptq": ("import auto_gptq",),
    "gptqmodel": ("import gptqmodel",),
    "autoawq": ("import awq",),
    "torchvision": ("import torchvision",),
    "torchaudio": ("import torchaudio",),
    "flash-attn": ("import flash_attn",),
    "xformers": ("import xformers.ops",),
    "liger-kernel": ("import liger_kernel.transformers",),
    "sentence-transformers": ("import sentence_transformers",),
    "diffusers": ("import diffusers", "from diffusers import UNet2DConditionModel"),
    "lightning": ("import lightning",),
    "pytorch-lightning": ("import pytorch_lightning",),
    "torchmetrics": ("import torchmetrics",),
    "timm": ("import timm",),
    "open-clip-torch": ("import open_clip",),
    "mmengine": ("import mmengine",),
    "vllm": ("import vllm",),
    "mpi4py": ("import mpi4py",),
    "scipy": ("import scipy",),
    "scikit-learn": ("import sklearn",),
    "pandas": ("import pandas",),
    "pyarrow": ("import pyarrow",),
}


def statements(installed: Collection[str]) -> Iterator[str]:
    """The statements for what is installed, what others build on first."""
    for distribution, lines in _STATEMENTS.items():
        if distribution in installed:
            yield from lines
    for framework in frameworks().values():
        if framework.distributions and framework.distributions[0] in installed:
            yield from framework.imports
