"""Run probes in the target's interpreter, one child each, and say what came of it.

A child is judged by the events it wrote, not by its exit status: a correct result followed by an
abort at teardown is a result.
"""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from compatcheck.environment import Target
from compatcheck.probes import _result_cache
from compatcheck.probes._criterion import Measured, Request
from compatcheck.probes._forked_children import Children, weight
from compatcheck.probes._process import OnStage, Trace
from compatcheck.probes._time_left import OnProgress, Pace
from compatcheck.probes._units import paths, unit
from compatcheck.results.findings import Outcome, ProbeResult


class Memory(NamedTuple):
    """Lets results be remembered: the environment in a word, and whether to measure again what is known."""

    environment: str
    fresh: bool = False


def run(
    name: str,
    target: Target,
    request: Request,
    timeout: float | None = None,
    on_stage: OnStage | None = None,
) -> ProbeResult:
    """Run one probe; a failure counts only when a second child with another seed fails too.

    ``request`` values whose key ends in ``_file`` are paths relative to the present folder.
    """
    with Children(target) as children:
        return _run(children, name, request, timeout, on_stage)


def run_all(
    trials: Sequence[tuple[str, Measured]],
    target: Target,
    budget_seconds: float | None = None,
    on_progress: OnProgress | None = None,
    memory: Memory | None = None,
    partial: bool = False,
) -> tuple[ProbeResult, ...]:
    """Run each (probe, request) in turn, those that share most first, starting none once the budget is spent.

    With ``partial`` an interrupt from the keyboard ends the run and what has finished is returned; the rest is
    ``interrupted``.
    ``on_progress`` hears (probe, stage, seconds left). With a ``memory``, what was measured before in the same
    environment is not measured again.
    """
    pace = Pace([unit(name) for name, _ in trials])
    started = time.monotonic()
    results: dict[int, ProbeResult] = {}
    caught = (KeyboardInterrupt,) if partial else ()
    with contextlib.suppress(*caught), Children(target) as children:
        for place in sorted(range(len(trials)), key=lambda place: weight(unit(trials[place][0]))):
            name, request = trials[place]
            known = (
                _result_cache.recall(name, target, request, memory.environment) if memory and not memory.fresh else None
            )
            if known:
                results[place] = known
            elif budget_seconds is not None and time.monotonic() - started >= budget_seconds:
                results[place] = ProbeResult(name, "skip", f"not run: budget of {budget_seconds:g} s spent")
            else:
                results[place] = _run(children, name, request, None, pace.listener(name, on_progress))
                if memory:
                    _result_cache.remember(results[place], target, request, memory.environment)
            pace.done(unit(name), results[place].seconds)
    return tuple(results.get(place) or _interrupted(name) for place, (name, _) in enumerate(trials))


def _interrupted(name: str) -> ProbeResult:
    return ProbeResult(name, "skip", "not run: interrupted", {"interrupted": True})


def _run(
    children: Children, name: str, request: Request, timeout: float | None, on_stage: OnStage | None
) -> ProbeResult:
    started = time.monotonic()
    seed = int(request.get("seed", 0))
    result = _run_once(children, name, {**request, "seed": seed}, timeout, on_stage)
    if result.outcome == "fail" and not result.unusable and getattr(unit(name), "SEEDED", True):
        second = _run_once(children, name, {**request, "seed": seed + 1}, timeout, on_stage)
        result = _agree(result, second, seed)
    return result._replace(seconds=round(time.monotonic() - started, 3))


def judge(name: str, trace: Trace, rule: Callable[[Measured], tuple[Outcome, str]]) -> ProbeResult:
    """The result a trace stands for; ``rule`` is the probe's own judgement of its numbers."""
    result = trace.last("result")
    measured = dict(result["measured"]) if result else _rows_so_far(trace)
    measured["child"] = _child_record(trace)
    if result:
        try:
            outcome, why = rule(result["measured"])
        except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as odd:
            outcome, why = (
                "crash",
                f"the result has a different shape than the results of this probe ({type(odd).__name__})",
            )
    elif missing := trace.last("missing"):
        outcome, why = "skip", str(missing["what"])
    elif unusable := trace.last("unusable"):
        outcome, why = "fail", str(unusable["what"])
        measured["unusable"] = why
    elif error := trace.last("error"):
        outcome, why = "crash", f"{error['type']}: {error['message']}; {_place(trace)}"
    elif trace.limit is not None:
        outcome, why = "timeout", f"no result within {trace.limit:g} s; {_place(trace)}"
    else:
        outcome, why = "crash", f"{_death(trace.status)}; {_place(trace)}{_last_words(trace)}"
    judged = ProbeResult(name, outcome, why, measured)
    return judged._replace(why="; ".join([why, *map(str, judged.by_design)]))


def _run_once(
    children: Children, name: str, request: Request, timeout: float | None, on_stage: OnStage | None
) -> ProbeResult:
    probe = unit(name)
    trace = children.attempt(paths()[name], probe, request, timeout or probe.TIMEOUT, on_stage)
    return judge(name, trace, probe.judge)


def _agree(first: ProbeResult, second: ProbeResult, seed: int) -> ProbeResult:
    if second.outcome == "fail":
        return first
    if second.outcome in ("pass", "watch"):
        verb = "passed" if second.outcome == "pass" else "came close to the bound"
        why = f"flaky: failed with seed {seed}, {verb} with seed {seed + 1}; {first.why}"
        return first._replace(outcome="watch", why=why)
    return second._replace(why=f"failed with seed {seed} ({first.why}), then: {second.why}")


def _rows_so_far(trace: Trace) -> dict[str, object]:
    rows = [event["row"] for event in trace.events if event["event"] == "row"]
    return {"rows": rows} if rows else {}


def _child_record(trace: Trace) -> dict[str, Any]:
    hello = trace.last("hello")
    return {
        "python": hello.get("python"),
        "versions": hello.get("versions", {}),
        "modules": trace.last("loaded").get("modules", {}),
        "status": trace.status,
        "last_stage": trace.last("stage").get("name"),
        "traceback": trace.last("error").get("traceback", []),
        "times": _times(trace),
    }


def _times(trace: Trace) -> dict[str, float]:
    """Seconds by kind of work; the warm parent's import belongs to the probe that asked for it first."""
    times = {"importing": trace.warming, "compiling": 0.0, "measuring": 0.0}
    stages = [event for event in trace.events if event["event"] in ("stage", "result")]
    for event, after in zip(stages, stages[1:]):
        kind = next((each for each in ("import", "compil") if str(event.get("name")).startswith(each)), "measur")
        times[f"{kind}ing"] += after["seconds"] - event["seconds"]
    return {kind: round(seconds, 3) for kind, seconds in times.items()}


def _place(trace: Trace) -> str:
    stage = trace.last("stage")
    if stage:
        return f"last stage {stage['name']!r} at {stage['seconds']:g} s"
    return "before the first stage" if trace.events else "the probe process produced no output"


def _last_words(trace: Trace) -> str:
    tail = trace.stderr.strip().rpartition("\n")[2][-200:]
    return f"; stderr ends: {tail}" if tail else ""


def _death(status: int | None) -> str:
    if status is None:
        return "could not be stopped"
    if status >= 0:
        return f"ended with exit status {status} and no result"
    if status == -9:
        return "killed by SIGKILL, as the kernel does when memory runs out"
    try:
        return f"ended by {signal.Signals(-status).name}"
    except ValueError:
        return f"killed by signal {-status}"
