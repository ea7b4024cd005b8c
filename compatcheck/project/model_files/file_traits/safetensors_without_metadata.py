"""A safetensors file lacks the metadata that says which framework wrote it.

https://github.com/hiyouga/LlamaFactory/issues/6803
"""

from __future__ import annotations

from compatcheck.project.model_files.file_traits._files import Files


def find(files: Files) -> bool:
    return bool((files.model.get("weights") or {}).get("without_metadata"))
