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
from compatcheck.errors import CompatcheckError
from compatcheck.interfaces.links import Link
from compatcheck.language import gettext as _
from compatcheck.packages.names import edge
from compatcheck.pipelines.check import worst_first
from compatcheck.pipelines.pin._links import violations_of_links
from compatcheck.pipelines.pin._missing import require_existing
from compatcheck.pipelines.pin._task import BY_HAND_COSTS, Task
from compatcheck.pipelines.version_maps import FACTS_OF_FILES, maps_of_pins
from compatcheck.project.overlay import OF_TORCH
from compatcheck.results.findings import BAD, STATUSES, Finding, Remedy
from compatcheck.results.pins import Choice, Moved, PinReport

PATIENCE = 6
"""How many more sets are tried for a nearer one once a clean set is found."""
UNKNOWN_MACHINE_COSTS = 5
"""A few patches: what is possible on an unknown machine moves nothing further than that."""
_MACHINE = ("gpu", "cuda.driver")


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
    task: Task,
    out_of_time: Callable[[], bool],
    on_resolve: Callable[[], None] = lambda: None,
    on_refusal: Callable[[Unsolvable], None] = lambda error: None,
) -> Plan | search.Conflict:
    """The nearest set of versions that the matrix calls clean, or why there is none.

    ``on_refusal`` hears at once why the versions that are asked for cannot be installed together. Raises Unsolvable
    where no others can be either, Missing where a version that is asked for does not exist, and InputError where the
    resolver cannot work.
    """
    task, first, notes = _first(task)
    if isinstance(first, Unsolvable):
        on_refusal(first)
    scale, causes, links = _scale(task, first), dict[str, Finding](), dict[str, Link]()
    given = scale.hold(scale.start)
    before = first.versions if isinstance(first, Solution) else {}
    resolving = task._replace(wanted=task.wanted._replace(preferred={**before, **task.wanted.preferred}))

    def resolve(demands: Demands) -> Solution:
        if demands == given:
            if isinstance(first, Unsolvable):
                raise first
            return first
        on_resolve()
        try:
            return _resolved(resolving, demands, first.kept if isinstance(first, Solution) else None)
        except resolver.IndexDown as error:
            if demands.torch_backend == task.torch_backend:
                raise
            build = f"the {demands.torch_backend} build of torch"
            raise Unsolvable("resolving", build, str(error), "run this on a machine that can reach the index") from None
        except Unsolvable as error:
            require_existing(task, error)
            raise

    found = search.search(
        resolve,
        lambda solution, demands: _violations(task, solution, demands, causes, links),
        scale._replace(by_hand_cost=lambda entry: _by_hand_cost(task, causes[entry])),
        out_of_time,
        patience=PATIENCE,
    )
    if isinstance(found, search.Conflict):
        return found
    moves = _moves(task, scale, found, links)
    refusal = first.seen if isinstance(first, Unsolvable) else None
    report = _report(task, found, moves, causes, scale)._replace(refusal=refusal)
    report = report._replace(notes=(*notes, *_yanked(found.solution), *report.notes))
    return Plan(task, found.solution, _as_it_was(task, first), found.demands, moves, causes, report)


def _as_it_was(task: Task, first: Solution | Unsolvable) -> Solution:
    return first if isinstance(first, Solution) else Solution(task.wanted.preferred)


def _yanked(solution: Solution) -> Iterator[str]:
    for name, reason in solution.yanked.items():
        text = _("{package} was yanked by its maintainers: {reason}")
        yield text.format(package=f"{name}=={solution.versions.get(name)}", reason=reason or _("no reason given"))


def _report(
    task: Task,
    found: search.Found,
    moves: Mapping[str, Move],
    causes: Mapping[str, Finding],
    scale: search.Scale,
) -> PinReport:
    versions, preferred = found.solution.versions, task.wanted.preferred
    moved = tuple(
        Moved(
            name,
            move.was,
            versions[name],
            move.entries,
            search.cost(move.was, versions[name]) if move.was else 0,
            move.why,
            name in scale.preferred,
            move.links,
        )
        for name, move in moves.items()
    )
    judged, findings = _judgement(task, found.solution)
    findings = advice.recommend(judged.view, findings)
    left = tuple(each for each in findings if each.status in (STATUSES if task.strict else BAD))
    return PinReport(
        moved=moved,
        titles={entry: finding.title for entry, finding in causes.items()},
        distance=search.distance(preferred, versions, scale.preferred),
        resolutions=found.resolutions,
        proven=found.proven,
        unfinished=any(violation.ways for violation in found.left),
        latest=task.latest,
        offers={each.id: tuple(_advised_moves(task, each)) for each in findings if each not in left},
        choices=tuple(_choices(task, moved, {finding.id for finding in left}, causes.values())),
        left=left,
        possible=tuple(each for each in findings if each.status == "possible" and each not in left),
        notes=(*_manual_steps(found), *_refusals(task, found), *torch_builds.rebuild_notes(preferred, versions)),
    )


