"""Distributions by the names that people and tools write."""

from __future__ import annotations

import re

from compatcheck.packages.names import normalised

_KNOWN = (
    *("accelerate", "aiohttp", "apex", "aqlm", "auto-gptq", "autoawq", "autoawq-kernels", "axolotl", "bert4torch"),
    *("bitsandbytes", "causal-conv1d", "colpali-engine", "cut-cross-entropy", "datasets", "deepspeed", "diffusers"),
    *("dill", "eetq", "einops", "euroeval", "evaluate", "fastapi", "flash-attn", "flashinfer-python", "flax"),
    *("fsspec", "galore-torch", "gptqmodel", "gradio", "grpcio", "hf-transfer", "hf-xet", "hqq", "huggingface-hub"),
    *("jax", "jaxlib", "kernels", "langchain", "liger-kernel", "lightning", "llamafactory", "llm-foundry"),
    *("lmdeploy", "mamba-ssm"),
    *("megatron-core", "mergekit", "minference", "mkl", "modelscope", "mosaicml", "ms-swift", "multiprocess"),
    *("nemo-toolkit", "ninja", "numpy", "nvidia-ml-py", "openai", "openrlhf", "optimum", "pandas", "peft", "pillow"),
    *("protobuf", "psutil", "pyarrow", "pydantic", "pytorch-lightning", "pytorch-triton", "qwen-vl-utils", "ray"),
    *("regex", "rerankers", "safetensors", "scikit-learn", "scipy", "sentence-transformers", "sentencepiece"),
    *("sglang", "tensorboard", "tensorflow", "tiktoken", "timm", "tokenizers", "torch", "torch-npu", "torchao"),
    *("torchaudio", "torchcodec", "torchdata", "torchmetrics", "torchtext", "torchtune", "torchvision", "tqdm"),
    *("transformer-engine", "transformers", "triton", "triton-windows", "trl", "tyro", "unsloth", "unsloth-zoo"),
    *("verl", "vllm", "vllm-omni", "wandb", "xformers", "xinference", "xtuner"),
    *("auto-round", "compressed-tensors", "coqui-tts", "ctranslate2", "faiss-cpu", "faster-whisper", "fastervit"),
    *("gliner", "glirel", "horovod", "instructorembedding", "lerobot", "librosa", "llmcompressor", "lm-eval"),
    *("mistral-common", "nnsight", "nvidia-modelopt", "onnxruntime", "optimum-onnx", "pyannote-audio", "setfit"),
    *("spacy", "speechbrain", "tensordict", "transformer-lens", "whisperx", "xgrammar"),
)
_ALIASES = {
    "pytorch": "torch",
    "py torch": "torch",
    "hf transformers": "transformers",
    "huggingface transformers": "transformers",
    "hugging face transformers": "transformers",
    "transformer": "transformers",
    "hf hub": "huggingface-hub",
    "hugging face hub": "huggingface-hub",
    "bnb": "bitsandbytes",
    "flash attention": "flash-attn",
    "flashattention": "flash-attn",
    "flash attn": "flash-attn",
    "llama factory": "llamafactory",
    "swift": "ms-swift",
    "liger kernel": "liger-kernel",
    "autogptq": "auto-gptq",
    "transformerengine": "transformer-engine",
    "megatron lm": "megatron-core",
    "lightning fabric": "lightning",
}
_SPOKEN = sorted({*_KNOWN, *_ALIASES} - {"transformer", "swift", "ray", "regex", "kernels", "tyro"}, key=len)[::-1]
_NO_DISTRIBUTION = frozenset(
    (
        *("ubuntu", "debian", "centos", "rocky", "windows", "win", "macos", "linux", "cuda", "cudnn", "nccl", "driver"),
        *("gcc", "g++", "clang", "cmake", "rustc", "node", "python", "nvcc", "line", "step", "steps", "epoch"),
        *("version", "versions", "kernel", "glibc", "libc", "docker", "conda", "os", "cann", "rocm", "mig", "gpu"),
        *("gpus", "cpu", "memory", "loss", "lr", "iter", "total", "time", "rank", "size", "chapter", "section"),
        *("figure", "table", "number", "name", "package"),
    )
)
_ONE_NAME = re.compile(r"[A-Za-z](?:[A-Za-z0-9._-]{0,60}[A-Za-z0-9])?\Z")
TRAINERS = "SFT|DPO|KTO|ORPO|CPO|BCO|GRPO|PPO|RLOO|GKD|Reward"
"""How the names of trl's trainers begin."""
SPOKEN = "|".join(re.escape(name).replace("\\-", "[-_ ]?").replace("\\ ", "[-_ ]?") for name in _SPOKEN)
"""The alternatives of a regular expression for the names that free text is searched for."""


def distribution(name: str) -> str | None:
    """The distribution that a name certainly means, or None."""
    bare = normalised(name.strip().strip("`\"'*[]()")).replace("-", " ").strip()
    if bare in _ALIASES:
        return _ALIASES[bare]
    joined = bare.replace(" ", "-")
    if joined in _KNOWN:
        return joined
    squeezed = joined.replace("-", "")
    return next((known for known in _KNOWN if known.replace("-", "") == squeezed), None) or (
        joined if re.match(r"nvidia-[a-z-]+-cu\d\d\Z", joined) else None
    )


def plausible(name: str) -> bool:
    """Whether a name that a tool prints may be that of a distribution."""
    return bool(_ONE_NAME.match(name)) and name.lower() not in _NO_DISTRIBUTION
