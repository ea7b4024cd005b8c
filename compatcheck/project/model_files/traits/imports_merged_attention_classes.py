"""The code imports attention classes of Llama, Mistral, Qwen2 or Phi-3 that transformers 4.48.0 merged into one each.

https://github.com/deepseek-ai/DeepSeek-OCR/issues/7
"""

from __future__ import annotations

from compatcheck.project.model_files.traits._code import Code
from compatcheck.project.model_files.traits._imports import line_of_import

TRAIT = "imports-merged-attention-classes"
KIND = "model"
_MODULE = r"transformers\.models\.(llama|mistral|qwen2|phi3)\.modeling_\w+"
_NAMES = tuple(
    f"{model}{kind}" for model in ("Llama", "Mistral", "Qwen2", "Phi3") for kind in ("FlashAttention2", "SdpaAttention")
)


def find(code: Code) -> int | None:
    return line_of_import(code, _MODULE, _NAMES)