def _first(task: Task) -> tuple[Task, Solution | Unsolvable, tuple[str, ...]]:
    """What the resolver says to the very versions that are asked for, and the task to go on with.

    Where the index of the build that is installed is out of reach, the releases of that build are still worth pinning.
    """
    if task.latest:
        task = task._replace(wanted=task.wanted._replace(preferred={}, stated=frozenset()))
    notes: tuple[str, ...] = ()
    try:
        first = _as_asked(task)
    except resolver.IndexDown as error:
        if task.torch_backend is None or task.insists:
            raise
        notes = (
            (
                f"the {task.torch_backend} build of torch is pinned without a check and without its "
                f"dependencies: {error}"
            ),
        )
        task = task._replace(torch_backend=None, unreached=task.torch_backend)
        first = _as_asked(task)
    if task.latest and isinstance(first, Solution):
        task = task._replace(wanted=task.wanted._replace(preferred=first.versions))
    return task, first, notes


def _as_asked(task: Task) -> Solution | Unsolvable:
    scale = _scale(task, None)
    try:
        return _resolved(task, scale.hold(scale.start))
    except Unsolvable as error:
        require_existing(task, error)
        return error


def _scale(task: Task, first: Solution | Unsolvable | None) -> search.Scale:
    """What counts: the versions of what the user names, and what the matrix speaks of among all that is installed.

    What others bring along counts for nothing, but is left as it is where that is as good.
    """
    preferred = task.wanted.preferred
    asked = frozenset(line.name for line in task.wanted.lines if line.name and line.asked and line.kept is None)
    names = asked | task.wanted.stated
    if task.wanted.complete:
        names |= preferred.keys() & set(task.known.guards)
    counted = {name: preferred[name] for name in sorted(names & preferred.keys()) if version_of(preferred[name])}
    versions = first.versions if isinstance(first, Solution) else counted
    present = frozenset(counted.keys() & versions.keys())
    others = {name: version for name, version in versions.items() if name not in counted}
    start = Demands(torch_backend=task.torch_backend)

    def released(name: str) -> tuple[str, ...]:
        return tuple(_releases(task.known).get(name, ()))

    return search.Scale(start, counted, lambda entry: task.by_hand_cost, asked, present, others, released)


def _releases(known: matrix.Matrix) -> Mapping[str, Mapping[str, object]]:
    """The releases that are known by name; a matrix of one's own may hold none."""
    with suppress(CompatcheckError):
        releases: Mapping[str, Mapping[str, object]] = known.table("release-history")["releases"]
        return releases
    return {}


def _by_hand_cost(task: Task, finding: Finding) -> int:
    """What it costs to leave a finding to the user: little where only facts about the machine would settle it."""
    return task.by_hand_cost if finding.status in BAD or task.strict else UNKNOWN_MACHINE_COSTS


def _resolved(task: Task, demands: Demands, kept: Mapping[str, str] | None = None) -> Solution:
    solution = resolver.resolve(task.wanted, demands, task.place, kept)
    if task.unreached is None or demands.torch_backend:
        return solution
    return torch_builds.as_built(solution, task.unreached, task.known.table)


