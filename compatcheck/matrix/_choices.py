"""Environments that are made of choices, and functions of them as diagrams of what their result depends on.

A function runs in an environment where no choice is made yet. Where it reads a fact that a choice decides, it is
started again for each group of choices that leave the same to be read; choices that led to the same are then one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar

from compatcheck.environment import Environment, Unknown, paths
from compatcheck.inference.inferred import Inference, with_inference
from compatcheck.matrix.matching.match import ManyEnvironments

Choice = Mapping[str, Any]
Choices = Sequence[Choice]
Groups = Sequence[tuple[int, ...]]
Made = Mapping[int, tuple[int, ...]]
"""The places that are still to choose from, by dimension; all of a dimension that is missing."""
_ALL_OPEN: Made = {}
Result = TypeVar("Result")
Step = Callable[[Environment], Mapping[str, Inference]]


class UndecidedError(BaseException):
    """What was read depends on a choice that is not made yet; no function may catch it."""

    def __init__(self, dimension: int, groups: Groups) -> None:
        self.dimension, self.groups = dimension, groups


class Diagram:
    """A value, or what follows for each choice of a dimension. Within a space equal diagrams are the same object."""

    __slots__ = ("branches", "dimension", "value")

    def __init__(self, value: Any, dimension: int = -1, branches: tuple[Diagram, ...] = ()) -> None:
        self.value, self.dimension, self.branches = value, dimension, branches


class Space:
    """Dimensions to choose from: each shared one, the number of an added one, and that one.

    An environment is one choice of each shared dimension and one of a single added one, joined.
    """

    def __init__(self, shared: Sequence[Choices], added: Sequence[Choices]) -> None:
        self.shared, self.added = tuple(shared), tuple(added)
        self.which = len(shared)
        self.sizes = (*map(len, shared), len(added), *map(len, added))
        self._chosen: Made = {}
        self._stating: dict[tuple[str, str | None], list[int]] = {}
        self._sometimes: dict[tuple[str, str | None], list[tuple[int, bool]]] = {}
        self._leaves: dict[str, Diagram] = {}
        self._nodes: dict[tuple[int, ...], Diagram] = {}
        self._restricted: dict[tuple[int, int, int], Diagram] = {}

    def diagram(self, function: Callable[[], object], made: Made = _ALL_OPEN) -> Diagram:
        """The results of a function of the choices, where no more than some are left to choose from."""
        outer, self._chosen = self._chosen, made
        try:
            value = function()
        except UndecidedError as missing:
            at, groups = missing.dimension, missing.groups
        else:
            return self.leaf(value)
        finally:
            self._chosen = outer
        found = {place: self.diagram(function, {**made, at: group}) for group in groups for place in group[:1]}
        branches = {place: self.restricted(found[group[0]], at, place) for group in groups for place in group}
        unasked = next(iter(branches.values()))
        return self._node(at, [branches.get(place, unasked) for place in range(self.sizes[at])])

    def leaf(self, value: object) -> Diagram:
        return self._leaves.setdefault(repr(value), Diagram(value))

    def _node(self, dimension: int, branches: Sequence[Diagram]) -> Diagram:
        first = branches[0]
        if all(each is first for each in branches):
            return first
        key = (dimension, *map(id, branches))
        return self._nodes.setdefault(key, Diagram(None, dimension, tuple(branches)))

    def value(self, diagram: Diagram) -> Any:
        """The value for what is chosen. Raises UndecidedError where that does not decide it."""
        while diagram.branches:
            left = self._left(diagram.dimension)
            first = diagram.branches[left[0]]
            if len(left) > 1 and any(diagram.branches[place] is not first for place in left):
                raise UndecidedError(diagram.dimension, _alike(diagram, left))
            diagram = first
        return diagram.value

    def restricted(self, diagram: Diagram, dimension: int, place: int) -> Diagram:
        """What is left of a diagram with one choice made."""
        if not diagram.branches:
            return diagram
        if diagram.dimension == dimension:
            return self.restricted(diagram.branches[place], dimension, place)
        key = (id(diagram), dimension, place)
        if key not in self._restricted:
            left = [self.restricted(each, dimension, place) for each in diagram.branches]
            self._restricted[key] = self._node(diagram.dimension, left)
        return self._restricted[key]

    def joined(self, one: Diagram, other: Diagram, join: Callable[[Any, Any], Diagram]) -> Diagram:
        """What comes of the values of two diagrams, for each combination of them that can be chosen."""
        known: dict[tuple[int, int], Diagram] = {}

        def of(one: Diagram, other: Diagram) -> Diagram:
            key = (id(one), id(other))
            if key not in known:
                known[key] = branched(one, other)
            return known[key]

        def branched(one: Diagram, other: Diagram) -> Diagram:
            if not one.branches and not other.branches:
                return join(one.value, other.value)
            at = one.dimension if one.branches else other.dimension
            places = range(self.sizes[at])
            return self._node(
                at, [of(*(self.restricted(each, at, place) for each in (one, other))) for place in places]
            )

        return of(one, other)

    def _place(self, dimension: int) -> int:
        left = self._left(dimension)
        if len(left) > 1:
            raise UndecidedError(dimension, [(place,) for place in left])
        return left[0]

    def _left(self, dimension: int) -> tuple[int, ...]:
        return self._chosen.get(dimension) or tuple(range(self.sizes[dimension]))

    def _choices(self, dimension: int) -> Choices:
        at = dimension - self.which - 1
        return self.shared[dimension] if at < 0 else self.added[at]

    def stating(self, name: str, key: str | None) -> list[int]:
        """The dimensions of which some choice states a fact, or one key of it."""
        if (name, key) not in self._stating:
            dimensions = (*range(self.which), *range(self.which + 1, len(self.sizes)))
            found = [each for each in dimensions if any(_holds(choice, name, key) for choice in self._choices(each))]
            self._stating[name, key] = found
        return self._stating[name, key]

    def chosen(self, dimension: int) -> Choice | None:
        """The choice of a dimension; None of an added one that is not the one added."""
        if dimension > self.which and self._place(self.which) != dimension - self.which - 1:
            return None
        return self._choices(dimension)[self._place(dimension)]

    def states(self, name: str, key: str | None) -> bool:
        """Whether what is chosen states a fact, or one key of it."""
        if (name, key) not in self._sometimes:
            stating = self.stating(name, key)
            always = [each for each in stating if all(_holds(choice, name, key) for choice in self._choices(each))]
            is_certain = any(each < self.which for each in always)
            self._sometimes[name, key] = [] if is_certain else [(each, each in always) for each in stating]
        sometimes = self._sometimes[name, key]
        if not sometimes:
            return bool(self.stating(name, key))
        return any(self._states(dimension, is_certain, name, key) for dimension, is_certain in sometimes)

    def _states(self, dimension: int, is_certain: bool, name: str, key: str | None) -> bool:
        if dimension > self.which and self._place(self.which) != dimension - self.which - 1:
            return False
        return is_certain or _holds(self._choices(dimension)[self._place(dimension)], name, key)


def _alike(diagram: Diagram, places: Sequence[int]) -> Groups:
    """The places in groups that lead to the same."""
    groups: dict[int, list[int]] = {}
    for place in places:
        groups.setdefault(id(diagram.branches[place]), []).append(place)
    return [tuple(each) for each in groups.values()]


def _holds(choice: Choice, name: str, key: str | None) -> bool:
    return name in choice and (key is None or (isinstance(choice[name], Mapping) and key in choice[name]))


class _Rule(NamedTuple):
    """What follows by a rule, the paths it may write, and those of them that it may set aside with a reason."""

    results: Diagram
    written: frozenset[str]
    with_reasons: frozenset[str]


def _values(diagram: Diagram) -> Iterator[Any]:
    """Every value of a diagram once."""
    seen, waiting = {id(diagram)}, [diagram]
    while waiting:
        each = waiting.pop()
        if not each.branches:
            yield each.value
        new = {id(branch): branch for branch in each.branches if id(branch) not in seen}
        seen.update(new)
        waiting.extend(new.values())


class Steps:
    """What follows from the choices, rule after rule."""

    def __init__(self, space: Space, rules: Sequence[Step]) -> None:
        self._space = space
        self._rules: list[_Rule] = []
        self._read: dict[tuple[str, str | None, int], Diagram] = {}
        for step in rules:
            results = space.diagram(partial(step, self.view()))
            found = [(path, each.value) for result in _values(results) for path, each in result.items()]
            if found:
                reasoned = (path for path, value in found if isinstance(value, Unknown) and value.reason)
                self._rules.append(_Rule(results, frozenset(path for path, _ in found), frozenset(reasoned)))

    def view(self) -> View:
        """The environment with what follows by the rules so far."""
        decided = _Decided(self._space, tuple(self._rules), self._read)
        return View(_Facts(decided), _Reasons(decided))

    def inference(self, path: str) -> Inference | None:
        """What follows last for a path."""
        found = None
        for rule in self._rules:
            if path in rule.written:
                found = self._space.value(rule.results).get(path, found)
        return found


class _Decided:
    """The facts of the choices with what follows, each looked up when it is read.

    A fact that is no section, or not always one, is read as a ``whole``; of a section each of its ``keys`` by itself.
    """

    def __init__(self, space: Space, rules: Sequence[_Rule], read: dict[tuple[str, str | None, int], Diagram]) -> None:
        self.space, self._rules, self._read = space, rules, read
        self.keys: dict[str, set[str]] = {}
        choices = [choice for each in (*space.shared, *space.added) for choice in each]
        written = (path for rule in rules for path in rule.written if not path.startswith("gpus."))
        stated = (path for choice in choices for path, _ in paths.flatten(choice))
        for name, *rest in map(paths.parts, (*stated, *written)):
            self.keys.setdefault(name, set()).update(rest[:1])
        mixed = {name for choice in choices for name, value in choice.items() if not isinstance(value, Mapping)}
        self.whole = mixed | {name for name, keys in self.keys.items() if not keys}
        self.with_reasons = frozenset(path for rule in rules for path in rule.with_reasons)
        self._touching: dict[tuple[str, str | None], list[Diagram]] = {}
        self._there: dict[tuple[str, str | None], Diagram] = {}
        self._values: dict[tuple[str, str | None], Diagram] = {}
        self._results: dict[str, Diagram] = {}

    def touching(self, name: str, key: str | None) -> list[Diagram]:
        """What follows by the rules that may decide a fact, or one key of it."""
        if (name, key) not in self._touching:
            self._touching[name, key] = [
                rule.results for rule in self._rules if any(_touches(path, name, key) for path in rule.written)
            ]
        return self._touching[name, key]

    def is_open(self, name: str, key: str) -> bool:
        """Whether no choice and no rule ever says anything of one key of a section."""
        return name not in self.whole and key not in self.keys.get(name, ())

    def read(self, name: str, key: str | None) -> Mapping[str, Any]:
        """What a section holds at one key, or a fact that is none, as facts that hold at most that."""
        if (name, key) not in self._values:
            at = (name, key, len(self.touching(name, key)))
            if at not in self._read:
                self._read[at] = self.space.diagram(partial(self._looked_up, name, key))
            self._values[name, key] = self._read[at]
        facts: Mapping[str, Any] = self.space.value(self._values[name, key])
        return facts

    def _looked_up(self, name: str, key: str | None) -> Mapping[str, Any]:
        facts: Mapping[str, Any] = {}
        for dimension in self.space.stating(name, key):
            choice = self.space.chosen(dimension)
            if choice is not None and _holds(choice, name, key):
                stated = choice[name] if key is None else {key: choice[name][key]}
                facts = paths.merge(facts, {name: stated})
        for results in self.touching(name, key):
            for path, inference in self.space.value(results).items():
                if _touches(path, name, key):
                    facts = with_inference(Environment(facts), path, inference).facts
        return facts

    def once(self, name: str, function: Callable[[], Any]) -> Any:
        """The result of a function of these facts, which is called once for choices that it cannot tell apart."""
        if name not in self._results:
            self._results[name] = self.space.diagram(function)
        return self.space.value(self._results[name])

    def has(self, name: str, key: str | None) -> bool:
        if (name, key) not in self._there:
            self._there[name, key] = self.space.diagram(partial(self._is_there, name, key))
        return bool(self.space.value(self._there[name, key]))

    def _is_there(self, name: str, key: str | None) -> bool:
        if not self.touching(name, key):
            return self.space.states(name, key)
        facts = self.read(name, key)
        return name in facts if key is None else key in facts.get(name, ())


def _touches(path: str, name: str, key: str | None) -> bool:
    parts = paths.parts(path)
    return parts[0] == name and (key is None or len(parts) == 1 or parts[1] == key)


class _Facts(Mapping[str, Any]):
    def __init__(self, decided: _Decided) -> None:
        self.decided = decided

    def __getitem__(self, name: str) -> Any:
        if name not in self:
            raise KeyError(name)
        return self.decided.read(name, None)[name] if name in self.decided.whole else _Section(self.decided, name)

    def __contains__(self, name: object) -> bool:
        decided = self.decided
        if not isinstance(name, str) or name not in decided.keys:
            return False
        if name in decided.whole or not decided.touching(name, None):
            return decided.has(name, None)
        certain = (key for key in decided.keys[name] if not decided.touching(name, key))
        return any(decided.has(name, key) for key in (*certain, *decided.keys[name]))

    def __iter__(self) -> Iterator[str]:
        return (name for name in self.decided.keys if name in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)


class _Section(Mapping[str, Any]):
    def __init__(self, decided: _Decided, name: str) -> None:
        self._decided, self._name = decided, name

    def __getitem__(self, key: str) -> Any:
        if key not in self._decided.keys[self._name]:
            raise KeyError(key)
        return self._decided.read(self._name, key).get(self._name, {})[key]

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and key in self._decided.keys[self._name] and self._decided.has(self._name, key)

    def __iter__(self) -> Iterator[str]:
        return (key for key in sorted(self._decided.keys[self._name]) if key in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)


class _Reasons(Mapping[str, str]):
    """Why facts are unknown that a rule sets aside."""

    def __init__(self, decided: _Decided) -> None:
        self._decided = decided

    def __getitem__(self, path: str) -> str:
        if path not in self._decided.with_reasons:
            raise KeyError(path)
        name, *rest = paths.parts(path)
        environment = Environment()
        for results in self._decided.touching(name, rest[0] if rest else None):
            for at, inference in self._decided.space.value(results).items():
                environment = with_inference(environment, at, inference)
        return environment.reasons[path]

    def __iter__(self) -> Iterator[str]:
        return (path for path in self._decided.with_reasons if path in self)

    def __len__(self) -> int:
        return len(self._decided.with_reasons)


class View(ManyEnvironments):
    """An environment that asks for no choice where none says anything of a fact."""

    def get(self, path: str) -> Any:
        name, *rest = paths.parts(path)
        decided = self.facts.decided if isinstance(self.facts, _Facts) else None
        if decided is None or not rest or name in decided.whole:
            return super().get(path)
        value: Any = {} if decided.is_open(name, rest[0]) else decided.read(name, rest[0]).get(name, {})
        for part in rest:
            if value is None:
                return None
            if not isinstance(value, Mapping) or part not in value:
                return None if self._lacks(path) else Unknown(self._reason(path))
            value = value[part]
        return value

    def once(self, name: str, function: Callable[[], Result]) -> Result:
        if not isinstance(self.facts, _Facts):
            return function()
        result: Result = self.facts.decided.once(name, function)
        return result
