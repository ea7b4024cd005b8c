"""How long each stage of a command takes, for --verbose."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter

from compatcheck.language import comma_list
from compatcheck.language import gettext as _

_seconds: dict[str, float] = {}


@contextmanager
def stage(name: str) -> Iterator[None]:
    """Add the time until the end of the block to the stage."""
    started = perf_counter()
    try:
        yield
    finally:
        _seconds[name] = _seconds.get(name, 0.0) + perf_counter() - started


def print_times() -> None:
    """Print the seconds of each stage to standard error; unlike the report, they vary between runs."""
    times = comma_list(f"{_(name)} {seconds:.2f} s" for name, seconds in _seconds.items())
    print(_("took {times}").format(times=times), file=sys.stderr)
