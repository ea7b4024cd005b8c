"""What two machines are compared by: the facts of a snapshot without what is the machine's own."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import Any

from compatcheck.cluster._launch import OWN_OF_RANKS
from compatcheck.environment import Unknown

_OWN = ("schema_version", "target", "unknown", "locations", "node")
_GPU_IDENTITY = ("uuid",)
_COMPLETE = ("environ",)

Path = tuple[str, ...]


def comparable(snapshot: Mapping[str, Any]) -> dict[str, object]:
    """The facts that have to be the same where a training run is to be: not paths, reasons, serial and rank numbers."""
    kept = {key: value for key, value in snapshot.items() if key not in _OWN}
    if kept.get("gpus"):
        kept["gpus"] = [{key: gpu[key] for key in gpu if key not in _GPU_IDENTITY} for gpu in kept["gpus"]]
    if kept.get("environ"):
        kept["environ"] = {name: value for name, value in kept["environ"].items() if name not in OWN_OF_RANKS}
    return kept


def digest(snapshot: Mapping[str, Any]) -> str:
    """Equal for two snapshots exactly where their comparable facts are."""
    text = json.dumps(comparable(snapshot), sort_keys=True, separators=(",", ":"), default=str)
    return sha256(text.encode()).hexdigest()


def leaves(snapshot: Mapping[str, Any]) -> dict[Path, object]:
    """Each comparable fact by its path; of a list, each entry by its number."""
    return dict(_leaves(comparable(snapshot), ()))


def _leaves(value: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    if isinstance(value, Mapping):
        items = [(str(key), item) for key, item in value.items()]
    elif isinstance(value, (list, tuple)) and any(isinstance(item, Mapping) for item in value):
        items = [(str(number), item) for number, item in enumerate(value)]
    else:
        items = None
    if items is None:
        yield path, value
        return
    for key, item in items:
        yield from _leaves(item, (*path, key))


def missing(snapshot: Mapping[str, Any], path: Path) -> Any:
    """What a path that a snapshot lacks stands for: ``None`` where it is then known to be absent, else `Unknown`."""
    if path[0] == "distributions":
        return None if snapshot.get("distributions_complete") else Unknown()
    listed = path[0] in _COMPLETE or (path[0] in ("gpus", "gpu_state") and isinstance(snapshot.get(path[0]), list))
    return None if listed and path[0] in snapshot else Unknown()
