"""A RoPE base or scaling that only ``rope_parameters`` states.

transformers 4 reads ``rope_theta`` and ``rope_scaling``. A configuration that states one of these as well, or that
means what transformers 4 takes without them, has not the trait; nor has one with settings by kind of layer.
https://github.com/vllm-project/vllm/pull/42624
"""

from __future__ import annotations

from collections.abc import Mapping

from compatcheck.project.model_files._rope import DEFAULT_BASE, differs, has_base
from compatcheck.project.model_files.file_traits._files import Files


def find(files: Files) -> bool:
    stated = files.config.get("rope_parameters")
    if not isinstance(stated, Mapping) or files.config.get("rope_theta") is not None:
        return False
    return not files.config.get("rope_scaling") and has_base(stated) and differs(stated, DEFAULT_BASE)
