"""How a model's configuration states its rotary position embedding."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_DEFAULT_BASE = 10000


def traits(config: Mapping[str, Any]) -> list[str]:
    """``rotary-settings-of-transformers-5``: a base or a scaling that only ``rope_parameters`` tells.

    transformers 4 reads ``rope_theta`` and ``rope_scaling``. A configuration that states one of these as well, or that
    means what transformers 4 takes without them, has not the trait; nor has one with settings by kind of layer.
    https://github.com/vllm-project/vllm/pull/42624
    """
    stated = config.get("rope_parameters")
    if not isinstance(stated, Mapping) or config.get("rope_theta") is not None or config.get("rope_scaling"):
        return []
    base, kind = stated.get("rope_theta"), stated.get("rope_type", "default")
    differs = isinstance(base, (int, float)) and (base != _DEFAULT_BASE or kind != "default")
    return ["rotary-settings-of-transformers-5"] if differs else []
