"""An OLMo 3 with ``rope_scaling``, as it is published, which is meant for its layers of full attention only.

One saved with a scaling in flat ``rope_parameters`` has been run with it in all layers already.
https://github.com/huggingface/transformers/blob/v5.12.1/src/transformers/models/olmo3/modeling_olmo3.py
"""

from __future__ import annotations

from collections.abc import Mapping

from compatcheck.project.model_files.file_traits._files import Files


def find(files: Files) -> bool:
    stated = files.config.get("rope_scaling")
    if files.config.get("model_type") != "olmo3" or not isinstance(stated, Mapping):
        return False
    return bool(stated.get("rope_type", stated.get("type", "default")) != "default")
