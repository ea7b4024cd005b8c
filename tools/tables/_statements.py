"""The packages that are followed for matrix/tables/import-failures.toml: which statements, and beside which others."""

from __future__ import annotations

from compatcheck.import_check._entry_points import _STATEMENTS
from tools.tables._pairwise import MODULES

STATEMENTS = {
    **_STATEMENTS,
    "adapters": ("import adapters", "from adapters import AutoAdapterModel"),
    "auto-round": ("from auto_round import AutoRound",),
    "bert-score": ("import bert_score",),
    "bertopic": ("from bertopic import BERTopic",),
    "colbert-ai": ("import colbert",),
    "colpali-engine": ("import colpali_engine",),
    "compressed-tensors": ("import compressed_tensors",),
    "coqui-tts": ("from TTS.api import TTS", "from TTS.tts.models.xtts import Xtts"),
    "farm-haystack": ("import haystack", "from haystack.nodes import FARMReader"),
    "flagembedding": ("import FlagEmbedding",),
    "fschat": ("from fastchat.model import load_model", "from fastchat.train.train import train"),
    "gradio": ("import gradio",),
    "hqq": ("from hqq.core.quantize import HQQLinear", "from hqq.models.hf.base import AutoHQQHFModel"),
    "kernels": ("import kernels",),
    "langchain-huggingface": ("from langchain_huggingface import HuggingFaceEmbeddings",),
    "lighteval": ("from lighteval.pipeline import Pipeline",),
    "lightning": ("import lightning", "import lightning.pytorch"),
    "llm-foundry": ("import llmfoundry",),
    "llmcompressor": ("import llmcompressor",),
    "lm-eval": ("import lm_eval",),
    "lmdeploy": ("import lmdeploy",),
    "modelscope": ("import modelscope", "from modelscope import AutoTokenizer", "from modelscope import MsDataset"),
    "mosaicml": ("import composer", "from composer.models import HuggingFaceModel"),
    "mteb": ("import mteb",),
    "nemo-toolkit": ("from nemo.collections import asr", "from nemo.collections import llm"),
    "openrlhf": ("from openrlhf.cli.train_sft import train",),
    "optimum-quanto": ("import optimum.quanto",),
    "rerankers": ("import rerankers",),
    "setfit": ("import setfit",),
    "sglang": ("import sglang", "from sglang.srt.entrypoints.engine import Engine", "import sglang.srt.server"),
    "simpletransformers": (
        "from simpletransformers.classification import ClassificationModel",
        "from simpletransformers.t5 import T5Model",
    ),
    "spacy-transformers": ("import spacy_transformers",),
    "torchao": ("import torchao",),
    "trlx": ("import trlx",),
    "unsloth": ("from unsloth import FastLanguageModel",),
    "unsloth-zoo": ("import unsloth_zoo",),
    "verl": ("import verl", "from verl.trainer import main_ppo"),
    "vllm": ("import vllm", "from vllm import LLM"),
    "whisperx": ("import whisperx", "from whisperx.asr import load_model"),
}
PROVIDERS = (
    "transformers",
    "accelerate",
    "peft",
    "huggingface-hub",
    "trl",
    "diffusers",
    "datasets",
    "tokenizers",
    "safetensors",
    "pyarrow",
    "pydantic",
    "optimum",
    "torchmetrics",
    "sentence-transformers",
    "compressed-tensors",
    "torchao",
    "deepspeed",
    "evaluate",
    "timm",
    "liger-kernel",
    "mmengine",
    "auto-gptq",
    "autoawq",
    "kernels",
)
NOT_FOLLOWED = ("numpy", "torch", "flash-attn", "xformers", "torchvision", "torchaudio", "mpi4py", "pandas")
PARTS = ("from trl import DPOTrainer", "from trl import SFTTrainer", "import liger_kernel.transformers")
"""Statements that only some of those run who use the package."""


def module_of(package: str) -> str:
    return MODULES.get(package, package.replace("-", "_"))
