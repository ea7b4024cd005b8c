"""A ``tokenizer_config.json`` that says LLaMATokenizer, as the class was called before its first release.

https://github.com/huggingface/transformers/issues/22222
"""

from __future__ import annotations

from compatcheck.project.model_files.file_traits._files import Files

FILE = "tokenizer_config.json"


def find(files: Files) -> bool:
    return (files.json(FILE) or {}).get("tokenizer_class") == "LLaMATokenizer"
