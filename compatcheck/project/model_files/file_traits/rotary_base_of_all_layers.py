"""An OLMo 3 with one RoPE base or scaling for all layers, where newer releases expect one for each kind.

They read ``rope_scaling`` and ``rope_theta`` rightly, but sliding layers get the base they take by themselves.
https://github.com/huggingface/transformers/blob/v5.13.0/src/transformers/models/olmo3/configuration_olmo3.py
"""

from __future__ import annotations

from collections.abc import Mapping

from compatcheck.project.model_files._rope import differs, has_base
from compatcheck.project.model_files.file_traits._files import Files

_OLMO3_BASE = 500000


def find(files: Files) -> bool:
    config = files.config
    stated = config.get("rope_parameters")
    if config.get("model_type") != "olmo3" or (isinstance(stated, Mapping) and config.get("rope_scaling")):
        return False
    if stated is None:
        return has_base(config) and bool(config["rope_theta"] != _OLMO3_BASE)
    flat = isinstance(stated, Mapping) and config.get("rope_theta") is None and has_base(stated)
    return flat and differs(stated, _OLMO3_BASE)
