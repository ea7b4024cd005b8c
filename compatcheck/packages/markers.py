"""Evaluate the markers of requirements."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from packaging.markers import Marker


def evaluate_marker(
    marker: Marker, environment: Mapping[str, str], context: Literal["metadata", "lock_file"] = "metadata"
) -> bool:
    """Return whether the marker holds; raises ValueError where it compares two strings, or what has no order."""
    try:
        return marker.evaluate(dict(environment), context=context)
    except KeyError as error:  # packaging's UndefinedEnvironmentName
        raise ValueError(f"the marker {marker} has an unknown variable {error}") from None
