"""One requirement as text: which version it pins, and the same text with another version."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable

from packaging.version import Version

from compatcheck.packages.names import normalised

_SHAPE = re.compile(r"([\w.-]+)(\s*\[[^\]]*\])?\s*([^;]*?)(\s*;.*|\s+--[a-z].*)?\Z")
_REFERENCE = re.compile(r"\$\{([A-Z0-9_]+)\}")
_EXACT = re.compile(r"\(?\s*===?\s*([^\s,*()]+)\s*\)?\Z")


def expanded(text: str) -> str:
    """References to environment variables, as ``${WHEELS}``, replaced where the variable is set."""
    return _REFERENCE.sub(lambda found: os.environ.get(found[1], found[0]), text)


def version_of(text: str) -> Version | None:
    """The version, None where it is none as PEP 440 writes it; what is installed may have any other."""
    try:
        return Version(text)
    except ValueError:
        return None


def pin_in(text: str) -> tuple[str, str] | None:
    """Name and version where a requirement pins this version and no other; it may stand in quotes, as in TOML."""
    shape = _SHAPE.match(text.strip(" \t\"',"))
    found = _EXACT.match(shape[3]) if shape else None
    return (normalised(shape[1]), found[1]) if shape and found and version_of(found[1]) else None


def pins(texts: Iterable[str]) -> dict[str, str]:
    """The versions of the names that are pinned to one version, whatever else is said of them."""
    found: dict[str, set[str]] = {}
    for name, version in filter(None, map(pin_in, texts)):
        found.setdefault(name, set()).add(version)
    return {name: versions.pop() for name, versions in found.items() if len(versions) == 1}


def with_version(text: str, version: str | None) -> str:
    """The requirement pinned to a version, or without any; its name, extras and marker stand as they are."""
    stated = pin_in(text)
    if stated and version is not None and version_of(stated[1]) == version_of(version):
        return text
    shape = _SHAPE.match(text)
    return text if shape is None else _join(shape[1], shape[2], f"=={version}" if version else "", shape[4])


def without_extras(text: str) -> str:
    """The requirement without the extras behind its name."""
    shape = _SHAPE.match(text)
    return _join(shape[1], shape[3], shape[4]) if shape else text


def _join(*parts: str | None) -> str:
    return "".join(filter(None, parts))
