"""From an exception of the simulated run to a fact."""

from __future__ import annotations

import os
from typing import Any

from compatcheck.import_check._finder import Finder, is_stdlib
from compatcheck.import_check._values import Raised, is_exception

_LONGEST_CHAIN = 8


def record(error: Raised, statement: str, finder: Finder) -> dict[str, Any] | None:
    """What is missing, who asks for it on which line, and by which way; None for errors that are no matter of names."""
    if not error.trail or (error.missing is None and is_exception(error.kind, ImportError) is not True):
        return None
    if error.missing is None and not error.text:
        return None
    origin = error.trail[0]
    owner = finder.owner(origin.file)
    module, name = error.missing or (None, None)
    provider = finder.provider(module) if module else None
    return {
        "distribution": owner or "",
        "version": finder.versions.get(owner) if owner else None,
        "file": _shown(origin.file, finder),
        "line": origin.line,
        "module": module or "",
        "name": name,
        "provider": provider
        or ("" if module is None or is_stdlib(module.partition(".")[0]) else module.partition(".")[0]),
        "provider_version": finder.versions.get(provider) if provider else None,
        "error": getattr(error.kind, "__name__", getattr(error.kind, "name", "")),
        "says": error.text,
        "statement": statement,
        "statements": [],
        "chain": [f"{_shown(place.file, finder)}:{place.line}" for place in error.trail[:_LONGEST_CHAIN]],
    }


def _shown(path: str, finder: Finder) -> str:
    for folder in finder.folders:
        if path.startswith(folder + os.sep):
            return path[len(folder) + 1 :]
    return path
