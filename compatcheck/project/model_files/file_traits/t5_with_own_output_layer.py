"""A T5 of version 1.1, which does not scale what it gives to its output layer: ``tie_word_embeddings`` is false.

https://github.com/huggingface/transformers/pull/43681
"""

from __future__ import annotations

from compatcheck.project.model_files.file_traits._files import Files

FILE = "config.json"


def find(files: Files) -> bool:
    return files.config.get("model_type") == "t5" and files.config.get("tie_word_embeddings") is False
