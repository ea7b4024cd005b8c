"""Run the recorder in an interpreter, and gather what it wrote down."""

from __future__ import annotations

from compatcheck.environment import Target
from compatcheck.packages.names import normalised
from compatcheck.probes import _process
from compatcheck.probes._criterion import Request, Row
from compatcheck.probes._recording import recorder
from compatcheck.probes._recording._judge import Recording
from compatcheck.probes._run import judge
from compatcheck.probes._units import FOLDER

_RECORDER = FOLDER / "_recording" / "recorder.py"


def record(
    target: Target,
    request: Request,
    limit: float | None = None,
    on_stage: _process.OnStage | None = None,
    *,
    bytecode: bool = False,
) -> Recording:
    """What the recorder writes down in the target's interpreter; ``bytecode`` of its modules may be kept there.

    A case that ends the process has its failure as its error, and another process goes on after it. ``failure`` says
    why the rest is missing: nothing begins to run, or a process reached its limit.
    """
    rows: list[Row] = []
    while True:
        order = {**request, "device": "cpu", "without": [row["case"] for row in rows]}
        trace = _process.attempt(_RECORDER, target, order, limit or recorder.TIMEOUT, on_stage, bytecode=bytecode)
        rows += [event["row"] for event in trace.events if event["event"] == "row"]
        measured = (trace.last("result") or {}).get("measured") or {}
        failure = "" if measured else judge("compare", trace, lambda _: ("pass", "")).why
        stages = [event["name"] for event in trace.events if event["event"] == "stage"]
        if measured or "measure" not in stages[:-1] or stages[-1] in order["without"]:
            break
        rows.append({"case": stages[-1], "error": failure})
        if trace.limit is not None:
            break
    names = frozenset(map(normalised, measured.get("distributions", ())))
    return Recording(tuple(rows), names, measured.get("memory_mib"), failure)
