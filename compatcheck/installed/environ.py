"""The environment variables that the matrix speaks of."""

from __future__ import annotations

import os
from collections.abc import Iterable

from compatcheck.environment import Facts, Target


def collect(target: Target, names: Iterable[str] = ()) -> Facts:
    """``environ`` with the value of each name; an unset one is known to be absent."""
    values = {name: os.environ.get(name) for name in sorted(names)}
    return Facts({"environ": values} if values else {})
