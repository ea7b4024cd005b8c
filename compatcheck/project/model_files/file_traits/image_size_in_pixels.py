"""A ``preprocessor_config.json`` of Qwen2-VL whose ``size`` has min_pixels and max_pixels, and not the two edges.

https://github.com/huggingface/transformers/issues/37811
"""

from __future__ import annotations

from collections.abc import Mapping

from compatcheck.project.model_files.file_traits._files import Files

FILE = "preprocessor_config.json"


def find(files: Files) -> bool:
    stated = files.json(FILE) or {}
    size = stated.get("size")
    of_qwen = str(stated.get("image_processor_type")).startswith("Qwen2VLImageProcessor")
    return of_qwen and isinstance(size, Mapping) and "min_pixels" in size and "shortest_edge" not in size
