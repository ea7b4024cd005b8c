"""The environment variables that the matrix speaks of."""

from __future__ import annotations

import os
from collections.abc import Iterable

from compatcheck.environment import Environment


def collect(names: Iterable[str] = ()) -> Environment:
    """``environ`` with the value of each name; an unset one is known to be absent."""
    values = {name: os.environ.get(name) for name in sorted(names)}
    return Environment({"environ": values} if values else {})
