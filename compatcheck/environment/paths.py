"""Dotted paths into nested facts, such as ``training.lora.r``.

Names below `NAMED` may hold dots themselves, so what follows there is one name: ``environ.A.B`` has two parts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

NAMED = ("distributions.", "distribution_ranges.", "environ.", "model.files.", "training.calls.")


@lru_cache(4096)
def parts(path: str) -> tuple[str, ...]:
    """The keys of a path, outermost first."""
    for section in NAMED:
        if path.startswith(section):
            return *section[:-1].split("."), path[len(section) :]
    return tuple(path.split("."))


def distribution_of(path: str) -> str | None:
    """The distribution whose version is at this path, or None for another fact."""
    return path[len("distributions.") :] if path.startswith("distributions.") else None


def variable_of(path: str) -> str | None:
    """The environment variable at this path, or None for another fact."""
    return path[len("environ.") :] if path.startswith("environ.") else None


def is_within(path: str, section: str) -> bool:
    """Whether a path is this section or stands below it."""
    return path == section or path.startswith(f"{section}.")


def flatten(known: Mapping[str, object], above: str = "") -> Iterator[tuple[str, object]]:
    """Each fact with its path; a section that holds nothing is a fact itself."""
    for key, value in known.items():
        if isinstance(value, Mapping) and value and above not in NAMED:
            yield from flatten(value, f"{above}{key}.")
        else:
            yield f"{above}{key}", value


def nest(flat: Mapping[str, Any]) -> dict[str, object]:
    """Facts by path as a snapshot nests them; a parent that is known to be absent gives way to its parts."""
    result: dict[str, Any] = {}
    for keys, value in sorted(((parts(path), value) for path, value in flat.items()), key=lambda fact: len(fact[0])):
        section = result
        for key in keys[:-1]:
            inner = section.get(key)
            section[key] = section = inner if isinstance(inner, dict) else {}
        section[keys[-1]] = value
    return result


def with_value(known: Mapping[str, object], keys: Sequence[str], value: object) -> dict[str, object]:
    """A copy in which the value stands at these keys; a parent that is none gives way."""
    key, *rest = keys
    if not rest:
        return {**known, key: value}
    inner = known.get(key)
    return {**known, key: with_value(inner if isinstance(inner, Mapping) else {}, rest, value)}


def without_value(known: Mapping[str, Any], keys: Sequence[str]) -> dict[str, object]:
    """A copy without what stands at these keys, and without a parent that is empty then."""
    key, *rest = keys
    inner = known.get(key)
    kept: dict[str, Any] = {}
    if rest:
        if not isinstance(inner, Mapping) or not inner:
            return dict(known)
        kept = without_value(inner, rest)
    return {**known, key: kept} if kept else {name: value for name, value in known.items() if name != key}


def merge(below: object, above: object) -> Any:
    """Two nested values as one, in which what stands above wins."""
    if not isinstance(above, Mapping):
        return above
    result = dict(below) if isinstance(below, Mapping) else {}
    for key, value in above.items():
        result[key] = merge(result.get(key), value)
    return result
