"""Where two records differ by more than rounding.

The error of a value is the distance of the two sketches over the size of the value, in the 2-norm; a gradient or
update that is much smaller than the others is measured against the size that its share of all of them would have. The
budget is FLOOR unit roundoffs of the case's dtype for each step so far, and SPREAD times the distance that the same
case has in the same environment once every weight is moved by one rounding: that shows how far rounding carries in
this very computation, through whatever optimizer or route. theta is error over budget, and a difference is one above
FAIL_THETA, as for probes.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from compatcheck.probes._criterion import FAIL_THETA, UNIT_ROUNDOFF
from compatcheck.results.comparisons import Difference, Trajectory

FLOOR = {"float32": 128.0, "bfloat16": 16.0, "float16": 16.0}
SPREAD = 8.0
SMALL = 2.0**-4
LOGGED = 2e-4
"""Logged numbers are rounded to four decimals, by some releases."""

Row = Mapping[str, Any]
Key = tuple[str, str, int, int]
"""What a value is, its name, its step, and how many values of these came before it: a module may be called twice."""


class Recording(NamedTuple):
    """What one environment wrote down: a row for each case, and the distributions that were imported.

    ``failure`` says why the process gave no whole record.
    """

    rows: tuple[Row, ...]
    distributions: frozenset[str]
    memory_mib: float | None
    failure: str = ""


def first_difference(old: Row, new: Row) -> Difference | None:
    """The first value of a case, in the order of OLD, that differs by more than rounding."""
    return next((each for each in _comparisons(old, new) if each.theta > FAIL_THETA), None)


def theta_at(old: Row, new: Row, found: Difference) -> float | None:
    """The largest theta of the value that a difference names; None where either record lacks it."""
    where = (found.what, found.name, found.step)
    thetas = [each.theta for each in _comparisons(old, new) if (each.what, each.name, each.step) == where]
    return max(thetas, default=None)


def trajectory(old: Row, new: Row, found: Difference) -> Trajectory:
    """The course of what differs over the steps, or over the values of one pass where that has no steps."""
    what = found.what
    steps = {value["step"] for value in old["values"] if value["what"] == what}
    if len(steps) > 1:
        pick = "logged loss" if what in ("update", "gradient", "logged loss") and _has(old, "logged loss") else what
        points = [_course(row, pick, found.name if pick == what else "") for row in (old, new)]
        return Trajectory(found.case, pick, points[0], points[1], float(found.step))
    names = [value["name"] for value in old["values"] if value["what"] == what and "norm" in value]
    norms = [
        {value["name"]: value["norm"] for value in row["values"] if value["what"] == what and "norm" in value}
        for row in (old, new)
    ]
    places = [(at + 1.0, name) for at, name in enumerate(names) if name in norms[1]]
    first = next((at for at, name in places if name == found.name), None)
    lines = [tuple((at, each[name]) for at, name in places) for each in norms]
    return Trajectory(found.case, what, lines[0], lines[1], first, "module")


def _has(row: Row, what: str) -> bool:
    return any(value["what"] == what for value in row["values"])


def _course(row: Row, what: str, name: str) -> tuple[tuple[float, float], ...]:
    found = [value for value in row["values"] if value["what"] == what and value["name"] == name and "norm" in value]
    return tuple((float(value["step"]), _number(value)) for value in found)


def _number(value: Row) -> float:
    if value.get("nonfinite"):
        return math.nan
    return float(value["sketch"][0] if value["size"] == 1 else value["norm"])


def _compared(
    case: Row, index: int, value: Row, other: Row | None, scales: Mapping[tuple[str, int], float]
) -> Difference | None:
    """The distance of two values; None where they cannot be compared."""
    where = (case["case"], value["what"], value["name"], value["step"])
    if "text" in value:
        if other is None and value["what"] != "trained parameters":
            return None
        new = other["text"] if other else "0"
        equal = new == value["text"]
        return Difference(*where, value["text"], new, 0.0 if equal else math.inf, 0.0 if equal else math.inf)
    if other is None or other["size"] != value["size"]:
        return None
    old_lost, new_lost = value.get("nonfinite", 0), other.get("nonfinite", 0)
    if old_lost or new_lost:
        theta = 0.0 if bool(old_lost) == bool(new_lost) else math.inf
        return Difference(*where, _number(value), _number(other), theta, theta)
    scale = max(value["norm"], other["norm"], _least(value, scales)) or 1.0
    unit = UNIT_ROUNDOFF[case["dtype"]] * FLOOR[case["dtype"]] * (1 + value["step"])
    budget = unit + SPREAD * _spread(case, index, value) / scale
    if value["what"].startswith("logged") or value["what"] == "evaluation loss":
        budget += LOGGED / scale
    relative = _distance(value["sketch"], other["sketch"]) / scale
    return Difference(*where, _number(value), _number(other), relative, relative / budget)


def _spread(case: Row, index: int, value: Row) -> float:
    """How far the value moves, where the record says, once every weight moves by one rounding."""
    moved = case.get("moved") or ()
    sketch = moved[index] if index < len(moved) else None
    return _distance(value["sketch"], sketch) if sketch and len(sketch) == len(value["sketch"]) else 0.0


def _distance(one: Sequence[float], other: Sequence[float]) -> float:
    return math.sqrt(sum((a - b) ** 2 for a, b in zip(one, other)) / len(one))


def _least(value: Row, scales: Mapping[tuple[str, int], float]) -> float:
    return float(SMALL * scales.get((value["what"], value["step"]), 0.0) * math.sqrt(value["size"]))


def _scales(values: Sequence[Row]) -> dict[tuple[str, int], float]:
    """The root mean square of an element of all gradients, or all updates, of a step."""
    totals: dict[tuple[str, int], list[float]] = {}
    for value in values:
        if value["what"] in ("gradient", "update"):
            total = totals.setdefault((value["what"], value["step"]), [0.0, 0.0])
            total[0] += value["norm"] ** 2
            total[1] += value["size"]
    return {key: math.sqrt(total / (size or 1)) for key, (total, size) in totals.items()}


def _comparisons(old: Row, new: Row) -> Iterator[Difference]:
    """The distance of each value of OLD that can be compared, in the order of OLD."""
    others, scales = _by_key(new["values"]), _scales(old["values"])
    for index, (key, value) in enumerate(_by_key(old["values"]).items()):
        found = _compared(old, index, value, others.get(key), scales)
        if found is not None:
            yield found


def _by_key(values: Sequence[Row]) -> dict[Key, Row]:
    earlier: Counter[tuple[str, str, int]] = Counter()
    found: dict[Key, Row] = {}
    for value in values:
        key = (value["what"], value["name"], value["step"])
        found[(*key, earlier[key])] = value
        earlier[key] += 1
    return found


def pairs(old: Recording, new: Recording) -> Iterator[tuple[Row, Row]]:
    """The cases that ran to their end in both, in the order of OLD."""
    ran = {row["case"]: row for row in new.rows if "values" in row}
    for row in old.rows:
        if "values" in row and row["case"] in ran:
            yield row, ran[row["case"]]


def not_compared(old: Recording, new: Recording) -> dict[str, str]:
    """Why a case that one of them has was not compared."""
    reasons: dict[str, str] = {}
    rows = [{row["case"]: row for row in each.rows} for each in (old, new)]
    for name in dict.fromkeys((*rows[0], *rows[1])):
        for side, each in zip(("OLD", "NEW"), rows):
            if name not in each:
                reasons[name] = f"{side} does not have it"
            elif "values" not in each[name]:
                reasons[name] = f"{side}: {each[name]['error']}"
    return reasons
