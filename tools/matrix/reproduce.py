"""Prove an entry in two environments that are really built: its probe fails in the bad and passes in the good one."""

from __future__ import annotations

import os
import platform
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from compatcheck import probes
from compatcheck.advice import environment
from compatcheck.advice.model import Place
from compatcheck.environment import Environment
from compatcheck.errors import CompatcheckError, InputError
from compatcheck.installed.collect import collect
from compatcheck.installed.target import find_target
from compatcheck.packages.names import normalised
from compatcheck.results.findings import ProbeResult

Verdict = Literal["reproduced", "not reproduced", "not tried"]
_UNTRIED = ("skip", "crash", "timeout")
_MOST_ROWS = 24
_CARRIED = ("torch", "transformers", "accelerate", "peft", "trl", "deepspeed", "bitsandbytes", "numpy", "triton")


class Side(NamedTuple):
    """One of the two environments: what it was asked to hold, the versions it held, and what the probe said in it."""

    requirements: tuple[str, ...]
    python: str
    distributions: Mapping[str, str]
    result: ProbeResult
    gpus: tuple[str, ...] = ()


class Reproduction(NamedTuple):
    """What came of one entry, and why; a side is None where its environment was not built."""

    id: str
    title: str
    verdict: Verdict
    why: str
    bad: Side | None = None
    good: Side | None = None


def reproducible(entry: Mapping[str, Any]) -> bool:
    """Whether the entry says how to reproduce it, and still stands."""
    return bool(entry.get("reproduce"))


