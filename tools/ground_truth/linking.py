"""Score what compatcheck foretells of recorded stacks, from their lock files alone and from their environments.

    python -m tools.ground_truth.linking [--record RECORD.json] [--folder DIR [--build]] [--details] [NAME...]

The lock file of a stack lists what the record says was installed; ``compatcheck check requirements.txt`` judges it with
no environment at all. With --folder, each environment that ``record.py`` left there is judged by ``compatcheck check
--python`` too, without --imports; with --build each is installed there first, and removed as soon as it is judged.

Counted are import and call failures that no installed package's metadata excludes. A claim, an affected finding of an
import failure or a crash, explains a failure if it names what was missing or both packages. A claim is hidden where its
package fails earlier for another reason, and unsupported where nothing failed. Of a missed failure that a possible
finding explains the line says so.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tools.ground_truth._stacks import build, installed
from tools.ground_truth.record import RECORD

_COUNTED = ("import", "attribute", "call")
POSSIBLE = " (possible)"


class Score(NamedTuple):
    """How a forecast of one stack compares with what happened."""

    foretold: tuple[str, ...] = ()
    missed: tuple[str, ...] = ()
    supported: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    unsupported: tuple[str, ...] = ()


def explains(claim: Mapping[str, Any], failure: Mapping[str, Any]) -> bool:
    """Whether a claim names what was missing, or both the package that asked and the one that was asked."""
    name = failure.get("name", "").rpartition(".")[2]
    said = json.dumps([claim[key] for key in ("title", "summary", "because")])
    if len(name) > 3 and re.search(rf"\b{re.escape(name)}\b", said):
        return True
    others = {*failure.get("provider", "").split(","), *failure.get("mentions", ())} - {"", failure.get("caller")}
    return failure.get("caller") in claim["packages"] and bool(others & set(claim["packages"]))


def score(stack: Mapping[str, Any], findings: Sequence[Mapping[str, Any]]) -> Score:
    failing = [each for each in findings if each["impact"] in ("import-fail", "crash")]
    claims = [each for each in failing if each["status"] == "affected"]
    failures = stack["failures"]
    counted = [each for each in failures if each["kind"] in _COUNTED and each["undeclared"] and each.get("caller")]
    callers = {each.get("caller") for each in failures if each["kind"] in _COUNTED}
    stopped = {stage.partition("import ")[2].lower() for each in failures for stage in each["stages"]} - {""}
    told = [any(explains(claim, each) for claim in claims) for each in counted]
    supported = [claim for claim in claims if any(explains(claim, each) for each in failures)]
    rest = [claim for claim in claims if claim not in supported]
    return Score(
        tuple(_failure_line(each) for each, is_told in zip(counted, told) if is_told),
        tuple(
            _failure_line(each) + (POSSIBLE if any(explains(finding, each) for finding in failing) else "")
            for each, is_told in zip(counted, told)
            if not is_told
        ),
        tuple(map(_claim_line, supported)),
        tuple(_claim_line(each) for each in rest if (callers | stopped) & set(each["packages"])),
        tuple(_claim_line(each) for each in rest if not (callers | stopped) & set(each["packages"])),
    )


def _failure_line(failure: Mapping[str, Any]) -> str:
    said = failure["error"].partition("\n")[0].partition(" (/")[0][:160]
    others = failure.get("provider") or ", ".join(failure.get("mentions", ())) or "?"
    return f"{failure['caller']} -> {others}: {said}"


def _claim_line(claim: Mapping[str, Any]) -> str:
    return f"{claim['id']} {claim['title']} ({', '.join(claim['packages'])})"


def is_healthy(stack: Mapping[str, Any]) -> bool:
    return not any(each["kind"] != "wrong number" for each in stack["failures"])


def judged(arguments: Sequence[str], project: Path, cache: Path) -> list[dict[str, Any]]:
    """The findings of ``compatcheck check``, with what was kept in the cache alone."""
    command = [sys.executable, "-m", "compatcheck", "check", *arguments, "--no-probe", "--isolated", "--format", "json"]
    environ = {**os.environ, "XDG_CACHE_HOME": str(cache)}
    done = subprocess.run(command, capture_output=True, text=True, cwd=project, env=environ)
    if done.returncode not in (0, 1):
        raise RuntimeError(done.stderr[-1500:])
    found: list[dict[str, Any]] = json.loads(done.stdout)["findings"]
    return found


def forecasts(name: str, stack: Mapping[str, Any], folder: Path | None, cache: Path) -> dict[str, list[dict[str, Any]]]:
    """The findings by what was judged: the lock file, and the environment where there is one."""
    found = {}
    with tempfile.TemporaryDirectory() as project:
        lock = Path(project, "requirements.txt")
        lock.write_text("\n".join(stack["installed"]) + "\n", encoding="utf-8")
        found["lock file"] = judged(["requirements.txt"], Path(project), cache)
    python = folder / name / "bin" / "python" if folder else None
    if python and python.exists():
        with tempfile.TemporaryDirectory() as project:
            found["environment"] = judged(["--python", str(python)], Path(project), cache)
    return found


def built_forecasts(
    name: str, stack: Mapping[str, Any], folder: Path, cache: Path, limit: float
) -> dict[str, list[dict[str, Any]]]:
    """The same of an environment that is installed for it; says what the index gives differently by now."""
    try:
        python = build(name, folder, time.monotonic() + limit)
        now = {f"{each}=={found.version}" for each, found in installed(python).items()}
        for changed in sorted(now.symmetric_difference(stack["installed"])):
            print(f"{name}: {'not ' if changed not in now else ''}installed now: {changed}", flush=True)
        return forecasts(name, stack, folder, cache)
    except (RuntimeError, subprocess.TimeoutExpired) as error:
        print(f"{name}: no environment: {error}", flush=True)
        return forecasts(name, stack, None, cache)
    finally:
        shutil.rmtree(folder / name, ignore_errors=True)


def summary(source: str, scores: Mapping[str, Score], healthy: set[str]) -> list[str]:
    """Lines with the sums."""
    sums = [sum(len(each[at]) for each in scores.values()) for at in range(len(Score._fields))]
    foretold, missed, supported, hidden, unsupported = sums
    on_healthy = sum(len(each.unsupported) for name, each in scores.items() if name in healthy)
    claims = supported + hidden + unsupported
    possible = sum(line.endswith(POSSIBLE) for each in scores.values() for line in each.missed)
    return [
        f"{source}: {len(scores)} stacks, {len(healthy & scores.keys())} of them healthy",
        f"  failures foretold: {foretold} of {foretold + missed} ({foretold / max(1, foretold + missed):.0%}), "
        f"{possible} more as possible",
        f"  claims: {claims}, {hidden} of them hidden, {unsupported} unsupported "
        f"({unsupported / max(1, claims):.0%}), {on_healthy} of these on healthy stacks",
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="stacks of the record; default: all")
    parser.add_argument("--record", type=Path, default=RECORD, help="default: the one beside this script")
    parser.add_argument("--folder", type=Path, help="where record.py left environments")
    parser.add_argument("--build", action="store_true", help="install each environment, and remove it afterwards")
    parser.add_argument("--limit", type=float, default=1200, help="seconds for the installation of one environment")
    parser.add_argument("--details", action="store_true", help="also print every failure and claim")
    options = parser.parse_args()
    if options.build and not options.folder:
        parser.error("--build needs --folder")
    folder = options.folder and options.folder.resolve()
    record = json.loads(options.record.read_text(encoding="utf-8"))
    scores: dict[str, dict[str, Score]] = {}
    with tempfile.TemporaryDirectory() as cache:
        for name in options.names or record:
            if options.build:
                found = built_forecasts(name, record[name], folder, Path(cache), options.limit)
            else:
                found = forecasts(name, record[name], folder, Path(cache))
            for source, findings in found.items():
                result = scores.setdefault(source, {})[name] = score(record[name], findings)
                for word, lines in result._asdict().items():
                    for line in lines if options.details or word in ("missed", "unsupported") else ():
                        print(f"{name}: {source}: {word}: {line}", flush=True)
    healthy = {name for name, stack in record.items() if is_healthy(stack)}
    for source, of_stacks in scores.items():
        print("\n".join(summary(source, of_stacks, healthy)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
