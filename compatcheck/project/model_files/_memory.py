"""What changes between two revisions of a model mean for the memory of a training run, in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

_BYTES = {"float64": 8, "float32": 4, "float16": 2, "bfloat16": 2, "float8_e4m3fn": 1, "int8": 1}
_LAYERS = ("num_hidden_layers", "num_layers", "n_layer")
_SIZES = (*_LAYERS, "hidden_size", "intermediate_size", "ffn_hidden_size", "vocab_size", "padded_vocab_size")


def consequences(
    changes: Mapping[str, Any], old: Mapping[str, Any], new: Mapping[str, Any], config: Mapping[str, Any]
) -> list[str]:
    """One sentence for each change that moves memory; ``config`` is the configuration of the new revision."""
    return [
        *_explain_traits(changes["traits"], config),
        *_explain_dtype(old, new),
        *_explain_weights(old, new),
        *_explain_sizes(changes),
    ]


def _explain_traits(traits: list[dict[str, object]], config: Mapping[str, object]) -> Iterator[str]:
    layers = next((config[key] for key in _LAYERS if isinstance(config.get(key), int)), None)
    every = f"all {layers} layers" if layers else "every layer"
    gained = {each["trait"] for each in traits if each["change"] == "gained"}
    lost = {each["trait"] for each in traits if each["change"] == "lost"}
    if "gradient-checkpointing-noop" in gained:
        yield (
            "gradient checkpointing is no longer enabled, although the call succeeds: the activations "
            f"of {every} are kept until the backward pass"
        )
    if "gradient-checkpointing-noop" in lost:
        yield f"gradient checkpointing is enabled again: the activations of {every} are not kept"
    if "checkpoints-without-reentry" in gained:
        yield "checkpointing runs with use_reentrant=False, which the authors of ChatGLM3 say may take more memory"


def _explain_dtype(old: Mapping[str, object], new: Mapping[str, object]) -> Iterator[str]:
    """The dtype that the configuration states is the one that ``torch_dtype="auto"`` loads."""
    before, after = old.get("torch_dtype"), new.get("torch_dtype")
    if before != after and before in _BYTES and after in _BYTES and _BYTES[before] != _BYTES[after]:
        ratio = _BYTES[after] / _BYTES[before]
        yield (
            f"the stated dtype changed from {before} to {after}: loaded this way, weights take {ratio:g}"
            " times the memory"
        )


def _explain_weights(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    before, after = ((side.get("weights") or {}).get("bytes") for side in (old, new))
    if before and after and before != after:
        yield f"the tensors take {after / 1e9:.2f} GB instead of {before / 1e9:.2f} GB ({after / before:.2f} times)"


def _explain_sizes(changes: Mapping[str, Any]) -> Iterator[str]:
    for each in changes["settings"]:
        if each["file"] == "config.json" and each["key"] in _SIZES and "old" in each and "new" in each:
            yield f"{each['key']} changed from {each['old']} to {each['new']}: weights and activations change with it"
