"""How well the matrix explains labelled bug reports, and how quiet it is on environments that are known to work.

    python tools/score_cases.py REPORTS.jsonl CLEAN.jsonl          the four figures, and the reports left unsolved
    python tools/score_cases.py REPORTS.jsonl CLEAN.jsonl --pasted the pasted text of each report against its snapshot

A report is *solved* where a finding of `check` that is affected or confirmed speaks of a package of the cause or of the
fix, one of its remedies agrees with the known fix, and it is gone once that fix is applied; *helped* where a possible
finding does all of that, or an explanation of `diagnose` that is at least plausible. An *alarm* is a working
environment with an affected or confirmed finding; *noise* is the number of possible findings for each of them.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))

from compatcheck import advice, matrix
from compatcheck.environment import Environment
from compatcheck.explanation.ranking import band_of, rank
from compatcheck.pipelines.diagnose import case_of_text
from tools.labelled.agreement import agrees_with, speaks_of
from tools.labelled.findings import findings_of
from tools.labelled.fix import applied
from tools.labelled.pasted import compared
from tools.labelled.snapshot import snapshot

BAD = ("affected", "confirmed")


class Score(NamedTuple):
    """What became of one report: the finding that explains it, and what was tried on the way."""

    id: str
    status: str | None
    finding: str | None = None
    near: str = ""


def score(known: matrix.Matrix, case: Mapping[str, Any]) -> Score:
    environment = snapshot(case)
    found = findings_of(known, environment)
    mended = applied(environment, case["fix"], known)
    after = findings_of(known, mended)
    open_still = {(finding.id, finding.packages) for finding in after}
    fixed = {(finding.id, finding.packages) for finding in after if finding.status in BAD}
    near = ""
    for finding in found:
        speaks, agrees = speaks_of(finding, case), any(agrees_with(remedy, case["fix"]) for remedy in finding.remedies)
        gone = (finding.id, finding.packages) not in (fixed if finding.status in BAD else open_still)
        if speaks and agrees and gone and finding.status in (*BAD, "possible"):
            return Score(case["id"], finding.status, finding.id)
        if speaks:
            near = near or f"{finding.id} {finding.status}" + ("" if agrees else ", another remedy") + (
                "" if gone else ", not gone after the fix"
            )
    explaining = _explaining(known, case, environment, mended)
    return Score(case["id"], "plausible", explaining) if explaining else Score(case["id"], None, near=near)


def _explaining(
    known: matrix.Matrix, case: Mapping[str, Any], environment: Environment, mended: Environment
) -> str | None:
    """The entry that explains a report's error line in its environment, which the fix rules out."""
    message = (case.get("symptom") or {}).get("message") or ""
    read = case_of_text(message, case["id"], known)
    context, explained = rank(read._replace(environment=read.environment.overlay(environment)), known)
    likely = [each.weighing for each in explained if band_of(each) != "long shot"]
    gone = matrix.ruled_out(known, matrix.infer(known, mended), {each.row.id for each in likely})
    for each in likely:
        found = matrix.finding_of(known, each.row, each.verdict, context.judged)
        (finding,) = advice.recommend(context.judged.view, [found])
        agrees = any(agrees_with(remedy, case["fix"]) for remedy in finding.remedies)
        if gone[finding.id] and agrees and speaks_of(finding, case):
            return finding.id
    return None


def read_cases(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def figures(known: matrix.Matrix, reports: list[dict[str, Any]], clean: list[dict[str, Any]]) -> dict[str, Any]:
    """The four figures, over all reports and over those whose cause their own environment shows."""
    scores = {case["id"]: score(known, case) for case in reports}
    shown = [case["id"] for case in reports if case["detectable_from_env"] and case["confirmed_by"] != "unclear"]
    quiet = {case["id"]: findings_of(known, snapshot(case, reported=False)) for case in clean}
    counted: dict[str, Any] = {"scores": scores, "clean": quiet}
    for label, ids in (("all", list(scores)), ("detectable", shown)):
        solved = sum(scores[each].status in BAD for each in ids)
        helped = sum(scores[each].status is not None for each in ids)
        counted[label] = (solved, helped, len(ids))
    counted["alarms"] = [each for each, found in quiet.items() if any(f.status in BAD for f in found)]
    counted["noise"] = sum(f.status == "possible" for found in quiet.values() for f in found) / max(len(quiet), 1)
    return counted


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("reports", type=Path)
    parser.add_argument("clean", type=Path)
    parser.add_argument("--pasted", action="store_true", help="compare pasted text with snapshots instead")
    arguments = parser.parse_args()
    known, reports, clean = matrix.load(), read_cases(arguments.reports), read_cases(arguments.clean)
    if arguments.pasted:
        _print_pasted(known, [case for case in reports if case.get("env_block")])
        return
    counted = figures(known, reports, clean)
    for label in ("all", "detectable"):
        solved, helped, total = counted[label]
        print(
            f"{label:<11} solved {solved}/{total} ({solved / total:.0%})"
            f"  helped {helped}/{total} ({helped / total:.0%})"
        )
    print(f"{'clean':<11} alarms {len(counted['alarms'])}/{len(clean)}  noise {counted['noise']:.2f} per environment")
    for alarm in counted["alarms"]:
        bad = [f.id for f in counted["clean"][alarm] if f.status in BAD]
        print(f"  alarm  {alarm}: {', '.join(bad)}")
    print("\nunsolved")
    for case in reports:
        result = counted["scores"][case["id"]]
        if result.status not in BAD:
            fix = {**case["fix"]["packages"], **case["fix"]["config"]}
            mark = "helped" if result.status else "" if case["detectable_from_env"] else "not detectable"
            print(f"  {case['id']}  [{mark or result.near or 'nothing'}]")
            print(f"      cause  {', '.join(case['cause']['packages'])}: {case['cause']['summary']}")
            print(f"      fix    {json.dumps(fix, ensure_ascii=False)}")


def _print_pasted(known: matrix.Matrix, reports: list[dict[str, Any]]) -> None:
    agreeing = 0
    for case in reports:
        differences, same = compared(known, case)
        agreeing += same
        for each in differences:
            why = f"  ({each.explained})" if each.explained else ""
            print(f"{each.id}  {each.what}: pasted {each.pasted}, given {each.given}{why}")
    print(f"\n{agreeing} of {len(reports)} pasted texts give the findings of their snapshot")


if __name__ == "__main__":
    main()
