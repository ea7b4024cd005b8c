"""RoPE scaled by the rule of Llama 3.1, which ``config.json`` calls llama3.

https://github.com/meta-llama/llama3/issues/299
"""

from __future__ import annotations

from compatcheck.project.model_files._rope import scaling_type
from compatcheck.project.model_files.file_traits._files import Files

FILE = "config.json"


def find(files: Files) -> bool:
    return files.config.get("model_type") == "llama" and scaling_type(files.config) == "llama3"
