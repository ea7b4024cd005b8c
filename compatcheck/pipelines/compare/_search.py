"""Where the result changes along a row of steps from OLD to NEW, with the fewest trials."""

from __future__ import annotations

from collections.abc import Callable, Sequence

Ask = Callable[[int], bool | None]
"""Whether the result is NEW's once so many steps are taken; None where that cannot be tried."""


def change(weights: Sequence[float], ask: Ask) -> tuple[int, int]:
    """The most steps with OLD's result and the fewest above with NEW's; they differ by 1 unless steps between fail.

    ``weights`` say how likely each step is the one. No step at all is OLD, and all of them are NEW: neither is asked.
    """
    low, high = 0, len(weights)
    failed: set[int] = set()
    while True:
        untried = [at for at in range(low + 1, high) if at not in failed]
        if not untried:
            return low, high
        half = sum(weights[low:high]) / 2
        at = min(untried, key=lambda place: abs(sum(weights[low:place]) - half))
        answer = ask(at)
        if answer is None:
            failed.add(at)
        elif answer:
            high = at
        else:
            low = at
