"""A Llama whose ``rope_scaling`` says ``type`` and not ``rope_type``.

https://github.com/huggingface/transformers/issues/32167
"""

from __future__ import annotations

from collections.abc import Mapping

from compatcheck.project.model_files.file_traits._files import Files

FILE = "config.json"


def find(files: Files) -> bool:
    stated = files.config.get("rope_scaling")
    is_older = isinstance(stated, Mapping) and "type" in stated and "rope_type" not in stated
    return files.config.get("model_type") == "llama" and is_older
