"""What the matrix says of many environments that are made of the same few choices, such as versions and GPUs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import product
from typing import Any, NamedTuple

from compatcheck.environment import Environment
from compatcheck.inference.infer import is_cuda_build, python_range, rules
from compatcheck.inference.inferred import Inference, InferredFacts, Limit, Table
from compatcheck.inference.report_date import limits_by_day
from compatcheck.inference.required_packages import required
from compatcheck.matrix._choices import Choices, Diagram, Space, Steps
from compatcheck.matrix._traits import trait_finder
from compatcheck.matrix.loading import Matrix, all_entries
from compatcheck.matrix.matching.match import (
    Conditions,
    Occurrence,
    TraitVerdict,
    Verdict,
    is_reported,
    join_parts,
    match_parts,
    status_of,
)
from compatcheck.results.findings import Status

Place = tuple[int, ...]
_SOMEWHERE = (Occurrence("", ()),)


class Reach(NamedTuple):
    """The status of an entry by the places of the choices in those ``dimensions`` that decide about it."""

    id: str
    dimensions: tuple[int, ...]
    statuses: Mapping[Place, Status]


def survey(matrix: Matrix, shared: Sequence[Choices], added: Sequence[Choices]) -> list[list[Reach]]:
    """What is reported of every combination of one choice from each shared dimension and one from an added one.

    One list for each of the added dimensions, which takes the place after the shared ones. Each condition is judged
    once for all choices that it cannot tell apart.
    """
    space = Space(shared, added)
    judge = _Judge(space, matrix)
    found: list[list[Reach]] = [[] for _ in added]
    for entry in all_entries(matrix):
        statuses = judge.statuses(entry)
        for number, reaches in enumerate(found):
            here = space.restricted(statuses, space.which, number)
            if here is not judge.nothing:
                reaches.append(_reach(entry["id"], here, space, number))
    return found


class _Judge:
    """The verdicts on conditions and entries as functions of the choices."""

    def __init__(self, space: Space, matrix: Matrix) -> None:
        self._space, self._table = space, matrix.table
        bare = Steps(space, ()).view()
        steps = Steps(space, [partial(_results, rule) for rule in rules(bare, matrix.table, matrix.guards)])
        self._view, self._of_traits = steps.view(), steps.view()
        self._of_traits.verdict_on = self._verdict_on
        self._bounds = _Bounds(self._view, matrix.table, steps)
        self._parts: dict[str, Diagram] = {}
        self._traits: dict[str, Diagram] = {}
        self.nothing = space.leaf(None)

    def statuses(self, entry: Mapping[str, Any]) -> Diagram:
        """The status of an entry, None where it is not reported."""
        whole = self.nothing
        for table in entry["affected"]:
            whole = self._space.joined(whole, self._status(table, entry["confidence"]), self._worse)
        return whole

    def _worse(self, one: Status | None, other: Status | None) -> Diagram:
        return self._space.leaf("affected" if "affected" in (one, other) else one or other)

    def _status(self, table: Conditions, confidence: str) -> Diagram:
        """The status that one table gives an entry."""
        space, parts = self._space, list(_parts(table))
        verdicts = space.leaf(())
        for diagram in [self._part(part) for _, part in parts]:
            verdicts = space.joined(verdicts, diagram, self._both)
            if verdicts is self.nothing:
                return verdicts

        def status(held: tuple[Verdict, ...] | None, _: object) -> Diagram:
            return self.nothing if held is None else space.diagram(partial(self._joined, table, confidence, held))

        return space.joined(verdicts, self.nothing, status)

    def _both(self, known: tuple[Verdict, ...] | None, verdict: Verdict) -> Diagram:
        failed = known is None or verdict.holds is False
        return self.nothing if failed else self._space.leaf((*(known or ()), verdict))

    def _joined(self, table: Conditions, confidence: str, verdicts: tuple[Verdict, ...]) -> Status | None:
        named = dict(zip((name for name, _ in _parts(table)), verdicts))
        verdict = join_parts(table, named, self._view)
        return status_of(verdict, confidence) if is_reported(verdict) else None

    def _part(self, conditions: Conditions) -> Diagram:
        """The verdict on a condition, or on all that a table demands of one GPU."""
        key = repr(conditions)
        if key not in self._parts:
            self._parts[key] = self._space.diagram(partial(self._verdict, conditions))
        return self._parts[key]

    def _verdict_on(self, conditions: Conditions) -> Verdict:
        verdict: Verdict = self._space.value(self._part(conditions))
        return verdict

    def _verdict(self, conditions: Conditions) -> Verdict:
        """A verdict less what a report says of it and its status does not depend on."""
        (verdict,) = dict(match_parts(conditions, self._view, self._trait, {}, self._bounds)).values()
        occurrences = _SOMEWHERE if verdict.occurrences else ()
        return Verdict(verdict.holds, (), occurrences, verdict.narrowed, expected=verdict.expected)

    def _trait(self, name: str, view: Environment) -> TraitVerdict:
        if name not in self._traits:
            self._traits[name] = self._space.diagram(partial(self._found, name))
        verdict: TraitVerdict = self._space.value(self._traits[name])
        return verdict

    def _found(self, name: str) -> TraitVerdict:
        found = trait_finder(self._table)(name, self._of_traits)
        occurrences = _SOMEWHERE if found.occurrences else ()
        return TraitVerdict(found.holds, occurrences, (), found.presumed, found.suspected)


def _parts(table: Conditions) -> Iterator[tuple[str, Conditions]]:
    gpu = {path: condition for path, condition in table.items() if path.startswith("gpu.")}
    if gpu:
        yield "gpu", gpu
    yield from ((path, {path: condition}) for path, condition in table.items() if path not in gpu)


def _results(rule: Callable[[Environment], InferredFacts], view: Environment) -> dict[str, Inference]:
    return dict(rule(view))


class _Bounds:
    """What bounds the facts that stay unknown, each found out when it is first read."""

    def __init__(self, view: Environment, table: Table, steps: Steps) -> None:
        self._view, self._table, self._steps = view, table, steps

    @property
    def limits(self) -> Mapping[str, Limit]:
        return self._view.once("limits", partial(limits_by_day, self._view, self._table))

    @property
    def required(self) -> Mapping[str, str]:
        return self._view.once("required", partial(required, self._view, self._table))

    @property
    def python_range(self) -> str | None:
        return self._view.once("python_range", partial(python_range, self._view, self._table))

    @property
    def has_cuda(self) -> bool:
        return self._view.once("has_cuda", lambda: is_cuda_build(self._view, self._steps.inference("cuda.runtime")))


def _reach(name: str, statuses: Diagram, space: Space, number: int) -> Reach:
    among = (*range(space.which), space.which + 1 + number)
    deciding = [at for at in among if at in _support(statuses)]
    found: dict[Place, Status] = {}
    for place in product(*(range(space.sizes[at]) for at in deciding)):
        status = _at(statuses, dict(zip(deciding, place)))
        if status:
            found[place] = status
    return Reach(name, tuple(min(at, space.which) for at in deciding), found)


def _support(diagram: Diagram) -> set[int]:
    return {diagram.dimension}.union(*map(_support, diagram.branches)) if diagram.branches else set()


def _at(diagram: Diagram, places: Mapping[int, int]) -> Status | None:
    while diagram.branches:
        diagram = diagram.branches[places[diagram.dimension]]
    status: Status | None = diagram.value
    return status
