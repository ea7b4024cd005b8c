"""The statements by which people import packages: a run starts there."""

from __future__ import annotations

from compatcheck.import_check._entry_points import _STATEMENTS

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
    "lightning-utilities": ("import lightning_utilities",),
    "optimum": ("import optimum", "from optimum.gptq import GPTQQuantizer", "import optimum.utils"),
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
MODULES = {
    "auto-gptq": "auto_gptq",
    "autoawq": "awq",
    "colbert-ai": "colbert",
    "flagembedding": "FlagEmbedding",
    "ms-swift": "swift",
    "open-clip-torch": "open_clip",
    "optimum-quanto": "optimum",
    "pillow": "PIL",
    "protobuf": "google",
    "scikit-learn": "sklearn",
}
"""The module of a distribution, where it is not the name with underscores."""


def module_of(package: str) -> str:
    return MODULES.get(package, package.replace("-", "_"))
