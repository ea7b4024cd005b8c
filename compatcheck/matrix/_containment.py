"""Whether one table of conditions holds only where another one does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compatcheck.packages.versions import Interval, interval_of, is_range, parse_range


def is_inside(conditions: Mapping[str, Any], wider: Mapping[str, Any]) -> bool:
    """Whether each environment that meets the conditions meets the ``wider`` ones too, as far as their texts tell."""
    return all(path in conditions and _implies(path, conditions[path], value) for path, value in wider.items())


def _implies(path: str, condition: Any, wider: Any) -> bool:
    if wider == "present":
        return bool(condition != "absent")
    if path == "traits":
        return set(_values(wider)) <= set(_values(condition))
    if _is_range(condition) and _is_range(wider):
        inner, outer = interval_of(parse_range(condition)), interval_of(parse_range(wider))
        return inner is not None and outer is not None and _covers(outer, inner)
    return set(_values(condition)) <= set(_values(wider))


def _covers(outer: Interval, inner: Interval) -> bool:
    low = outer.low is None or (
        inner.low is not None and (inner.low, not inner.low_closed) >= (outer.low, not outer.low_closed)
    )
    high = outer.high is None or (
        inner.high is not None and (inner.high, inner.high_closed) <= (outer.high, outer.high_closed)
    )
    return low and high


def _is_range(condition: Any) -> bool:
    return isinstance(condition, str) and is_range(condition)


def _values(condition: Any) -> list[str]:
    return [repr(value) for value in (condition if isinstance(condition, list) else [condition])]
