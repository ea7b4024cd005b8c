"""A model whose attention drops out while it is trained.

https://github.com/huggingface/trl/blob/v1.16.0/trl/trainer/utils.py
"""

from __future__ import annotations

from compatcheck.project.model_files.file_traits._files import Files

FILE = "config.json"


def find(files: Files) -> bool:
    dropout = files.config.get("attention_dropout")
    return isinstance(dropout, (int, float)) and dropout > 0
