"""Examples and their neighbours: each has the verdict it states, and each condition changes one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from compatcheck.environment import Environment
from compatcheck.matrix._neighbours import Neighbour
from compatcheck.matrix._traits import Table, trait_finder
from compatcheck.matrix.entry import Entry
from compatcheck.matrix.matching.match import match_table
from compatcheck.packages.versions import is_range

Facts = Mapping[str, Any]
"""Facts of an environment by their paths."""

_EXPECTATIONS = {True: "affected", False: "unaffected", None: "undetermined"}


def false_examples(entry: Entry, around: Sequence[Neighbour], table: Table) -> Iterator[str]:
    for number, case in enumerate(entry.cases, 1):
        seen = verdict(entry.affected, case.environment, table)
        if seen != case.expect:
            yield f"example {number} is {seen}, not {case.expect}: {case.environment}"
    lacking = {"affected", "unaffected", "undetermined"} - {case.expect for case in entry.cases}
    if lacking:
        lacking -= {verdict(entry.affected, each.environment, table) for each in around}
    if lacking:
        yield f"no example is {' or '.join(sorted(lacking))}"
    for number, conditions in enumerate(entry.affected, 1):
        if not any(verdict([conditions], case.environment, table) == "affected" for case in entry.cases):
            yield f"no example is affected by table {number}"


def false_neighbours(entry: Entry, around: Sequence[Neighbour], table: Table) -> Iterator[str]:
    """Each bound must divide where it says, and a missing fact leave its table open."""
    for each in around:
        seen = _holds(entry.affected[each.number], each.environment, table)
        if seen is not each.holds:
            expected = _EXPECTATIONS[each.holds]
            yield f"table {each.number + 1}: an example with {each.what} is {_EXPECTATIONS[seen]}, not {expected}"


def idle_conditions(entry: Entry, around: Sequence[Neighbour], table: Table) -> Iterator[str]:
    """Each key and each bound must change the verdict on an example, or on a neighbour that differs in its fact."""
    judged = [[_holds(each, case.environment, table) for each in entry.affected] for case in entry.cases]
    for number, conditions in enumerate(entry.affected):
        for path, what, fewer in _without_one(conditions):
            tried = zip((case.environment for case in entry.cases), judged)
            beside = (each.environment for each in around if (each.number, each.path) == (number, path))
            judged_beside = ((facts, [_holds(other, facts, table) for other in entry.affected]) for facts in beside)
            if not any(
                _best(holds) != _best([*holds[:number], _holds(fewer, facts, table), *holds[number + 1 :]])
                for facts, holds in chain(tried, judged_beside)
            ):
                yield f"table {number + 1}: no example changes without {what}"


def _without_one(conditions: Mapping[str, Any]) -> Iterator[tuple[str, str, dict[str, object]]]:
    """The table less one key, one bound of a range or one of several traits, each with its path and its name.

    The presence of a package beside a trait stays: it says when the trait need not be computed at all.
    """
    for path, condition in conditions.items():
        if condition == "present" and "traits" in conditions:
            continue
        yield path, path, {key: value for key, value in conditions.items() if key != path}
        bounds = condition.split(",") if isinstance(condition, str) and is_range(condition) else []
        for bound in bounds if len(bounds) > 1 else ():
            rest = ",".join(other for other in bounds if other != bound)
            yield path, f"{path} {bound}", {**conditions, path: rest}
    for trait in conditions.get("traits", ()) if len(conditions.get("traits", ())) > 1 else ():
        yield (
            "traits",
            f"the trait {trait}",
            {**conditions, "traits": [other for other in conditions["traits"] if other != trait]},
        )


def verdict(tables: Iterable[Mapping[str, Any]], facts: Facts, table: Table) -> str:
    return _EXPECTATIONS[_best([_holds(conditions, facts, table) for conditions in tables])]


def _holds(conditions: Mapping[str, object], facts: Facts, table: Table) -> bool | None:
    return match_table(conditions, Environment(facts), trait_finder(table)).holds


def _best(several: Sequence[bool | None]) -> bool | None:
    """Of several tables: one that holds, else one that is open, else none."""
    return True if True in several else None if None in several else False