def require(entries: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
    """The entries; raises InputError for the first that cannot be reproduced."""
    for entry in entries:
        if not reproducible(entry):
            seen = "it is withdrawn" if entry.get("withdrawn") else "it has no [reproduce] table"
            advice = f"see its evidence with compatcheck explain {entry['id']}"
            raise InputError("reproducing", entry["id"], seen, advice)
    return entries


def reproduce(
    entry: Mapping[str, Any], *, offline: bool = False, on_line: Callable[[str], None] = lambda line: None
) -> Reproduction:
    """Build the bad environment of an entry that has one, probe it and remove it, then the good one.

    ``on_line`` hears of the progress. An environment that cannot be built is told of, and leaves the entry untried.
    """
    name = entry["probe"]["name"]
    if name not in probes.names():
        why = f"this version of compatcheck has no probe {name}; a newer one may"
        return Reproduction(entry["id"], entry["title"], "not tried", why)
    sides: list[Side] = []
    for kind in ("bad", "good"):
        on_line(f"{entry['id']}, the {kind} environment")
        try:
            sides.append(_tried(entry, kind, offline, on_line))
        except CompatcheckError as error:
            why = f"the {kind} environment: {error}"
            return Reproduction(entry["id"], entry["title"], "not tried", why, *sides)
    return Reproduction(entry["id"], entry["title"], *judge(sides[0].result, sides[1].result), *sides)


def judge(bad: ProbeResult, good: ProbeResult) -> tuple[Verdict, str]:
    """Reproduced where the probe fails in the bad environment and passes in the good one, and nothing less."""
    for kind, result in (("bad", bad), ("good", good)):
        if result.outcome in _UNTRIED:
            return "not tried", f"the probe was undecided in the {kind} environment: {result.outcome}, {result.why}"
    if bad.outcome != "fail":
        return "not reproduced", f"no failure in the bad environment: {bad.outcome}, {bad.why}"
    if good.outcome != "pass":
        return "not reproduced", f"no pass in the good environment: {good.outcome}, {good.why}"
    return "reproduced", bad.why


def _tried(entry: Mapping[str, Any], kind: str, offline: bool, on_line: Callable[[str], None]) -> Side:
    recipe = entry["reproduce"]
    return build_and_probe(entry, recipe[kind], recipe.get(f"{kind}_afterwards", ()), offline=offline, on_line=on_line)


def build_and_probe(
    entry: Mapping[str, Any],
    requirements: Sequence[str],
    afterwards: Sequence[str] = (),
    *,
    offline: bool = False,
    on_line: Callable[[str], None] = lambda line: None,
) -> Side:
    """Build an environment of the requirements, run the entry's probe in it and remove it.

    What is to be installed ``afterwards`` goes over it without what it requires. Raises CompatcheckError where it
    cannot be built.
    """

    def on_probe(probe: str, stage: str, left: float) -> None:
        on_line(f"  probing {probe}: {stage}")

    probe, place = entry["probe"], Place(entry["reproduce"]["python"], offline=offline)
    with environment.build(requirements, place, over=afterwards, on_line=on_line) as executable:
        target = find_target(executable, {})
        seen = collect(target, architectures=False)
        (result,) = probes.run_all([(probe["name"], probe.get("request", {}))], target, on_progress=on_probe)
        told = _main_part(result, os.path.dirname(os.path.dirname(executable)))
    return Side((*requirements, *afterwards), target.version, _named(entry, seen), told, _gpus(seen))


def _named(entry: Mapping[str, Any], seen: Environment) -> dict[str, str]:
    """The versions that a reader asks for first: of what the two environments name, and of what training rests on."""
    from packaging.requirements import Requirement

    recipe = entry["reproduce"]
    parts = ("bad", "good", "bad_afterwards", "good_afterwards")
    asked = [Requirement(text).name for part in parts for text in recipe.get(part, ())]
    names = {normalised(name) for name in (*asked, *entry["packages"])} | set(_CARRIED)
    return {name: version for name, version in sorted(seen.facts["distributions"].items()) if name in names}


def _gpus(seen: Environment) -> tuple[str, ...]:
    return tuple(gpu["name"] for gpu in seen.facts.get("gpus") or () if gpu.get("name"))


def _main_part(result: ProbeResult, venv: str) -> ProbeResult:
    """The result without what only the process was, rows beyond the first ones, and folders of this machine."""
    measured = {key: value for key, value in result.measured.items() if key != "child"}
    if "rows" in measured:
        measured["rows"] = measured["rows"][:_MOST_ROWS]
    return result._replace(why=_placeless(result.why, venv), measured=_placeless(measured, venv))


def _placeless(value: Any, venv: str) -> Any:
    """The value with ``$VENV``, ``$TMPDIR`` and ``~`` for the folders that are this machine's own."""
    if isinstance(value, str):
        inside = value.replace(venv, "$VENV").replace(tempfile.gettempdir() + os.sep, f"$TMPDIR{os.sep}")
        return inside.replace(os.path.expanduser("~") + os.sep, f"~{os.sep}")
    if isinstance(value, Mapping):
        return {key: _placeless(each, venv) for key, each in value.items()}
    return [_placeless(each, venv) for each in value] if isinstance(value, (list, tuple)) else value


def record_name(shape: Mapping[str, Any]) -> str:
    """The file name of a record: a later run of the same day replaces it."""
    return f"{shape['date']}-reproduce-{shape['entry'].lower()}.json"


def record(reproduction: Reproduction) -> dict[str, Any]:
    """What a record of the run holds, as plain values: evidence that an entry can cite."""
    side = reproduction.bad or reproduction.good
    return {
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "entry": reproduction.id,
        "title": reproduction.title,
        "command": f"compatcheck matrix reproduce {reproduction.id}",
        "platform": {
            "system": platform.system(),
            "machine": platform.machine(),
            "python": side.python if side else None,
            "cores": os.cpu_count(),
            "gpu": (", ".join(side.gpus) if side else "") or None,
        },
        "verdict": reproduction.verdict,
        "why": reproduction.why,
        "bad": _shape(reproduction.bad),
        "good": _shape(reproduction.good),
    }


def _shape(side: Side | None) -> dict[str, Any] | None:
    if side is None:
        return None
    result = side.result
    probe = {"name": result.probe, "outcome": result.outcome, "why": result.why, "seconds": result.seconds}
    return {
        "requirements": list(side.requirements),
        "distributions": dict(side.distributions),
        "probe": {**probe, "measured": dict(result.measured)},
    }
