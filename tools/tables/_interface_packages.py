"""The packages whose interfaces are read release by release, and from which release on."""

from __future__ import annotations

from collections.abc import Iterable

from tools.tables._statements import module_of

SINCE = "2022-01-01"
"""The day from which on releases are read, of a package that is not in `_OLDEST`."""

_CORE = (
    *(
        "trl",
        "peft",
        "accelerate",
        "transformers",
        "sentence-transformers",
        "huggingface-hub",
        "datasets",
        "tokenizers",
    ),
    *(
        "safetensors",
        "deepspeed",
        "bitsandbytes",
        "torch",
        "diffusers",
        "optimum",
        "evaluate",
        "liger-kernel",
        "torchao",
    ),
)
_FIELD = (
    *("auto-gptq", "autoawq", "gptqmodel", "compressed-tensors", "flash-attn", "xformers", "triton", "torchvision"),
    *(
        "torchaudio",
        "torchmetrics",
        "pytorch-lightning",
        "lightning",
        "timm",
        "open-clip-torch",
        "mmengine",
        "pydantic",
    ),
    *(
        "unsloth",
        "unsloth-zoo",
        "llamafactory",
        "ms-swift",
        "axolotl",
        "xtuner",
        "verl",
        "openrlhf",
        "trlx",
        "torchtune",
    ),
    *("setfit", "simpletransformers", "adapters", "flagembedding", "fschat", "lm-eval", "hqq", "optimum-quanto"),
    *(
        "llmcompressor",
        "auto-round",
        "kernels",
        "spacy-transformers",
        "flash-linear-attention",
        "mteb",
        "colpali-engine",
    ),
    *("numpy", "protobuf", "pyarrow", "pandas", "fsspec", "setuptools", "scikit-learn", "sentencepiece", "tiktoken"),
    *("fastapi", "gradio", "mosaicml", "llm-foundry", "modelscope", "torchdata", "bertopic", "keybert", "gliner"),
    *(
        "lightning-utilities",
        "whisperx",
        "coqui-tts",
        "colbert-ai",
        "nemo-toolkit",
        "lmdeploy",
        "vllm",
        "sglang",
        "megatron-core",
        "ray",
    ),
    *("pillow", "starlette", "httpx", "filelock", "albucore", "outlines", "mistral-common", "qwen-vl-utils"),
    *("faster-whisper", "moviepy", "yapf"),
)
_OLDEST = {
    "transformers": "4.15.0",
    "torch": "1.10.0",
    "pydantic": "1.8",
    "pytorch-lightning": "1.4",
    "deepspeed": "0.5",
    "accelerate": "0.1",
    "peft": "0.0.1",
    "trl": "0.2",
    "datasets": "1.10",
    "tokenizers": "0.10",
    "huggingface-hub": "0.1",
    "sentence-transformers": "2.0",
    "torchmetrics": "0.6",
    "timm": "0.4.12",
    "xformers": "0.0.1",
    "flash-attn": "0.2",
    "moviepy": "1.0",
}


def packages() -> tuple[str, ...]:
    """Those on which most others build come first."""
    return (*_CORE, *_FIELD)


def oldest_of(package: str) -> str | None:
    """The first release that counts; None where the day of the release decides."""
    return _OLDEST.get(package)


_TOPS = {
    "setuptools": ("setuptools", "pkg_resources"),
    "torch": ("torch", "functorch"),
    "protobuf": ("google",),
    "lightning": ("lightning", "lightning_fabric"),
    "pytorch-lightning": ("pytorch_lightning", "lightning_fabric"),
    "nemo-toolkit": ("nemo",),
    "mosaicml": ("composer",),
    "llm-foundry": ("llmfoundry",),
    "coqui-tts": ("TTS",),
    "flash-linear-attention": ("fla",),
    "megatron-core": ("megatron",),
    "fschat": ("fastchat",),
}


def tops_of(package: str) -> tuple[str, ...]:
    """The top modules of a distribution, the one that people import first."""
    return _TOPS.get(package) or (module_of(package).partition(".")[0],)


def owners(given: Iterable[str]) -> dict[str, str]:
    """The distribution of each top module: of several the one that is named after it, else the one that comes first."""
    found: dict[str, str] = {}
    for package in given:
        for top in tops_of(package):
            if top not in found or package == top.replace("_", "-"):
                found[top] = package
    return found


def near_of(package: str) -> int:
    """From how deep people import callables of a package; of a program from near its top alone."""
    return 9 if package in _CORE else 3 if package in _LIBRARIES else 2


_LIBRARIES = frozenset(
    {
        *(
            "auto-gptq",
            "autoawq",
            "compressed-tensors",
            "flash-attn",
            "xformers",
            "triton",
            "torchvision",
            "torchaudio",
        ),
        *(
            "torchmetrics",
            "pytorch-lightning",
            "lightning",
            "timm",
            "open-clip-torch",
            "mmengine",
            "pydantic",
            "setfit",
        ),
        *("adapters", "kernels", "torchtune", "gptqmodel", "hqq", "flagembedding", "simpletransformers", "numpy"),
        "yapf",
    }
)
