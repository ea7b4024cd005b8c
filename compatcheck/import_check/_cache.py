"""What an environment's imports came to, remembered until one of its distributions changes."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence

from compatcheck import __version__
from compatcheck.environment import Target
from compatcheck.files import limits, storage
from compatcheck.files.reading import open_text
from compatcheck.installed.distributions import scan

_SCHEMA = 2


def recall(target: Target) -> list[dict[str, object]] | None:
    """What was found when this state was last examined; None where it never was, or the note cannot be read."""
    try:
        with open_text(_path(target), errors="strict") as stream:
            text = stream.read(limits.NOTE_BYTES)
    except (OSError, ValueError):
        return None
    try:
        note = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(note, dict) or note.get("state") != _state(target):
        return None
    found = note.get("unresolved_imports")
    return found if isinstance(found, list) and all(_is_record(each) for each in found) else None


def remember(target: Target, found: Sequence[dict[str, object]]) -> None:
    """Keep the result; where nothing can be written it is computed again next time."""
    note = {"state": _state(target), "unresolved_imports": list(found)}
    storage.write_note(_path(target), json.dumps(note, ensure_ascii=False))


def _state(target: Target) -> str:
    """Python, folders, and each distribution with its time of installation, in one word."""
    from hashlib import sha256

    parts = [str(_SCHEMA), __version__, target.version, *target.search_path]
    for found in scan(target).installed:
        parts += [found.name, found.version or "", found.metadata, _modified(found.metadata)]
    return sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()


def _path(target: Target) -> str:
    """One note for each environment; two of the same short name take turns."""
    name = "".join(each if each.isalnum() else "-" for each in "".join(target.search_path[:1]))
    return os.path.join(storage.cache_folder(), "imports", f"{name[-120:]}.json")


def _modified(path: str) -> str:
    try:
        return str(os.stat(path).st_mtime_ns)
    except OSError:
        return ""


def _is_record(value: object) -> bool:
    return isinstance(value, dict) and all(
        isinstance(value.get(key), str) for key in ("distribution", "module", "statement")
    )
