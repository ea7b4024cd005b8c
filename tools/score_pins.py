"""What `pin` makes of labelled bug reports: whether a clean set is found, how far it is, and at what cost.

    python tools/score_pins.py REPORTS.jsonl            every report whose versions still resolve, and the sums
    python tools/score_pins.py REPORTS.jsonl --only ID  one of them, with what moved

A report counts where the resolver finds its exact versions on the index, for the Python it names (else 3.11) on this
platform. It is *clean* where a check of the pins finds nothing affected; *conflicts* are the findings that were to be
cleared. The time is compared with `uv pip compile` on the same input and the same preferences, right before it, where
uv can resolve that without leaving out what it cannot build.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))

from compatcheck import matrix
from compatcheck.advice import resolver, search, wanted
from compatcheck.advice.model import Demands, Place, Unsolvable
from compatcheck.environment import Environment
from compatcheck.errors import InputError, NothingInspectedError
from compatcheck.pipelines import check, pin
from tools.labelled.snapshot import snapshot

_EXISTS = "its versions resolve no longer"


class Score(NamedTuple):
    """One report; ``left`` are the findings on the pins, ``out`` why it does not count, None where it does."""

    id: str
    out: str | None
    conflicts: int = 0
    resolutions: int = 0
    distance: int = 0
    moved: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    seconds: float = 0.0
    uv_seconds: float = 0.0
    why: str = ""


def score(case: Mapping[str, Any], known: matrix.Matrix, budget: float) -> Score:
    environment = snapshot(case)
    versions = {name: version.partition("+")[0] for name, version in environment.facts["distributions"].items()}
    if not versions:
        return Score(case["id"], "it names no version")
    python = ".".join(str(environment.facts.get("python") or "3.11").split(".")[:2])
    place = Place(sys.executable, python)
    asked = wanted.installed(versions, versions)._replace(complete=False)
    exact = {name: f"=={version}" for name, version in versions.items()}
    try:
        kept = resolver.resolve(asked, Demands(exact), place).kept
    except (Unsolvable, InputError) as error:
        return Score(case["id"], _EXISTS, why=str(error))
    started = time.monotonic()
    resolver.resolve(asked, Demands(), place, kept)
    uv_seconds = 0.0 if kept else time.monotonic() - started
    started = time.monotonic()
    task = pin.Task(environment, known, asked, place, by_hand_cost=pin.BY_HAND_COSTS["pins"])
    planned = pin.plan(task, lambda: time.monotonic() > started + budget)
    seconds = time.monotonic() - started
    conflicts = len(_affected(known, environment))
    if isinstance(planned, search.Conflict):
        why = search.explain(planned)
        return Score(case["id"], None, conflicts, planned.resolutions, left=("no set",), seconds=seconds, why=why)
    told = planned.report
    return Score(
        case["id"],
        None,
        len(planned.causes),
        told.resolutions,
        told.distance,
        tuple(f"{each.name} {each.was} -> {each.now}" for each in told.moved),
        _affected(known, pin.solved(environment, planned.solution)),
        seconds,
        uv_seconds,
        "" if told.proven else "time ran out",
    )


def _affected(known: matrix.Matrix, environment: Environment) -> tuple[str, ...]:
    try:
        report = check.check(environment, known)
    except NothingInspectedError:
        return ()
    return tuple(sorted({finding.id for finding in report.findings if finding.status in check.BAD}))


def _sums(scores: list[Score]) -> Iterator[str]:
    counted = [each for each in scores if each.out is None]
    clean = [each for each in counted if not each.left]
    conflicting = [each for each in counted if each.conflicts]
    yield f"{len(scores)} reports, {len(counted)} whose versions still resolve, {len(clean)} of them clean after pin"
    if conflicting:
        conflicts, tries = sum(each.conflicts for each in conflicting), sum(each.resolutions for each in conflicting)
        yield f"{conflicts} conflicts in {len(conflicting)} reports, {tries / conflicts:.1f} resolutions for each"
        distances = [each.distance for each in conflicting if not each.left]
        if distances:
            yield f"distance where something moved: median {statistics.median(distances):g}, most {max(distances)}"
    for name, chosen in (("without", [e for e in counted if not e.conflicts]), ("with", conflicting)):
        ratios = [each.seconds / each.uv_seconds for each in chosen if each.uv_seconds]
        if ratios:
            middle = statistics.median(ratios)
            yield f"time over uv pip compile {name} conflicts: median {middle:.2f}, most {max(ratios):.2f}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("reports", type=Path)
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--budget", type=float, default=60.0)
    options = parser.parse_args()
    os.environ.pop("VIRTUAL_ENV", None)
    known, scores = matrix.load(), []
    for line in options.reports.read_text(encoding="utf-8").splitlines():
        case = json.loads(line)
        if options.only and case["id"] not in options.only:
            continue
        each = score(case, known, options.budget)
        scores.append(each)
        verdict = each.out or (f"left {', '.join(each.left)}" if each.left else "clean")
        print(
            f"{each.id:<48} {verdict}, {each.conflicts} conflicts, {each.resolutions} resolutions, "
            f"distance {each.distance}, {each.seconds:.1f} s; {'; '.join(each.moved[:6])} {each.why[:300]}",
            flush=True,
        )
    for line in _sums(scores):
        print(line)
    return 0 if all(not each.left for each in scores) else 1


if __name__ == "__main__":
    sys.exit(main())
