"""A model whose layers all attend to a window of 4096 tokens.

https://github.com/huggingface/transformers/pull/30127
"""

from __future__ import annotations

from compatcheck.project.model_files.file_traits._files import Files

FILE = "config.json"

_TYPES = ("mistral", "mixtral", "starcoder2")


def find(files: Files) -> bool:
    return files.config.get("model_type") in _TYPES and files.config.get("sliding_window") == 4096
