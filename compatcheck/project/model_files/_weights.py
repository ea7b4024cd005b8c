"""The weight files of one folder together: what they hold, and what is wrong with them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from compatcheck.errors import InputError
from compatcheck.files.json_text import read_json_object
from compatcheck.files.reading import open_bytes
from compatcheck.project.model_files._other_weights import facts_of, read_listing
from compatcheck.project.model_files._safetensors import (
    LFS_PROBLEM,
    HeaderError,
    Shard,
    index_problems,
    is_lfs_pointer,
    read_shard,
    size_note,
    summary,
)

_LISTED = (".bin", ".pt", ".pth", ".gguf")
_NOT_WEIGHTS = ("training_args.bin", "optimizer.pt", "scheduler.pt", "scaler.pt", "optimizer.bin", "scheduler.bin")
_OTHERS_IN_LFS = (".model", ".json", ".py", ".txt", ".tiktoken")
_INDEX = ".index.json"


def read(folder: str, names: list[str]) -> dict[str, object]:
    """``weights``, ``file_problems`` and ``file_notes``, as far as there are any."""
    problems: list[dict[str, str]] = []
    notes: list[dict[str, str]] = []
    shards: dict[str, Shard] = {}
    listings: list[dict[str, Any]] = []
    for name in names:
        try:
            if name.endswith(".safetensors"):
                shards[name] = read_shard(os.path.join(folder, name))
            elif name.endswith(_LISTED) and name not in _NOT_WEIGHTS and not name.startswith("rng_state"):
                listings.append(facts_of(name, read_listing(os.path.join(folder, name))))
            elif name.endswith(_OTHERS_IN_LFS) and _is_pointer(os.path.join(folder, name)):
                problems.append({"path": name, "problem": LFS_PROBLEM})
        except HeaderError as error:
            problems.append({"path": name, "problem": str(error)})
        except OSError as error:
            problems.append({"path": name, "problem": f"cannot be read: {error.strerror or error}"})
    indexes = _indexes(folder, names, problems)
    for name, index in indexes.items():
        found = index_problems(index, names, shards)
        problems += [{"path": file or name, "problem": words} for file, words in found]
    loaded = loaded_shards(names, indexes, shards)
    for name, index in indexes.items():
        note = size_note(index, loaded.values()) if not problems and name.endswith(f".safetensors{_INDEX}") else None
        notes += [{"path": name, "note": note}] if note else []
    facts = {
        "weights": _weights(loaded, listings, _has_full_name(names)),
        "file_problems": problems,
        "file_notes": notes,
    }
    return {key: value for key, value in facts.items() if value}


def _is_pointer(path: str) -> bool:
    with open_bytes(path) as stream:
        return is_lfs_pointer(stream.read(64))


def _indexes(folder: str, names: list[str], problems: list[dict[str, str]]) -> dict[str, Mapping[str, Any]]:
    """The indexes of shards; one that cannot be read is a problem."""
    found: dict[str, Mapping[str, Any]] = {}
    for name in names:
        if name.endswith((f".safetensors{_INDEX}", f".bin{_INDEX}")):
            try:
                found[name] = read_json_object(os.path.join(folder, name))
            except InputError as error:
                problems.append({"path": name, "problem": str(error)})
    return found


def loaded_shards(
    names: list[str], indexes: Mapping[str, Mapping[str, Any]], shards: Mapping[str, Shard]
) -> dict[str, Shard]:
    """The files that transformers would load: one file named ``model``, else what the index names, else all."""
    if "model.safetensors" in names:
        wanted = {"model.safetensors"}
    elif f"model.safetensors{_INDEX}" in indexes:
        weight_map = indexes[f"model.safetensors{_INDEX}"].get("weight_map")
        wanted = (
            {each for each in weight_map.values() if isinstance(each, str)} if isinstance(weight_map, dict) else set()
        )
    else:
        wanted = {each for each in names if each.endswith(".safetensors")}
    return {name: shard for name, shard in shards.items() if name in wanted} if wanted <= set(shards) else {}


def _has_full_name(names: list[str]) -> bool:
    """Whether the safetensors files are those that transformers itself looks for, not an adapter."""
    return "model.safetensors" in names or f"model.safetensors{_INDEX}" in names


def _weights(loaded: Mapping[str, Shard], listings: list[dict[str, Any]], full_name: bool) -> dict[str, Any]:
    weights: dict[str, Any] = {}
    if loaded:
        weights = {"files": len(loaded), **summary(loaded.values())}
        bare = sorted(name for name, shard in loaded.items() if not shard.has_metadata)
        if bare and full_name:
            weights["without_metadata"] = bare
    if listings:
        weights["listed"] = listings
    return weights
