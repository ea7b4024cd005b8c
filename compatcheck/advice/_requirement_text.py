"""One requirement as text: which version it pins, and the same text with another version."""

from __future__ import annotations

import re

from packaging.version import InvalidVersion, Version

_SHAPE = re.compile(r"([\w.-]+(?:\s*\[[^\]]*\])?)\s*([^;]*?)(\s*;.*|\s+--[a-z].*)?\Z")
_EXACT = re.compile(r"\(?\s*===?\s*([^\s,*()]+)\s*\)?\Z")


def exact_version(text: str) -> str | None:
    """The version that a requirement pins and no other; None where it is a range or no version."""
    shape = _SHAPE.match(text)
    found = _EXACT.match(shape[2]) if shape else None
    return found[1] if found and _version(found[1]) is not None else None


def with_version(text: str, version: str | None) -> str:
    """The requirement pinned to a version, or without any; its name, extras and marker stand as they are."""
    stated = exact_version(text)
    if stated is not None and version is not None and _version(stated) == _version(version):
        return text
    shape = _SHAPE.match(text)
    return text if shape is None else shape[1] + (f"=={version}" if version else "") + (shape[3] or "")


def _version(text: str) -> Version | None:
    try:
        return Version(text)
    except InvalidVersion:
        return None
