"""Whether ranks that work have stopped, and which of them keeps the others waiting; no I/O.

A rank marks what it does next, in the same order everywhere, so the one with the fewest marks is the one the others
wait for. It is slow while it uses the processor or the disk, or its code moves on, and hung when it does neither. Where
all wait in the operation itself, that is slow as long as the network moves bytes, and hung when it does not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

BUSY_SHARE = 0.05
MOVED_BYTES = 2**20
PATIENCE = 5.0
STOPPED = ("T", "t")
RUNNING = ("R", "D")
_WAITING = ("distributed_c10d.py", "synchronize")


class Pulse(NamedTuple):
    """What is known of a rank: its number, how many marks it has made and the last, where its code is when stuck.

    Of the last seconds: ``worked`` is its share of a processor and ``moved`` the bytes its machine's network has moved,
    None where that cannot be told; ``wandered`` is whether its code was in several places. ``state`` is the state of
    its process, Linux's letter for it.
    """

    rank: int
    arrived: int
    doing: str
    frame: str = ""
    worked: float | None = None
    moved: int | None = None
    state: str = ""
    wandered: bool = False


class Stuck(NamedTuple):
    """Why nothing goes on: the ranks at fault, all of them where none can be told, and what is seen in words."""

    ranks: tuple[int, ...]
    what: str


def stuck(pulses: Sequence[Pulse], still: float, limit: float) -> Stuck | None:
    """The fault, after ``still`` seconds without any rank having marked anything, where ``limit`` are allowed.

    None while it may be slowness alone, for which `PATIENCE` times the limit is given.
    """
    if still < limit or not pulses:
        return None
    front = max(pulse.arrived for pulse in pulses)
    behind = [pulse for pulse in pulses if pulse.arrived < front]
    suspects = behind or list(pulses)
    alive = any(map(_busy, suspects)) or (not behind and any((pulse.moved or 0) > MOVED_BYTES for pulse in pulses))
    if alive and still < PATIENCE * limit and not any(pulse.state in STOPPED for pulse in suspects):
        return None
    waited = next(pulse.doing for pulse in pulses if pulse.arrived == front)
    if behind:
        return Stuck(
            tuple(pulse.rank for pulse in behind), f"did not reach {waited} within {still:.0f} s: {_is(behind[0])}"
        )
    odd = _odd(pulses)
    if odd:
        ranks = tuple(pulse.rank for pulse in odd)
        return Stuck(ranks, f"did not pass {waited}, where the others wait, within {still:.0f} s: {_is(odd[0])}")
    everyone = tuple(pulse.rank for pulse in pulses)
    return Stuck(everyone, f"all ranks entered {waited}, but none finished it within {still:.0f} s: {_is(pulses[0])}")


def _busy(pulse: Pulse) -> bool:
    if _waits(pulse):
        return False
    return pulse.wandered or pulse.state in RUNNING or (pulse.worked or 0.0) > BUSY_SHARE


def _waits(pulse: Pulse) -> bool:
    """Whether its code is where torch waits for others, which some backends do in a busy loop."""
    return any(place in pulse.frame for place in _WAITING)


def _odd(pulses: Sequence[Pulse]) -> list[Pulse]:
    """Those that are stopped, else those whose code is elsewhere than that of most."""
    stopped = [pulse for pulse in pulses if pulse.state in STOPPED]
    if stopped:
        return stopped
    places = Counter(pulse.frame for pulse in pulses)
    usual, count = places.most_common(1)[0]
    if len(places) == 1 or len(pulses) == 2:
        return _outside(pulses)
    return [pulse for pulse in pulses if pulse.frame != usual] if 2 * count > len(pulses) else _outside(pulses)


def _outside(pulses: Sequence[Pulse]) -> list[Pulse]:
    """Those who do not wait while others do."""
    inside = [pulse for pulse in pulses if _waits(pulse)]
    return [pulse for pulse in pulses if pulse not in inside] if inside else []


def _is(pulse: Pulse) -> str:
    """What a rank is at, in words."""
    if pulse.state in STOPPED:
        return "the process is stopped"
    if not pulse.frame:
        return f"the rank is at {pulse.doing}" if pulse.doing else "the rank has not started"
    return f"the rank is in {pulse.frame}"
