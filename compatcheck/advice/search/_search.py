"""Ask the resolver for what is cheapest, learn from what it says, and ask again.

The resolver knows what fits together, the matrix what must not come together, and neither knows which set is nearest.
What either refuses becomes a clause: some ways of which every answer takes one. The cheapest demands that satisfy all
clauses cost no more than any answer, so an answer that costs no more than they do is the nearest.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set
from typing import NamedTuple

from compatcheck.advice.model import Demands, Solution, Unsolvable, Violation
from compatcheck.advice.search._clauses import Clause, Scale, choose, is_taken
from compatcheck.advice.search._conflict import Conflict
from compatcheck.advice.search._cost import GONE, admits, cost, intersect, outside, satisfies, within
from compatcheck.packages.names import normalised

Resolve = Callable[[Demands], Solution]
Judge = Callable[[Solution, Demands], Sequence[Violation]]

_TRIES, _FORESEEN = 3, 12
_NEAR = 10
"""Where an answer costs more than it must by more than this, half of that is asked for in turn with the least."""
_NAME = re.compile(r"[A-Za-z0-9][\w.-]*")
_NO_WAY = Unsolvable("resolving", "the requirements", "no set of versions is clean", "relax one of the requirements")


class Found(NamedTuple):
    """The nearest set that breaks no entry that versions can clear.

    ``demands`` is what the entries asked for, ``entries_by_name`` who asked for which distribution, ``forced_by`` what
    the resolver said of those that nobody asked to move. ``proven`` is False where the search ended first: the set may
    then not be the nearest, or ``left`` may hold entries with ways to clear them. Else ``left`` are those that no
    versions clear. ``clauses`` are what was learnt.
    """

    solution: Solution
    demands: Demands
    entries_by_name: Mapping[str, tuple[str, ...]]
    proven: bool
    resolutions: int
    left: tuple[Violation, ...] = ()
    clauses: tuple[Clause, ...] = ()
    forced_by: Mapping[str, str] = {}


class _Answer(NamedTuple):
    demands: Demands
    solution: Solution
    broken: tuple[Violation, ...]
    left: tuple[Violation, ...]
    price: int


def search(
    resolve: Resolve,
    violations: Judge,
    scale: Scale,
    out_of_time: Callable[[], bool] = lambda: False,
    *,
    patience: int | None = None,
) -> Found | Conflict:
    """The set of versions nearest to those preferred that breaks no entry.

    All that counts is held where it is, and let go where the resolver or the matrix refuses that. Once a clean set is
    found, ``patience`` more resolutions look for a nearer one; without it, as many as it takes. Out of time, it is the
    set that breaks the fewest entries.

    Raises Unsolvable where nothing satisfies the start, and whatever else ``resolve`` raises.
    """
    return _Run(resolve, violations, scale).to_its_end(out_of_time, patience)


class _Run:
    def __init__(self, resolve: Resolve, violations: Judge, scale: Scale) -> None:
        self._resolve, self._violations, self._scale = resolve, violations, scale
        self._clauses: list[Clause] = []
        self._asked: list[Demands] = []
        self._answers: list[tuple[Demands, Solution | Unsolvable]] = []
        self._loose: set[str] = set()
        self._best: _Answer | None = None

    def to_its_end(self, out_of_time: Callable[[], bool], patience: int | None) -> Found | Conflict:
        found = self._find(out_of_time)
        if isinstance(found, _Answer):
            return self._found(proven=not found.broken and self._improve(out_of_time, patience))
        if self._best is None:
            raise found
        return Conflict(tuple(self._clauses), self._best.solution, len(self._answers))

    def _find(self, out_of_time: Callable[[], bool]) -> _Answer | Unsolvable:
        """A clean set, or the one that breaks least where time runs out first; the last refusal where there is none.

        What the resolver refuses twice in a row is let go, so that it says at once where it can be.
        """
        refusal, refusals = _NO_WAY, 0
        while not (self._best and out_of_time()):
            choice = self._next_choice()
            demands = self._scale.hold(choice, self._loose) if choice else None
            if choice is None or demands is None or demands in self._asked:
                held = {name for each in self._clauses for name in each.held} - self._loose
                if not held:
                    return refusal
                self._loose |= held
                continue
            answer = self._ask(demands)
            if isinstance(answer, Unsolvable):
                refusal, refusals = answer, refusals + 1
                learnt = self._refused(demands, choice, answer)
                if refusals > 1 or out_of_time():
                    self._loose |= learnt.held
            else:
                refusals = 0
                if not self._judged(answer, choice).broken:
                    break
        assert self._best is not None
        return self._best

    def _next_choice(self) -> Demands | None:
        """The cheapest that may be clean; once that failed often, what leaves most to the user, to have an answer."""
        scale = self._scale
        if len(self._answers) >= _TRIES:
            scale = scale._replace(by_hand_cost=lambda entry: 0)
        return self._foreseen([each for each in self._clauses if not each.held & self._loose], scale)

    def _foreseen(self, clauses: Sequence[Clause], scale: Scale) -> Demands | None:
        """The cheapest demands whose newest versions, as far as they are known, break nothing.

        Of what these would break only that counts which speaks of nothing that the resolver has yet to decide.
        """
        clauses, known = list(clauses), scale.preferred.keys() | scale.asked
        for _ in range(_FORESEEN):
            choice = choose(clauses, scale)
            learnt = list(self._expected(choice, known)) if choice and self._best else []
            if not learnt or choice is None:
                return choice
            clauses += learnt
            self._clauses += learnt
        return choice

    def _expected(self, choice: Demands, known: Set[str]) -> Iterator[Clause]:
        """What is known of the versions that the choice leads to: that there are none, or what they break."""
        assert self._best is not None
        versions = dict(self._best.solution.versions)
        held = self._scale.hold(choice).specifiers
        for name in held.keys() & known & versions.keys():
            releases = self._scale.releases(name)
            if admits(held[name], versions[name]) or not releases:
                continue
            fitting = [release for release in releases if admits(held[name], release)]
            if fitting:
                versions[name] = fitting[-1]
            elif intersect(held[name], f">{releases[-1].partition('+')[0]}") == GONE:
                yield Clause(tuple(Demands({name: side}) for side in outside(held[name])))
                return
            else:
                return
        for violation in self._violations(self._best.solution._replace(versions=versions), choice):
            names = {name for way in violation.ways for name in way.specifiers}
            ways = tuple(way for way in violation.ways if not is_taken(way, choice))
            if names & versions.keys() <= known and len(ways) == len(violation.ways) > 0:
                yield Clause(ways, violation.id, violation.title)

    def _improve(self, out_of_time: Callable[[], bool], patience: int | None) -> bool:
        """Look for a nearer set; whether the best is proven to be the nearest."""
        before, halfway = len(self._answers), True
        while True:
            assert self._best is not None
            choice = self._foreseen(self._clauses, self._scale)
            least = self._scale.least(choice) if choice else self._best.price
            if choice is None or least >= self._best.price:
                return True
            if out_of_time() or (patience is not None and len(self._answers) - before >= patience):
                return False
            room = self._best.price - least
            demands = self._halfway(choice, room) if halfway and room > _NEAR else None
            halfway = not halfway
            if demands is None or demands in self._asked:
                demands = self._scale.hold(choice)
            if demands in self._asked:
                return False
            answer = self._ask(demands)
            if isinstance(answer, Unsolvable):
                self._refused(demands, choice, answer)
            else:
                self._judged(answer, choice)

    def _halfway(self, choice: Demands, room: int) -> Demands:
        """The demands with nothing further off than it must be and half of the room."""
        held = dict(choice.specifiers)
        for name, old in self._scale.preferred.items():
            if held.get(name) != GONE:
                least = self._scale.least(Demands({name: held[name]})) if name in held else 0
                held[name] = intersect(held.get(name, ""), within(old, least + room // 2))
        return choice._replace(specifiers=held)

    def _ask(self, demands: Demands) -> Solution | Unsolvable:
        """The resolver's answer, which is the same whatever is left to the user's hand."""
        self._asked.append(demands)
        demands = demands._replace(by_hand=())
        answer = next((answer for asked, answer in self._answers if asked == demands), None)
        if answer is None:
            try:
                answer = self._resolve(demands)
            except Unsolvable as error:
                answer = error
            self._answers.append((demands, answer))
        return answer

    def _refused(self, demands: Demands, choice: Demands, error: Unsolvable) -> Clause:
        """Learn that what the resolver names cannot all stay within the demands."""
        limits = {name: limit for name, limit in demands.specifiers.items() if limit}
        spoken = {normalised(word.strip(".-")) for word in _NAME.findall(f"{error.subject} {error.seen}")}
        names = limits.keys() & spoken or limits.keys()
        ways = tuple(Demands({name: side}) for name in sorted(names) for side in outside(limits[name]))
        brought = {name: "" for name, limit in demands.specifiers.items() if not limit}
        held = frozenset(name for name in names if limits[name] != choice.specifiers.get(name))
        had = self._scale.preferred
        stuck = frozenset(name for name in names if name in had and admits(limits[name], had[name]))
        given = Demands(brought, demands.torch_backend)
        clause = Clause(ways, why=error.seen, given=given, held=held, stuck=stuck)
        self._clauses.append(clause)
        return clause

    def _judged(self, solution: Solution, choice: Demands) -> _Answer:
        """Learn what the solution breaks, and keep it where it is the best so far."""
        found = self._violations(solution, choice)
        known = {clause.id for clause in self._clauses}
        broken = tuple(each for each in found if each.ways or each.id in known)
        price = self._scale.price(solution.versions, choice)
        answer = _Answer(choice, solution, broken, tuple(each for each in found if each not in broken), price)
        for violation in broken:
            self._clauses.append(self._clause(violation, answer))
        best = self._best
        if best is None or (len(broken), price) < (len(best.broken), best.price):
            self._best = answer
        return answer

    def _clause(self, violation: Violation, answer: _Answer) -> Clause:
        """The ways out of what is broken; of one that was taken in vain, the versions that were tried are left."""
        versions, names = answer.solution.versions, {name for way in violation.ways for name in way.specifiers}
        leave = tuple(Demands({name: GONE}) for name in sorted(names & versions.keys() - self._scale.asked))
        ways = tuple(way for way in violation.ways + leave if not is_taken(way, answer.demands))
        if len(ways) < len(violation.ways + leave) or not violation.ways:
            known = {name for each in self._clauses if each.id == violation.id for name in each.names}
            tried = sorted((names | known) & versions.keys())
            ways += tuple(
                Demands({name: side}) for name in tried for side in outside(f"=={versions[name].partition('+')[0]}")
            )
        return Clause(ways, violation.id, violation.title, at=versions)

    def _found(self, proven: bool) -> Found:
        best, forced = self._best, dict(self._forced())
        assert best is not None
        return Found(
            best.solution,
            best.demands,
            {name: tuple(sorted(ids)) for name, ids in self._entries_by_name(forced).items()},
            proven,
            len(self._answers),
            best.broken + best.left,
            tuple(self._clauses),
            forced,
        )

    def _entries_by_name(self, forced: Collection[str]) -> dict[str, set[str]]:
        """The entries whose ways the answer takes, by what had to move for them from the version that it had.

        What was only foreseen counts where neither a solution nor the resolver gives a reason.
        """
        assert self._best is not None
        demands, versions = self._best.demands, self._best.solution.versions
        had = {**self._scale.first, **self._scale.preferred}
        names: dict[str, set[str]] = {}
        foreseen: dict[str, set[str]] = {}
        for clause in self._clauses:
            way = next((way for way in clause.ways if _is_met(way, demands, versions)), None) if clause.id else None
            for name in (*way.specifiers, *(["torch"] if way.torch_backend else [])) if way else ():
                if clause.at is None:
                    foreseen.setdefault(name, set()).add(clause.id)
                elif name not in had or not cost(had[name], clause.at.get(name, had[name])):
                    names.setdefault(name, set()).add(clause.id)
        return {**{name: ids for name, ids in foreseen.items() if name not in forced}, **names}

    def _forced(self) -> Iterator[tuple[str, str]]:
        """What the resolver said of those that it refused where they were; of several refusals the first."""
        for clause in reversed(self._clauses):
            for name in clause.stuck:
                yield name, clause.why


def _is_met(way: Demands, demands: Demands, versions: Mapping[str, str]) -> bool:
    around = way.torch_backend in (None, demands.torch_backend) and set(way.by_hand) <= set(demands.by_hand)
    return around and satisfies(way.specifiers, versions)
