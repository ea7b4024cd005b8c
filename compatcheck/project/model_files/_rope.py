"""How a model's configuration states RoPE, its rotary position embedding."""

from __future__ import annotations

from collections.abc import Mapping

DEFAULT_BASE = 10000


def scales(config: Mapping[str, object]) -> bool:
    """Whether the configuration, or a part of it, states a kind of scaling other than the default."""
    for key, value in config.items():
        if isinstance(value, Mapping):
            stated = key in ("rope_scaling", "rope_parameters")
            if stated and value.get("rope_type", value.get("type", "default")) != "default":
                return True
            if not stated and scales(value):
                return True
    return False


def scaling_type(config: Mapping[str, object]) -> object:
    """The kind of scaling that ``rope_scaling`` states, by its present or its former key; None where it has none."""
    stated = config.get("rope_scaling")
    return stated.get("rope_type", stated.get("type")) if isinstance(stated, Mapping) else None


def has_base(stated: Mapping[str, object]) -> bool:
    return isinstance(stated.get("rope_theta"), (int, float))


def differs(stated: Mapping[str, object], base: int) -> bool:
    """Whether settings mean another base, or a scaling."""
    return bool(stated["rope_theta"] != base or stated.get("rope_type", "default") != "default")
