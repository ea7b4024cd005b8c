"""A ``tokenizer_config.json`` that names TokenizersBackend, a class that transformers 4 has not.

https://github.com/hiyouga/LlamaFactory/issues/9699
"""

from __future__ import annotations

from compatcheck.project.model_files.file_traits._files import Files

FILE = "tokenizer_config.json"


def find(files: Files) -> bool:
    stated = files.json(FILE) or {}
    return stated.get("tokenizer_class") == "TokenizersBackend" and not stated.get("auto_map")
