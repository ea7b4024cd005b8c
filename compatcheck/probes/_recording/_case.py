"""A case: one small run that is written down."""

from __future__ import annotations

from typing import Callable, NamedTuple, Tuple

from compatcheck.probes._recording._record import Record


class Case(NamedTuple):
    """``run`` writes down one run, its weights moved by the relative amount it is given.

    ``dtype`` is the narrowest of the computation, ``packages`` those it goes through besides torch.
    """

    name: str
    dtype: str
    packages: Tuple[str, ...]
    run: Callable[[Record, float], None]
