"""A fast tokenizer states its merges as pairs, which tokenizers before 0.20 cannot read.

https://github.com/huggingface/tokenizers/releases/tag/v0.20.0
"""

from __future__ import annotations

from compatcheck.project.model_files.file_traits._files import Files


def find(files: Files) -> bool:
    return (files.model.get("tokenizer") or {}).get("merges") == "pairs"
