"""Progress of long work, on standard error so that the report stays clean."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def probe_progress() -> Iterator[Callable[[str, str], None]]:
    """A function to call with a probe and its stage: one live line on a terminal, a line a probe elsewhere."""
    if sys.stderr.isatty():
        from rich.console import Console

        with Console(stderr=True).status("probing") as status:
            yield lambda probe, stage: status.update(f"probing {probe}: {stage}")
        return
    seen: set[str] = set()

    def note(probe: str, stage: str) -> None:
        if probe not in seen:
            seen.add(probe)
            print(f"probing {probe}", file=sys.stderr, flush=True)

    yield note
