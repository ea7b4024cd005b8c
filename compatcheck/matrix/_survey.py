"""What the matrix says of many environments that are made of the same few choices, such as versions and GPUs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from itertools import chain, combinations, islice, product
from typing import Any, NamedTuple

from compatcheck.environment import Environment
from compatcheck.inference.infer import infer
from compatcheck.inference.inferred import Judged
from compatcheck.matrix._traits import computed_traits, trait_finder
from compatcheck.matrix.loading import Matrix, all_entries
from compatcheck.matrix.matching.match import (
    Conditions,
    TraitFinder,
    TraitVerdict,
    Verdict,
    any_of,
    is_reported,
    match_table,
    status_of,
)
from compatcheck.results.findings import Status

Choice = Mapping[str, Any]
Choices = Sequence[Choice]
Place = tuple[int, ...]

_INFERRED = {
    "training.dtype": ("training", "gpus", "distributions.torch"),
    "training.unquantized_dtype": ("training", "distributions.transformers"),
    "cuda.runtime": ("cuda", "distributions.torch"),
    "python": ("python", "distributions.torch"),
}
"""What `infer` derives, and the facts that it reads for it."""
_PAIRS = 200
"""The pairs of choices beside which a third is tried."""


class Reach(NamedTuple):
    """The status of an entry by the places of the choices in those ``dimensions`` that decide about it."""

    id: str
    dimensions: tuple[int, ...]
    statuses: Mapping[Place, Status]


class _Matcher(NamedTuple):
    """An environment, and what was found out about it so far."""

    judged: Judged
    traits: TraitFinder
    known: dict[str, Verdict]

    def verdict(self, conditions: Conditions) -> Verdict:
        return match_table(conditions, self.judged.view, self.traits, self.known, self.judged.inferred)

    def trait(self, name: str) -> TraitVerdict:
        return self.traits(name, self.judged.view)


class _Survey(NamedTuple):
    """The dimensions with what follows from each choice alone, and the matcher of some choices.

    Each choice is named by its dimension and its place there.
    """

    dimensions: Sequence[Choices]
    shared: int
    matcher: Callable[[tuple[tuple[int, int], ...]], _Matcher]
    sways: Callable[[str, int], bool]

    def at(self, chosen: Iterable[tuple[int, int]]) -> _Matcher:
        return self.matcher(tuple(sorted(chosen)))


def survey(matrix: Matrix, shared: Sequence[Choices], added: Sequence[Choices]) -> list[list[Reach]]:
    """What is reported of every combination of one choice from each shared dimension and one from an added one.

    One list for each of the added dimensions, which takes the place after the shared ones; an entry that it does not
    decide about is judged once for all. A choice that fails a table by itself does so in every combination, as facts
    that are added can only decide what was open; so few combinations are left, and each of those is judged whole.
    """
    within = _prepared(matrix, shared, added)
    common = tuple(range(len(shared)))
    found: list[list[Reach]] = [[] for _ in added]
    for entry in all_entries(matrix):
        without = None
        for number, reaches in enumerate(found):
            own = len(shared) + number
            if any(_decides(own, table, within) for table in entry["affected"]):
                result = _reach(entry, within, (*common, own))
            else:
                result = without = without or _reach(entry, within, common)
            if result.statuses:
                places = tuple(min(at, len(shared)) for at in result.dimensions)
                reaches.append(result._replace(dimensions=places))
    return found


def _prepared(matrix: Matrix, shared: Sequence[Choices], added: Sequence[Choices]) -> _Survey:
    dimensions = (*shared, *added)

    def judged(facts: Choice) -> Judged:
        return infer(Environment(facts), matrix.table, matrix.guards)

    @lru_cache(maxsize=50_000)
    def matcher(place: tuple[tuple[int, int], ...]) -> _Matcher:
        whole = _joined([dimensions[at][choice] for at, choice in place])
        return _Matcher(judged(whole), trait_finder(matrix.table), {})

    @cache
    def sways(trait: str, dimension: int) -> bool:
        return _sways(trait, dimension, within)

    views = [[judged(each).view.facts for each in choices] for choices in dimensions]
    within = _Survey(views, len(shared), matcher, sways)
    return within


def _sways(trait: str, dimension: int, within: _Survey) -> bool:
    """Whether a computed trait comes out differently for the choices of a dimension, alone or beside others.

    Beside one other choice, and beside two that together say what neither says alone: a link between two releases that
    only some runs get to depends on a third.
    """
    others = [
        (at, place)
        for at, each in enumerate(within.dimensions)
        for place in range(len(each))
        if at != dimension and min(at, dimension) < within.shared
    ]
    pairs = (
        pair
        for pair in combinations(others, 2)
        if len({at for at, _ in pair}) == 2 and min(at for at, _ in pair) < within.shared
    )
    alone = {other: within.at([other]).trait(trait) for other in others}
    telling = (pair for pair in pairs if within.at(pair).trait(trait) not in (alone[pair[0]], alone[pair[1]]))
    for beside in chain([()], ((other,) for other in others), islice(telling, _PAIRS)):
        bare = within.at(beside)
        without = bare.trait(trait)
        for choice in range(len(within.dimensions[dimension])):
            whole = within.at((*beside, (dimension, choice)))
            if whole.trait(trait) != without:
                return True
    return False


def _reach(entry: Mapping[str, Any], within: _Survey, among: Sequence[int]) -> Reach:
    tables = entry["affected"]
    deciding = tuple(at for at in among if any(_decides(at, table, within) for table in tables))
    places = {place for table in tables for place in product(*(_open(table, at, within) for at in deciding))}
    statuses: dict[Place, Status] = {}
    for place in places:
        whole = within.at(zip(deciding, place))
        verdict = any_of(whole.verdict(each) for each in tables)
        if is_reported(verdict):
            statuses[place] = status_of(verdict, entry["confidence"])
    return Reach(entry["id"], deciding, statuses)


def _open(table: Conditions, dimension: int, within: _Survey) -> list[int]:
    """The choices of one dimension that do not fail a table by themselves."""
    choices = range(len(within.dimensions[dimension]))
    return [choice for choice in choices if within.at([(dimension, choice)]).verdict(table).holds is not False]


def _decides(dimension: int, table: Conditions, within: _Survey) -> bool:
    """Whether a table may read any fact that one of the choices states."""
    stated = {fact for choice in within.dimensions[dimension] for fact in _facts(choice)}
    if not stated.isdisjoint(fact for path in table for fact in _read(path)):
        return True
    computed = set(table.get("traits", ())) & computed_traits()
    return any(within.sways(trait, dimension) for trait in computed)


def _facts(choice: Choice) -> Iterator[str]:
    for name, value in choice.items():
        if name == "distributions":
            yield from (f"distributions.{each}" for each in value)
        else:
            yield name


def _read(path: str) -> tuple[str, ...]:
    """The facts of a choice that a condition reads."""
    if path.startswith("distributions."):
        return (path,)
    group = path.partition(".")[0]
    return _INFERRED.get(path, ({"gpu": "gpus", "every_gpu": "gpus", "traits": "model"}.get(group, group),))


def _joined(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    joined: dict[str, Any] = {}
    for part in parts:
        for name, value in part.items():
            both = isinstance(value, Mapping) and isinstance(joined.get(name), Mapping)
            joined[name] = _joined((joined[name], value)) if both else value
    return joined