def _violations(
    task: Task, solution: Solution, demands: Demands, causes: dict[str, Finding], links: dict[str, Link]
) -> list[Violation]:
    """What a solution must lose, with the ways out; what is left to the user is none once a setting clears it.

    What was seen of two packages whose link is broken is judged again once they link.
    """
    settings = filter(None, (_settings(causes[entry]) for entry in demands.by_hand))
    broken = list(violations_of_links(task, solution.versions))
    links |= {violation.id: link for violation, link in broken}
    unlinked = {frozenset((link.package, link.provider)) for _, link in broken}
    violations = [violation for violation, _ in broken]
    judged, findings = _judgement(task, solution, settings)
    for finding in advice.recommend(judged.view, _steering(task, findings)):
        if finding.seen and frozenset(finding.packages) in unlinked:
            continue
        causes.setdefault(finding.id, finding)
        ways = _ways(task, solution, judged.view, finding)
        is_open = finding.status not in BAD and not task.strict
        if is_open:
            ways = tuple(way for way in ways if _is_patch(task, way))
            if not ways:
                continue
        if finding.id not in demands.by_hand:
            by_hand = is_open or any(not remedy.pins for remedy in finding.remedies)
            ways += (Demands(by_hand=(finding.id,)),) if by_hand else ()
        elif is_open or _settings(finding) is None:
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
    """The findings that the search has to answer; of possible ones those that only the machine would settle."""
    return tuple(
        finding
        for finding in findings
        if finding.status in (*BAD, "possible")
        and (task.strict or finding.status in BAD or (finding.missing and all(map(_is_of_machine, finding.missing))))
    )


def _is_patch(task: Task, way: Demands) -> bool:
    """Whether the way moves what the user pins, and by a patch at most."""
    had = task.wanted.preferred
    moves = (name in had and (search.cheapest(had[name], limit) or 0) <= 1 for name, limit in way.specifiers.items())
    return bool(way.specifiers) and all(moves)


def _is_of_machine(fact: str) -> bool:
    return fact.startswith(_MACHINE)


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
    rest = environment.without(*FACTS_OF_FILES, "distribution_ranges", *(() if is_same_torch else OF_TORCH))
    found = rest.with_fact("distributions", dict(solution.versions))
    return found.with_fact("distributions_complete", not solution.unversioned)


def noted(planned: Plan, note: str) -> Plan:
    """The plan with one more note."""
    return planned._replace(report=planned.report._replace(notes=(*planned.report.notes, note)))


def with_maps(planned: Plan) -> Plan:
    """The plan with maps of the pinned environment, from the versions there were to those that are pinned."""
    task = planned.task
    environment = solved(task.environment, planned.solution)
    maps = maps_of_pins(environment, task.known, planned.first.versions, planned.solution.versions)
    return planned._replace(report=planned.report._replace(maps=maps))


def _manual_steps(found: search.Found) -> Iterator[str]:
    """Why versions did not clear what is left to a change by hand, where they were tried."""
    for entry in found.demands.by_hand:
        names = {name for each in found.clauses if each.id == entry for name in each.names}
        whys = [each.why for each in found.clauses if each.why and each.names & names]
        if whys:
            text = _("no nearby versions fix {entry}: {why}")
            yield text.format(entry=entry, why=whys[0])


def _refusals(task: Task, found: search.Found) -> Iterator[str]:
    """Where another build of torch was taken, why not the remaining ones of its release."""
    if found.demands.torch_backend != task.torch_backend:
        refused = torch_builds.refusals(task.environment, found.solution.versions, task.known.table)
        for name, why in refused.items():
            yield f"the {name} build of torch cannot run here: {why}"


def _moves(task: Task, scale: search.Scale, found: search.Found, links: Mapping[str, Link] = {}) -> dict[str, Move]:
    """Every distribution that is not at the version it had; a new one only where all that was there is known.

    Of what others bring along only what an entry moves is told, from where it was by itself. Another label of the same
    version is a move where another build of torch was asked for.
    """
    was, moves = {**scale.first, **task.wanted.preferred}, {}
    rebuilt = found.demands.torch_backend != task.torch_backend
    for name, version in sorted(found.solution.versions.items()):
        asking = found.entries_by_name.get(name, ())
        told = asking or task.wanted.complete or name in scale.preferred
        old = was.get(name) if told else None
        moved = search.cost(old, version) > 0 or (rebuilt and old != version) if old else task.wanted.complete
        if moved:
            entries = tuple(each for each in asking if each not in links)
            why = "" if asking else found.forced_by.get(name, "")
            moves[name] = Move(old, entries, why, _first_of_each_pair(links, asking))
    return moves


def _first_of_each_pair(links: Mapping[str, Link], asking: Iterable[str]) -> tuple[str, ...]:
    """One sentence for each pair of packages; what else they ask in vain of each other says no more."""
    first: dict[tuple[str, str], str] = {}
    for sentence in asking:
        if link := links.get(sentence):
            first.setdefault((link.package, link.provider), sentence)
    return tuple(first.values())


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
