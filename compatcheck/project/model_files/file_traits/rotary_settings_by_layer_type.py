"""``rope_parameters`` by kind of layer alone, and other than what releases take that expect it otherwise.

https://github.com/huggingface/transformers/blob/v5.13.0/src/transformers/models/olmo3/configuration_olmo3.py
"""

from __future__ import annotations

from collections.abc import Mapping

from compatcheck.project.model_files._rope import DEFAULT_BASE, differs, has_base
from compatcheck.project.model_files.file_traits._files import Files

_UNSTATED_BASES = {
    "gemma3": (1000000, DEFAULT_BASE),
    "gemma3_text": (1000000, DEFAULT_BASE),
    "modernbert": (160000, DEFAULT_BASE),
    "olmo3": (DEFAULT_BASE, DEFAULT_BASE),
}
"""The bases that releases take for full and for sliding attention where they find none in the form they know."""

_OLDER_KEYS = ("rope_theta", "rope_scaling", "rope_local_base_freq", "global_rope_theta", "local_rope_theta")


def find(files: Files) -> bool:
    bases = _UNSTATED_BASES.get(str(files.config.get("model_type")))
    text = files.config.get("text_config", files.config)
    if bases is None or not isinstance(text, Mapping) or any(text.get(key) is not None for key in _OLDER_KEYS):
        return False
    stated = text.get("rope_parameters")
    if not isinstance(stated, Mapping):
        return False
    parts = zip((stated.get("full_attention"), stated.get("sliding_attention")), bases, strict=True)
    return any(isinstance(part, Mapping) and has_base(part) and differs(part, base) for part, base in parts)
