"""A Phi-3 whose RoPE scaling ``config.json`` calls longrope, and not su as at first.

https://github.com/huggingface/text-generation-inference/issues/2172
"""

from __future__ import annotations

from compatcheck.project.model_files._rope import scaling_type
from compatcheck.project.model_files.file_traits._files import Files

FILE = "config.json"


def find(files: Files) -> bool:
    return files.config.get("model_type") == "phi3" and scaling_type(files.config) == "longrope"
