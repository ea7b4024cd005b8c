"""Why no set of versions is free of everything known to be bad."""

from __future__ import annotations

from typing import NamedTuple

from compatcheck.advice.model import Demands, Solution
from compatcheck.advice.search._cost import GONE, specifiers

_MOST = 8
"""How many dead ends a person reads before the rest is only counted."""


class Step(NamedTuple):
    """One entry, and the way that was taken to clear it."""

    id: str
    title: str
    way: Demands


class Attempt(NamedTuple):
    """A way to clear an entry that led nowhere.

    ``after`` are the steps taken before, ``why`` says what forbids the way: the resolver's words, or what it
    contradicts, or the entries that hold then and cannot be cleared either.
    """

    id: str
    title: str
    demand: str
    after: tuple[Step, ...]
    why: str


class Conflict(NamedTuple):
    """No set of versions clears every entry. ``best`` is the one with the fewest left."""

    attempts: tuple[Attempt, ...]
    best: Solution
    resolutions: int


def explain(conflict: Conflict) -> str:
    """The conflict as lines of text: under each entry what would clear it, and what forbids that."""
    failures: dict[tuple[str, str, str], dict[str, str]] = {}
    for attempt in sorted(conflict.attempts, key=lambda attempt: len(attempt.after)):
        after = " and ".join(dict.fromkeys(f"{spell(step.way)} (for {step.id})" for step in attempt.after))
        failures.setdefault((attempt.id, attempt.title, after), {}).setdefault(attempt.demand, attempt.why)
    lines = []
    for (entry, title, after), reasons in list(failures.items())[:_MOST]:
        lines.append(f"{entry} ({title}) cannot be cleared{f' with {after}' if after else ''}:")
        for why in dict.fromkeys(reasons.values()):
            demands = [demand for demand, reason in reasons.items() if reason == why]
            lines.append(f"  {' or '.join(demands)}: {why}")
    if len(failures) > _MOST:
        lines.append(f"and {len(failures) - _MOST} more combinations fail in the same way")
    return "".join(line + "\n" for line in lines)


def spell(demands: Demands) -> str:
    """The demands as a person writes them."""
    named = [_spell(name, specifier) for name, specifier in demands.specifiers.items()]
    named += [f"torch built for {demands.torch_backend}"] if demands.torch_backend else []
    return " with ".join(named + (["a change by hand"] if demands.by_hand else []))


def _spell(name: str, specifier: str) -> str:
    return f"no {name}" if specifier == GONE else name + specifier if specifier else f"{name} installed"


def contradiction(way: Demands, after: tuple[Step, ...]) -> str | None:
    """Which steps before leave no version for this way; None where they do not."""
    for name, specifier in way.specifiers.items():
        earlier = {step.way.specifiers[name]: step.id for step in after if step.way.specifiers.get(name)}
        if specifiers(",".join(filter(None, (specifier, *earlier)))).is_unsatisfiable():
            return " and ".join(f"{entry} needs {name}{demand}" for demand, entry in earlier.items())
    return None
