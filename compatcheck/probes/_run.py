"""Run probes in the target's interpreter, one child each, and say what came of it.

A child is judged by the events it wrote, not by its exit status: a correct result followed by an
abort at teardown is a result.
"""

from __future__ import annotations

import importlib
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from compatcheck.model import Outcome, ProbeResult, Target
from compatcheck.probes._process import FOLDER, OnStage, Trace, attempt


def run(
    name: str,
    target: Target,
    request: Mapping[str, Any],
    timeout: float | None = None,
    on_stage: OnStage | None = None,
) -> ProbeResult:
    """Run one probe; a failure counts only when a second child with another seed fails too.

    ``request`` values whose key ends in ``_file`` are paths relative to the present folder.
    """
    started = time.monotonic()
    seed = int(request.get("seed", 0))
    first = _run_once(name, target, {**request, "seed": seed}, timeout, on_stage)
    result = first
    if first.outcome == "fail":
        second = _run_once(name, target, {**request, "seed": seed + 1}, timeout, on_stage)
        result = _agree(first, second, seed)
    return result._replace(seconds=round(time.monotonic() - started, 3))


def run_all(
    trials: Sequence[tuple[str, Mapping[str, Any]]],
    target: Target,
    budget_seconds: float | None = None,
    on_progress: Callable[[str, str], None] | None = None,
) -> tuple[ProbeResult, ...]:
    """Run each (probe, request) in turn, starting none once the budget is spent.

    ``on_progress`` hears (probe, stage).
    """
    started = time.monotonic()
    results = []
    for name, request in trials:
        if budget_seconds is not None and time.monotonic() - started >= budget_seconds:
            results.append(ProbeResult(name, "skip", f"budget of {budget_seconds:g} s spent"))
            continue

        def on_stage(stage: str, seconds: float, name: str = name) -> None:
            if on_progress is not None:
                on_progress(name, stage)

        results.append(run(name, target, request, on_stage=on_stage))
    return tuple(results)


def judge(name: str, trace: Trace, rule: Callable[[Mapping[str, Any]], tuple[Outcome, str]]) -> ProbeResult:
    """The result a trace stands for; ``rule`` is the probe's own judgement of its numbers."""
    result = trace.last("result")
    measured = dict(result["measured"]) if result else _rows_so_far(trace)
    measured["child"] = _child_record(trace)
    if result:
        outcome, why = rule(result["measured"])
    elif missing := trace.last("missing"):
        outcome, why = "skip", str(missing["what"])
    elif error := trace.last("error"):
        outcome, why = "crash", f"{error['type']}: {error['message']}; {_place(trace)}"
    elif trace.limit is not None:
        outcome, why = "timeout", f"no result within {trace.limit:g} s; {_place(trace)}"
    else:
        outcome, why = "crash", f"{_death(trace.status)}; {_place(trace)}{_last_words(trace)}"
    return ProbeResult(name, outcome, why, measured)


def _run_once(
    name: str, target: Target, request: Mapping[str, Any], timeout: float | None, on_stage: OnStage | None
) -> ProbeResult:
    probe = importlib.import_module(f"{__package__}.{name}")
    limit = timeout if timeout is not None else probe.TIMEOUT
    trace = attempt(FOLDER / f"{name}.py", target, request, limit, on_stage)
    return judge(name, trace, probe.judge)


def _agree(first: ProbeResult, second: ProbeResult, seed: int) -> ProbeResult:
    if second.outcome == "fail":
        return first
    if second.outcome in ("pass", "watch"):
        verb = "passed" if second.outcome == "pass" else "came close to the bound"
        why = f"flaky: failed with seed {seed}, {verb} with seed {seed + 1}; {first.why}"
        return first._replace(outcome="watch", why=why)
    return second._replace(why=f"failed with seed {seed} ({first.why}), then: {second.why}")


def _rows_so_far(trace: Trace) -> dict[str, Any]:
    rows = [event["row"] for event in trace.events if event["event"] == "row"]
    return {"rows": rows} if rows else {}


def _child_record(trace: Trace) -> dict[str, Any]:
    hello, result = trace.last("hello"), trace.last("result")
    return {
        "python": hello.get("python"),
        "versions": hello.get("versions", {}),
        "modules": result.get("modules", {}),
        "status": trace.status,
        "last_stage": trace.last("stage").get("name"),
        "traceback": trace.last("error").get("traceback", []),
    }


def _place(trace: Trace) -> str:
    stage = trace.last("stage")
    if stage:
        return f"last stage {stage['name']!r} at {stage['seconds']:g} s"
    return "before the first stage" if trace.events else "the child said nothing"


def _last_words(trace: Trace) -> str:
    tail = trace.stderr.strip().rpartition("\n")[2][-200:]
    return f"; stderr ends: {tail}" if tail else ""


def _death(status: int | None) -> str:
    if status is None:
        return "could not be ended"
    if status >= 0:
        return f"ended with exit status {status} and no result"
    try:
        return f"ended by {signal.Signals(-status).name}"
    except ValueError:
        return f"ended by signal {-status}"
