"""How a model's configuration states its rotary position embedding."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_DEFAULT_BASE = 10000
_BASE_OF_OLMO3 = 500000
_TAKEN_UNSTATED = {
    "gemma3": (1000000, 10000),
    "gemma3_text": (1000000, 10000),
    "modernbert": (160000, 10000),
    "olmo3": (_DEFAULT_BASE, _DEFAULT_BASE),
}
"""The bases that releases take for full and for sliding attention where they find none in the form they know."""

_OLDER_KEYS = ("rope_theta", "rope_scaling", "rope_local_base_freq", "global_rope_theta", "local_rope_theta")


def traits(config: Mapping[str, Any]) -> list[str]:
    """The traits of the rotary settings that some releases of transformers read otherwise than they are meant."""
    found = {
        "rotary-base-of-all-layers": _has_a_base_of_all_layers(config),
        "rotary-scaling-of-all-layers": _has_a_scaling_of_all_layers(config),
        "rotary-settings-by-layer-type": _has_settings_by_layer_type(config),
        "rotary-settings-of-transformers-5": _has_settings_of_transformers_5(config),
    }
    return [name for name, holds in found.items() if holds]


def scales(config: Mapping[str, Any]) -> bool:
    """Whether the configuration, or a part of it, states a kind of scaling other than the default."""
    for key, value in config.items():
        if isinstance(value, Mapping):
            stated = key in ("rope_scaling", "rope_parameters")
            if stated and value.get("rope_type", value.get("type", "default")) != "default":
                return True
            if not stated and scales(value):
                return True
    return False


def _has_settings_of_transformers_5(config: Mapping[str, Any]) -> bool:
    """A base or a scaling that only ``rope_parameters`` tells.

    transformers 4 reads ``rope_theta`` and ``rope_scaling``. A configuration that states one of these as well, or that
    means what transformers 4 takes without them, has not the trait; nor has one with settings by kind of layer.
    https://github.com/vllm-project/vllm/pull/42624
    """
    stated = config.get("rope_parameters")
    if not isinstance(stated, Mapping) or config.get("rope_theta") is not None or config.get("rope_scaling"):
        return False
    return _has_a_base(stated) and _differs(stated, _DEFAULT_BASE)


def _has_settings_by_layer_type(config: Mapping[str, Any]) -> bool:
    """``rope_parameters`` by kind of layer alone, and other than what is taken by releases that expect it otherwise."""
    bases = _TAKEN_UNSTATED.get(str(config.get("model_type")))
    text = config.get("text_config", config)
    if bases is None or not isinstance(text, Mapping) or any(text.get(key) is not None for key in _OLDER_KEYS):
        return False
    stated = text.get("rope_parameters")
    if not isinstance(stated, Mapping):
        return False
    parts = zip((stated.get("full_attention"), stated.get("sliding_attention")), bases, strict=True)
    return any(isinstance(part, Mapping) and _has_a_base(part) and _differs(part, base) for part, base in parts)


def _has_a_base_of_all_layers(config: Mapping[str, Any]) -> bool:
    """An OLMo 3 with one base or scaling for all layers, where newer releases expect one for each kind.

    They read ``rope_scaling`` and ``rope_theta`` rightly, but sliding layers get the base they take by themselves.
    """
    stated = config.get("rope_parameters")
    if config.get("model_type") != "olmo3" or (isinstance(stated, Mapping) and config.get("rope_scaling")):
        return False
    if stated is None:
        return _has_a_base(config) and bool(config["rope_theta"] != _BASE_OF_OLMO3)
    flat = isinstance(stated, Mapping) and config.get("rope_theta") is None and _has_a_base(stated)
    return flat and _differs(stated, _BASE_OF_OLMO3)


def _has_a_scaling_of_all_layers(config: Mapping[str, Any]) -> bool:
    """An OLMo 3 with ``rope_scaling``, as it is published, which is meant for its layers of full attention only.

    One saved with a scaling in flat ``rope_parameters`` has been run with it in all layers already.
    """
    stated = config.get("rope_scaling")
    if config.get("model_type") != "olmo3" or not isinstance(stated, Mapping):
        return False
    return bool(stated.get("rope_type", stated.get("type", "default")) != "default")


def _has_a_base(stated: Mapping[str, Any]) -> bool:
    return isinstance(stated.get("rope_theta"), (int, float))


def _differs(stated: Mapping[str, Any], base: int) -> bool:
    """Whether settings mean another base, or a scaling."""
    return bool(stated["rope_theta"] != base or stated.get("rope_type", "default") != "default")
