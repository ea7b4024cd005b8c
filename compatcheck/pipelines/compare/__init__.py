"""The pipeline of `compatcheck compare`: record one training in two environments, and find what tells them apart."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from datetime import date

from compatcheck import matrix, probes
from compatcheck.errors import NothingInspectedError
from compatcheck.pipelines.compare import _bisect, _draft, _sides
from compatcheck.pipelines.compare._sides import Building, Probing
from compatcheck.results.comparisons import Comparison, Difference, Side


def compare(
    old: str,
    new: str,
    asked: Mapping[str, object],
    known: matrix.Matrix,
    building: Building,
    probing: Probing,
    *,
    bisect: bool = True,
    budget_seconds: float | None = None,
) -> Comparison:
    """Record OLD and NEW, compare them value by value, and look for the release that changes the result.

    ``asked`` is the request of a probe: the user's model and settings. ``building`` and ``probing`` show progress.
    Raises InputError where a side is no environment or cannot be built, and NothingInspectedError where no case runs
    in both.
    """
    started = time.monotonic()
    stacks = [_sides.read(each, os.environ) for each in (old, new)]
    with _sides.Bench(building) as bench:
        recordings = [
            bench.recording(stack, label, {**asked, "spread": label == "OLD"}, probing)
            for label, stack in zip(("OLD", "NEW"), stacks)
        ]
        different = _differing(recordings)
        result = _comparison(stacks, recordings, tuple(each for _, _, each in different))
        if different:
            row, other, first = different[0]
            result = result._replace(trajectory=probes.trajectory(row, other, first))
        if different and bisect:
            deadline = None if budget_seconds is None else started + budget_seconds
            search = _bisect.Bisection(stacks[0], stacks[1], row, first, asked, bench, probing, deadline)
            cause = _bisect.cause(search, result.moved, known)
            result = result._replace(cause=cause.cause, unexplained=cause.unexplained, trials=cause.trials)
    return result._replace(seconds=round(time.monotonic() - started, 1))


def _differing(recordings: list[probes.Recording]) -> list[tuple[probes.Row, probes.Row, Difference]]:
    found = ((row, other, probes.first_difference(row, other)) for row, other in probes.pairs(*recordings))
    return [(row, other, each) for row, other, each in found if each is not None]


def _comparison(
    stacks: list[_sides.Stack], recordings: list[probes.Recording], differences: tuple[Difference, ...]
) -> Comparison:
    cases = len(list(probes.pairs(*recordings)))
    skipped = probes.not_compared(*recordings)
    old, new = (Side(stack.name, stack.pins) for stack in stacks)
    if not cases:
        whys = [each.failure for each in recordings if each.failure] or sorted(set(skipped.values()))
        seen = "; ".join(whys[:2]) or "no case runs in both"
        advice = "both environments need a working torch and transformers"
        raise NothingInspectedError("comparing", f"{old.name} and {new.name}", seen, advice)
    before, after = (each.memory_mib for each in recordings)
    memory = (before, after) if before and after else None
    moved = _moved(stacks, recordings)
    return Comparison(old, new, cases, differences, skipped, moved=moved, memory_mib=memory)


def draft(found: Comparison) -> str | None:
    """A draft of a matrix entry about the difference; None where no cause is named."""
    if found.cause is None:
        return None
    return _draft.text(found, found.cause, date.today().isoformat())


def _moved(stacks: list[_sides.Stack], recordings: list[probes.Recording]) -> dict[str, tuple[str | None, str | None]]:
    """The packages whose versions differ, of those that either recording imported."""
    imported = recordings[0].distributions | recordings[1].distributions
    names = sorted({*stacks[0].pins, *stacks[1].pins})
    versions = {name: (stacks[0].pins.get(name), stacks[1].pins.get(name)) for name in names}
    return {name: pair for name, pair in versions.items() if pair[0] != pair[1] and (not imported or name in imported)}
