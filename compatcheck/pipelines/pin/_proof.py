"""The same probes where a fault was and where it should be gone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager

from compatcheck.advice.model import Solution
from compatcheck.environment import Target
from compatcheck.errors import CompatcheckError
from compatcheck.pipelines.check import OnProbe, probe_context
from compatcheck.pipelines.pin._plan import Plan
from compatcheck.pipelines.pin._task import Task
from compatcheck.results.findings import ProbeResult
from compatcheck.results.pins import Trial

Building = Callable[[], AbstractContextManager[Callable[[str], None]]]
Probing = Callable[[], AbstractContextManager[OnProbe]]
Asked = tuple[str, Mapping[str, object]]

_IMPORTS = "package_imports"


def prove(planned: Plan, installed: Target | None, building: Building, probing: Probing) -> Plan:
    """The plan with what probes showed before and after: in ``installed``, else where its first set is built.

    ``building`` and ``probing`` show progress while they are entered. The built environments are gone afterwards.
    Raises InputError where the new one cannot be built.
    """
    from compatcheck import probes

    task = planned.task
    moving = [planned.causes[entry] for entry in sorted({e for move in planned.moves.values() for e in move.entries})]
    shipped = probes.names()  # a matrix that was fetched may name a probe that came later than this version
    probed = [finding for finding in moving if finding.probe_name in shipped]
    context = probe_context(task.environment)
    trials: list[Asked] = [(_IMPORTS, {}), *((str(f.probe_name), {**context, **f.probe_request}) for f in probed)]
    notes: tuple[str, ...] = ()
    before: Sequence[ProbeResult | None] = [None] * len(trials)
    if installed is not None:
        before = _measured(installed.executable, trials, probing)
    elif planned.moves:
        try:
            was = "the versions as they were"
            with _built(was, task, planned.first, task.torch_backend, building) as executable:
                before = _measured(executable, trials, probing)
        except CompatcheckError as error:
            notes = (f"{was} could not be tried: {error}",)
    with _built("the pins", task, planned.solution, planned.demands.torch_backend, building) as executable:
        after = _measured(executable, trials, probing)
    titles = [(None, "imports of every training package"), *((f.id, f.title) for f in probed)]
    rows = tuple(Trial(*title, *pair) for title, pair in zip(titles, zip(before, after)))
    notes += tuple(f"{name} is not part of the build: {why}" for name, why in planned.solution.kept.items())
    unproven = [finding.id for finding in moving if finding not in probed]
    report = planned.report._replace(
        trials=rows, unverified=_unverified(rows, unproven), notes=(*planned.report.notes, *notes)
    )
    return planned._replace(report=report)


@contextmanager
def _built(what: str, task: Task, solution: Solution, torch_backend: str | None, building: Building) -> Iterator[str]:
    """The interpreter of an environment with the solution and what stays unchecked beside it."""
    from compatcheck.advice import environment as throwaway

    exact = (f"{name}=={version}" for name, version in solution.versions.items() if name not in solution.kept)
    requirements = list(exact)
    requirements += [line.asked for line in task.wanted.lines if line.kept and line.asked]
    with ExitStack() as stack:
        with building() as on_line:
            on_line(what)
            build = throwaway.build(requirements, task.place, torch_backend=torch_backend, on_line=on_line)
            executable = stack.enter_context(build)
        yield executable


def _measured(executable: str, trials: Sequence[Asked], probing: Probing) -> tuple[ProbeResult, ...]:
    """What came of each trial; entries that ask the same of a probe share one run of it."""
    from compatcheck import probes
    from compatcheck.installed.target import find_target

    distinct = {repr(trial): trial for trial in trials}
    with probing() as on_probe:
        results = probes.run_all(list(distinct.values()), find_target(executable, {}), on_progress=on_probe)
    by_trial = dict(zip(distinct, results))
    return tuple(by_trial[repr(trial)] for trial in trials)


def _unverified(trials: Iterable[Trial], unproven: Sequence[str]) -> str | None:
    """Why a set may not be called verified: a probe that did not pass, or an entry that no probe can prove."""
    for trial in trials:
        if trial.after.outcome != "pass":
            return f"{trial.entry or trial.title}: {trial.after.outcome}, {trial.after.why}"
    return f"no probe can verify {', '.join(unproven)}" if unproven else None
