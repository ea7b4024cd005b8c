"""Resolve, judge, refine: versions that the matrix calls clean, as near as can be to those at hand."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from compatcheck import advice, matrix
from compatcheck.advice import edits, resolver, search, torch_builds
from compatcheck.advice.model import Demands, Move, Solution, Unsolvable, Violation
from compatcheck.advice.requirement_text import version_of
from compatcheck.environment import Environment
from compatcheck.packages.names import edge
from compatcheck.pipelines.check import worst_first
from compatcheck.pipelines.pin._task import BY_HAND_COSTS, Task
from compatcheck.pipelines.version_maps import maps_of_pins
from compatcheck.results.findings import BAD, Finding, Remedy
from compatcheck.results.pins import Choice, Moved, PinReport

_FILE_FACTS = (
    "requirements",
    "unsolvable",
    "unmet_requirements",
    "unresolved_imports",
    "distribution_problems",
    "distribution_ranges",
    "target",
)
_TORCH_FACTS = ("torch_build", "cuda.runtime", "cuda.cudnn", "cuda.nccl")


class Plan(NamedTuple):
    """A set of versions, the one there was before the matrix spoke, what moved, and the findings that steered.

    ``task`` is the one that was carried out: with the versions that distance is counted from, and the build of torch
    that could be had.
    """

    task: Task
    solution: Solution
    first: Solution
    demands: Demands
    moves: Mapping[str, Move]
    causes: Mapping[str, Finding]
    report: PinReport


def plan(
    task: Task, out_of_time: Callable[[], bool], on_resolve: Callable[[], None] = lambda: None
) -> Plan | search.Conflict:
    """The nearest set of versions that the matrix calls clean, or why there is none.

    Raises Unsolvable where the requirements contradict one another from the start, and InputError where the resolver
    cannot work.
    """
    task, first, notes = _first(task)
    start, counted = Demands(torch_backend=task.torch_backend), _counted(task, first)
    causes: dict[str, Finding] = {}

    def resolve(demands: Demands) -> Solution:
        if demands == start:
            return first
        on_resolve()
        try:
            return _resolved(task, demands, first.kept)
        except resolver.IndexDown as error:
            if demands.torch_backend == task.torch_backend:
                raise
            build = f"the {demands.torch_backend} build of torch"
            raise Unsolvable("resolving", build, str(error), "run this where it can be reached") from None

    found = search.search(
        resolve,
        lambda solution, demands: _violations(task, solution, demands, causes),
        start,
        task.wanted.preferred,
        counted,
        out_of_time,
        by_hand_cost=task.by_hand_cost,
    )
    if isinstance(found, search.Conflict):
        return found
    moves = _moves(task, found)
    report = _report(task, found, moves, causes, counted)
    return Plan(task, found.solution, first, found.demands, moves, causes, report._replace(notes=notes + report.notes))


def _report(
    task: Task,
    found: search.Found,
    moves: Mapping[str, Move],
    causes: Mapping[str, Finding],
    counted: Collection[str],
) -> PinReport:
    versions, preferred = found.solution.versions, task.wanted.preferred
    moved = tuple(
        Moved(name, move.was, versions[name], move.entries, search.cost(move.was, versions[name]) if move.was else 0)
        for name, move in moves.items()
    )
    judged, findings = _judgement(task, found.solution)
    findings = advice.recommend(judged.view, findings)
    left = _steering(task, findings)
    return PinReport(
        moved=moved,
        titles={entry: finding.title for entry, finding in causes.items()},
        distance=search.distance(preferred, versions, counted),
        resolutions=found.resolutions,
        proven=found.proven,
        unfinished=any(violation.ways for violation in found.left),
        latest=task.latest,
        choices=tuple(_choices(task, moved, {finding.id for finding in left}, causes.values())),
        left=left,
        possible=tuple(each for each in findings if each.status == "possible" and each not in left),
        notes=(*_manual_steps(found), *_refusals(task, found), *torch_builds.rebuild_notes(preferred, versions)),
    )


def _first(task: Task) -> tuple[Task, Solution, tuple[str, ...]]:
    """What the resolver says to the requirements alone, and the task to go on with.

    Where the index of the build that is installed is out of reach, the releases of that build are still worth pinning.
    """
    if task.latest:
        task = task._replace(wanted=task.wanted._replace(preferred={}))
    notes: tuple[str, ...] = ()
    try:
        first = _solve_directly(task)
    except resolver.IndexDown as error:
        if task.torch_backend is None or task.insists:
            raise
        notes = (f"the {task.torch_backend} build of torch is pinned unseen, without what it brings along: {error}",)
        task = task._replace(torch_backend=None, unreached=task.torch_backend)
        first = _resolved(task, Demands())
    if task.latest:
        task = task._replace(wanted=task.wanted._replace(preferred=first.versions))
    elif not task.wanted.complete:
        task = task._replace(wanted=task.wanted._replace(preferred=_brought_along(task, first)))
    return task, first, notes


def _brought_along(task: Task, first: Solution) -> dict[str, str]:
    """What to stay with: for a distribution that no line names, the version that the lines bring along.

    What is installed of it may not fit the lines, and no entry asks that they move for its sake.
    """
    named = {line.name for line in task.wanted.lines}
    preferred = task.wanted.preferred
    return {name: was if name in named else first.versions.get(name, was) for name, was in preferred.items()}


def _solve_directly(task: Task) -> Solution:
    """The versions that are pinned where they go together, which the resolver sees faster if it is held to them."""
    start = Demands(torch_backend=task.torch_backend)
    asked = {line.name for line in task.wanted.lines if line.name and line.asked and line.kept is None}
    held = {
        name: f"=={version.partition('+')[0]}"
        for name, version in task.wanted.preferred.items()
        if name in asked and version_of(version)
    }
    if held and not task.wanted.complete:
        with suppress(Unsolvable):
            return _resolved(task, start._replace(specifiers=held))
    return _resolved(task, start)


def _resolved(task: Task, demands: Demands, kept: Mapping[str, str] | None = None) -> Solution:
    solution = resolver.resolve(task.wanted, demands, task.place, kept)
    if task.unreached is None or demands.torch_backend:
        return solution
    return torch_builds.as_built(solution, task.unreached, task.known.table)


def _violations(task: Task, solution: Solution, demands: Demands, causes: dict[str, Finding]) -> list[Violation]:
    """What a solution must lose, with the ways out; what is left to the user is none once a setting clears it."""
    settings = filter(None, (_settings(causes[entry]) for entry in demands.by_hand))
    violations = []
    judged, findings = _judgement(task, solution, settings)
    for finding in advice.recommend(judged.view, _steering(task, findings)):
        causes.setdefault(finding.id, finding)
        ways = _ways(task, solution, judged.view, finding)
        if finding.id not in demands.by_hand:
            by_hand = any(not remedy.pins for remedy in finding.remedies)
            ways += (Demands(by_hand=(finding.id,)),) if by_hand else ()
        elif _settings(finding) is None:
            continue
        violations.append(Violation(finding.id, finding.title, ways))
    return violations


def _ways(task: Task, solution: Solution, environment: Environment, finding: Finding) -> tuple[Demands, ...]:
    """The versions to try, and other builds of torch where the one at hand cannot run here.

    An entry that advises a setting and no version is cleared by versions only where these are preferred.
    """
    if task.by_hand_cost < BY_HAND_COSTS["pins"] and _settings(finding) and not any(r.pins for r in finding.remedies):
        return ()
    ways = search.ways(finding, solution.versions)
    if "torch" not in finding.packages:
        return ways
    return (*ways, *torch_builds.ways(environment, solution.versions, task.known.table))


def _settings(finding: Finding) -> Remedy | None:
    """The first remedy that changes settings alone, whose effect can be foretold."""
    return next((remedy for remedy in finding.remedies if (remedy.config or remedy.environ) and not remedy.pins), None)


def _steering(task: Task, findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """The findings that the search has to answer."""
    statuses = (*BAD, "possible") if task.strict else BAD
    return tuple(finding for finding in findings if finding.status in statuses)


def _judgement(task: Task, solution: Solution, settings: Iterable[Remedy] = ()) -> matrix.Judgement:
    """The solution as it is judged once these settings are made, the worst findings first."""
    environment = solved(task.environment, solution)
    for remedy in settings:
        environment = edits.applied(environment, remedy)
    judged, findings = matrix.judge(task.known, environment)
    return matrix.Judgement(judged, worst_first(each for each in findings if each.id not in task.ignore))


def solved(environment: Environment, solution: Solution) -> Environment:
    """The environment with the solution's versions; what was read of files that they replace no longer holds.

    A requirement by URL has no version here, and the list is not complete then.
    """
    is_same_torch = environment.get("distributions.torch") == solution.versions.get("torch")
    rest = environment.without(*_FILE_FACTS, *(() if is_same_torch else _TORCH_FACTS))
    found = rest.with_fact("distributions", dict(solution.versions))
    return found.with_fact("distributions_complete", not solution.unversioned)


def with_maps(planned: Plan) -> Plan:
    """The plan with maps of the pinned environment, from the versions there were to those that are pinned."""
    task = planned.task
    environment = solved(task.environment, planned.solution)
    maps = maps_of_pins(environment, task.known, planned.first.versions, planned.solution.versions)
    return planned._replace(report=planned.report._replace(maps=maps))


def _counted(task: Task, first: Solution) -> frozenset[str]:
    """The names whose versions matter to the user: those nothing else asks for, and those the matrix speaks of."""
    asked = {line.name for line in task.wanted.lines if line.name and line.asked}
    alone = {name for name in asked if not first.parents.get(name)}
    return frozenset(alone | (set(task.wanted.preferred) & set(task.known.guards)))


def _manual_steps(found: search.Found) -> Iterator[str]:
    """Why versions did not clear what is left to a change by hand, where they were tried."""
    for attempt in found.attempts:
        if attempt.id in found.demands.by_hand and not attempt.after:
            yield f"{attempt.demand} was tried for {attempt.id}: {attempt.why}"


def _refusals(task: Task, found: search.Found) -> Iterator[str]:
    """Where another build of torch was taken, why not the remaining ones of its release."""
    if found.demands.torch_backend != task.torch_backend:
        refused = torch_builds.refusals(task.environment, found.solution.versions, task.known.table)
        for name, why in refused.items():
            yield f"the {name} build of torch cannot run here: {why}"


def _moves(task: Task, found: search.Found) -> dict[str, Move]:
    """Every distribution that is not at the version it had; a new one only where all that was there is known.

    Another label of the same version is a move where another build of torch was asked for.
    """
    preferred, moves = task.wanted.preferred, {}
    rebuilt = found.demands.torch_backend != task.torch_backend
    for name, version in sorted(found.solution.versions.items()):
        was = preferred.get(name)
        moved = search.cost(was, version) > 0 or (rebuilt and was != version) if was else task.wanted.complete
        if moved:
            moves[name] = Move(was, found.entries_by_name.get(name, ()))
    return moves


def _choices(task: Task, moved: Sequence[Moved], left: Collection[str], causes: Iterable[Finding]) -> Iterator[Choice]:
    """The findings that were there to be cleared by versions or by settings."""
    for finding in causes:
        settings = _settings(finding)
        mine = tuple(each for each in moved if finding.id in each.entries)
        if settings and mine:
            yield Choice(finding.id, mine, settings.steps, by_versions=True)
        elif settings and finding.id in left:
            yield Choice(finding.id, tuple(_advised_moves(task, finding)), settings.steps, by_versions=False)


def _advised_moves(task: Task, finding: Finding) -> Iterator[Moved]:
    """The moves that the first remedy by versions takes at the least."""
    pins = next((remedy.pins for remedy in finding.remedies if remedy.pins), {})
    for name, specifier in pins.items():
        was, to = task.wanted.preferred.get(name), edge(specifier)
        if was and to:
            yield Moved(name, was, to, (finding.id,), search.cost(was, to))
