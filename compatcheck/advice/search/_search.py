"""Solve, check, refine: branch and bound over what the resolver is held to.

The resolver knows what fits together, the matrix what must not come together, and neither knows which set is nearest.
So a state is a set of demands. Its solution is judged; one that breaks an entry divides the state into the ways to
clear it, one that is further off than it need be into the versions that are near and those beyond. What a state costs
at least is known from its demands alone, and a state that cannot beat the best clean set is left.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Mapping, Sequence, Set
from typing import NamedTuple

from compatcheck.advice.model import Demands, Solution, Unsolvable, Violation
from compatcheck.advice.search._conflict import Attempt, Conflict, Step, contradiction, spell
from compatcheck.advice.search._cost import GONE, Span, admits, cost, is_major, line_of, satisfies, within
from compatcheck.advice.search._state import Scale, State, add_demands, complement, includes, narrow, without

Resolve = Callable[[Demands], Solution]
Judge = Callable[[Solution, Demands], Sequence[Violation]]
Answers = list[tuple[Demands, Solution | Unsolvable]]

_HOLDS = "the entry holds then all the same"


class Found(NamedTuple):
    """The nearest set that breaks no entry that versions can clear.

    ``demands`` is what the entries asked for, ``entries_by_name`` who asked for which distribution. ``proven`` is
    False where time ran out first: the set may then not be the nearest, or ``left`` may hold entries with ways to clear
    them. Else ``left`` are those that no versions clear. ``attempts`` are the ways that led nowhere.
    """

    solution: Solution
    demands: Demands
    entries_by_name: Mapping[str, tuple[str, ...]]
    proven: bool
    resolutions: int
    left: tuple[Violation, ...] = ()
    attempts: tuple[Attempt, ...] = ()


class _Judged(NamedTuple):
    state: State
    solution: Solution
    broken: tuple[Violation, ...]
    left: tuple[Violation, ...]
    distance: int
    major_steps: int

    @property
    def rank(self) -> tuple[int, int, int]:
        return len(self.broken), self.distance, self.major_steps


def search(
    resolve: Resolve,
    violations: Judge,
    start: Demands,
    preferred: Mapping[str, str],
    counted: Collection[str],
    out_of_time: Callable[[], bool] = lambda: False,
    *,
    by_hand_cost: int = 0,
) -> Found | Conflict:
    """The set of versions nearest to those preferred that breaks no entry; among equals, the fewest major steps.

    Only moves of ``counted`` names cost. What the first solution holds of these stays where a clean set has it all:
    sets that lack some are compared only where none does. Each finding that is left to the user's hand costs
    ``by_hand_cost``. Out of time, it is the set that breaks the fewest entries.

    Raises Unsolvable where nothing satisfies ``start``, and whatever else ``resolve`` raises.
    """
    first = resolve(start)
    answers: Answers = [(start._replace(by_hand=()), first)]
    scale = Scale({name: preferred[name] for name in counted if name in preferred}, start, by_hand_cost)
    every = {name for name in counted if name in first.versions}
    asked = {name for name in every if not first.parents.get(name)}
    run = _Run(resolve, violations, scale, every, answers)
    found = run.to_its_end(out_of_time)
    if asked != every and not (isinstance(found, Found) and every <= found.solution.versions.keys()):
        found = _Run(resolve, violations, scale, asked, answers, run.best).to_its_end(out_of_time)
    return found


class _Run:
    """What one search has learnt so far; ``answers`` begin with that to the start."""

    def __init__(
        self,
        resolve: Resolve,
        violations: Judge,
        scale: Scale,
        kept: Set[str],
        answers: Answers,
        best: _Judged | None = None,
    ) -> None:
        self._queue: list[tuple[tuple[int, ...], int, State]] = []
        self._resolve, self._violations, self._scale, self._answers = resolve, violations, scale, answers
        self._attempts: list[Attempt] = []
        self._pushed = 0
        installed = {name for name, specifier in scale.start.specifiers.items() if not specifier}
        first = next(answer for _, answer in answers if isinstance(answer, Solution))
        root = State(scale.start, installed | kept, solution=first)
        self._first = self._judge(root, first)
        self.best = best or self._first
        self._push(root)

    def to_its_end(self, out_of_time: Callable[[], bool]) -> Found | Conflict:
        while self._queue and not out_of_time():
            self._visit()
        return self._result()

    def _push(self, state: State) -> None:
        """Queue what promises to be nearest if nothing leaves first; what must leave waits for a set to beat."""
        parts = list(complement(state, self._scale.nearest(state))) if state.missed else [state]
        gone = sum(specifier == GONE for specifier in state.demands.specifiers.values())
        promise = min(self._scale.least(part, staying=True) for part in parts)
        floor = min(self._scale.least(part) for part in parts)
        steps = min(self._scale.major_steps(part) for part in parts)
        self._pushed += 1
        heapq.heappush(self._queue, ((gone, promise, steps, -len(state.path), self._pushed), floor, state))

    def _visit(self) -> None:
        """Look at the most promising state; one resolution at most."""
        _, floor, state = heapq.heappop(self._queue)
        if not self.best.broken and floor >= self.best.distance:
            return
        spans = self._scale.nearest(state)
        if spans and not state.missed and not state.solution:
            self._try_near(state, spans)
            return
        solution = state.solution or self._solution(state)
        if solution is None:
            return
        state = state._replace(solution=solution)
        if state.missed:
            tried = state._replace(missed=False, divided=state.divided | {name for name, _ in spans})
            for part in complement(tried, spans):
                self._push(part)
            return
        judged = self._judge(state, solution)
        if judged.rank < self.best.rank:
            self.best = judged
        if judged.broken:
            self._branch(judged)
        elif judged.distance > self._scale.least(state):
            self._divide(state, solution)

    def _try_near(self, state: State, spans: list[tuple[str, Span]]) -> None:
        """Take the nearest versions that the demands allow; the resolver by itself would take the newest."""
        near, parts = narrow(state, spans), list(complement(state, spans))
        solution = self._solution(near, recorded=not parts)
        if solution:
            self._push(near._replace(solution=solution))
            for part in parts:
                self._push(part._replace(rest=True))
        elif parts:
            self._push(state._replace(missed=True))

    def _solution(self, state: State, *, recorded: bool = True) -> Solution | None:
        """The resolver's answer; once there is a clean set only a nearer one is asked for.

        ``recorded`` says that a refusal belongs in the account of a conflict.
        """
        demands: Demands | None = state.demands
        if not self.best.broken:
            demands, recorded = self._scale.tighten(state, self.best.distance), False
        answer = self._answer(demands) if demands else None
        if isinstance(answer, Unsolvable):
            if recorded and not state.rest:
                self._record(state.path[-1], state.path[:-1], answer.seen)
            return None
        return answer

    def _answer(self, demands: Demands) -> Solution | Unsolvable:
        demands = demands._replace(by_hand=())
        for asked, answer in self._answers:
            if asked == demands or (isinstance(answer, Unsolvable) and includes(asked, demands)):
                return answer
        try:
            answer = self._resolve(demands)
        except Unsolvable as error:
            answer = error
        self._answers.append((demands, answer))
        return answer

    def _judge(self, state: State, solution: Solution) -> _Judged:
        found = self._violations(solution, state.demands)
        tried = {step.id for step in state.path}
        broken = [violation for violation in found if violation.ways or violation.id in tried]
        names = self._scale.preferred.keys() & solution.versions.keys()
        moved = [cost(self._scale.preferred[name], solution.versions[name]) for name in names]
        return _Judged(
            state,
            solution,
            tuple(broken),
            tuple(violation for violation in found if violation not in broken),
            sum(moved) + self._scale.around(state.demands),
            sum(map(is_major, moved)),
        )

    def _branch(self, judged: _Judged) -> None:
        """Divide the state into the ways to clear one entry: the one that leaves least room."""
        state = judged.state._replace(solution=None, divided=frozenset(), rest=False)
        offers = [[(way, self._add_way(state, way)) for way in violation.ways] for violation in judged.broken]
        violation, offer = max(zip(judged.broken, offers), key=lambda pair: self._room_taken(state, pair[1]))
        for way, further in offer:
            step = Step(violation.id, violation.title, way)
            if further is None:
                if why := contradiction(way, state.path):
                    self._record(step, state.path, why)
            elif further.demands == state.demands:
                self._record(step, state.path, _HOLDS)
            else:
                self._push(further._replace(path=(*state.path, step)))
        if not offer:
            place = max(index for index, step in enumerate(state.path) if step.id == violation.id)
            self._record(state.path[place], state.path[:place], _HOLDS)

    def _add_way(self, state: State, way: Demands) -> State | None:
        return add_demands(state, way, self._scale.start)

    def _room_taken(self, state: State, offer: list[tuple[Demands, State | None]]) -> float:
        """What the cheapest way costs at least, so that an entry without any is seen first."""
        open_ways = [further for _, further in offer if further and further.demands != state.demands]
        return min((self._scale.least(further, staying=True) for further in open_ways), default=float("inf"))

    def _divide(self, state: State, solution: Solution) -> None:
        """Divide the state at the distribution that is further off than it need be, into near and far versions."""
        name = self._scale.dearest(state, solution)
        if name is None:
            return
        old, version = self._scale.preferred[name], solution.versions[name]
        if name not in state.kept and self._scale.least_of(name, state, staying=True):
            self._push(state._replace(kept=state.kept | {name}))
            self._push(without(state, name))
            return
        least = self._scale.least_of(name, state)
        span = within(old, (least + cost(old, version)) // 2 if name in state.divided else least)
        if span is None or admits(span.inside, version):
            span = line_of(old, version)
        if span:
            state = state._replace(divided=state.divided | {name})
            for part in (narrow(state, [(name, span)]), *complement(state, [(name, span)])):
                self._push(part)

    def _record(self, step: Step, after: tuple[Step, ...], why: str) -> None:
        self._attempts.append(Attempt(step.id, step.title, spell(step.way), after, why))

    def _result(self) -> Found | Conflict:
        best, resolutions = self.best, len(self._answers)
        if best.broken and not self._queue:
            return Conflict(tuple(self._attempts), best.solution, resolutions)
        proven = not best.broken and all(floor >= best.distance for _, floor, _ in self._queue)
        return Found(
            best.solution,
            best.state.demands,
            self._entries_by_name(),
            proven,
            resolutions,
            best.broken + best.left,
            tuple(self._attempts),
        )

    def _entries_by_name(self) -> dict[str, tuple[str, ...]]:
        """Who asked for what: the ways that were taken, and for what the first solution breaks, those taken unasked."""
        taken = [(step.id, step.way) for step in self.best.state.path]
        for entry in self._first.broken:
            if entry.id not in dict(taken):
                taken += [(entry.id, way) for way in entry.ways if self._is_taken(way)][:1]
        names: dict[str, set[str]] = {}
        for entry_id, way in taken:
            for name in (*way.specifiers, *(["torch"] if way.torch_backend else [])):
                names.setdefault(name, set()).add(entry_id)
        return {name: tuple(sorted(ids)) for name, ids in names.items()}

    def _is_taken(self, way: Demands) -> bool:
        demands = self.best.state.demands
        around = way.torch_backend in (None, demands.torch_backend) and set(way.by_hand) <= set(demands.by_hand)
        return around and satisfies(way.specifiers, self.best.solution.versions)
