"""Build stacks, run their stages, and keep what was installed and what failed, so that forecasts can be scored later.

    python -m tools.ground_truth.record [--folder DIR] [--keep] [--limit SECONDS] [--record RECORD.json] [NAME...]

Needs uv, the package index and some GB of disk. Each stack is written into the record as soon as it is done; stacks
that the record has already are skipped. `linking.py` scores from the record alone.
"""

from __future__ import annotations

import importlib.metadata
import json
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tools.ground_truth import _stages
from tools.ground_truth._run import applicable, outcomes
from tools.ground_truth._stacks import build, installed, parsed, parser_of

RECORD = Path(__file__).parent / "record.json"
STAGES = (*_stages.IMPORTS, "full training", "LoRA", "save and reload", *_stages.CALLS)


def conflicts(distributions: Mapping[str, importlib.metadata.Distribution]) -> Iterator[tuple[str, str, str]]:
    """Who declares a requirement that is not met, of what, and the requirement: what ``pip check`` prints."""
    for name, each in distributions.items():
        for text in each.requires or ():
            required = Requirement(text)
            if required.marker and not required.marker.evaluate({"extra": ""}):
                continue
            other = canonicalize_name(required.name)
            if other not in distributions or not required.specifier.contains(distributions[other].version, True):
                yield name, other, str(required)


def causes(verdicts: Mapping[str, Mapping[str, Any] | None], declared: set[frozenset[str]]) -> list[dict[str, Any]]:
    """The failed stages by what they failed of."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for stage, verdict in verdicts.items():
        if not verdict:
            continue
        at = verdict["frames"][-1] if verdict["frames"] else ""
        key = verdict["root"].partition("\n")[0], at.partition(":")[0]
        if key not in found:
            kept = ("kind", "name", "caller", "provider", "mentions", "frames")
            found[key] = {
                "stages": [],
                "error": re.sub(r"[^\s(]*/site-packages/", "", verdict["root"]),
                "kind": "wrong number" if verdict["wrong"] else verdict["kind"],
                **{word: verdict[word] for word in kept[1:] if verdict.get(word)},
            }
            others = {verdict.get("provider"), *verdict.get("mentions", ())}
            found[key]["undeclared"] = not any(frozenset((verdict.get("caller"), each)) in declared for each in others)
        found[key]["stages"].append(stage)
    return list(found.values())


def recorded(name: str, folder: Path, limit: float) -> dict[str, Any]:
    """Raises RuntimeError where the stack cannot be built, TimeoutExpired where it takes too long."""
    ends = time.monotonic() + limit
    python = build(name, folder, ends)
    distributions = installed(python)
    stages = applicable(STAGES, distributions)
    room = folder / name / "run"
    shutil.rmtree(room, ignore_errors=True)
    verdicts = outcomes(python, room, ends, stages, folder / f"{name}.log")
    shutil.rmtree(room, ignore_errors=True)
    unmet = sorted(conflicts(distributions))
    return {
        "python": "3.11",
        "installed": sorted(f"{each}=={found.version}" for each, found in distributions.items()),
        "conflicts": [f"{one} requires {text}" for one, _, text in unmet],
        "failures": causes(verdicts, {frozenset((one, other)) for one, other, _ in unmet}),
        "passed": [stage for stage, verdict in verdicts.items() if not verdict],
    }


def main() -> int:
    parser = parser_of(__doc__)
    parser.add_argument("--record", type=Path, default=RECORD, help="default: the one beside this script")
    options = parsed(parser)
    record = json.loads(options.record.read_text(encoding="utf-8")) if options.record.exists() else {}
    for name in options.names:
        if name in record:
            continue
        began = time.monotonic()
        try:
            record[name] = recorded(name, options.folder, options.limit)
        except (RuntimeError, subprocess.TimeoutExpired) as error:
            print(f"{name}: skipped: {error}", flush=True)
            continue
        finally:
            if not options.keep:
                shutil.rmtree(options.folder / name, ignore_errors=True)
        lines = (f"{json.dumps(key)}: {json.dumps(value)}" for key, value in record.items())
        options.record.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
        print(f"{name}: {len(record[name]['passed'])} stages pass, {time.monotonic() - began:.0f} s", flush=True)
        for each in record[name]["failures"]:
            said = each["error"].partition("\n")[0][:180]
            word = "undeclared" if each["undeclared"] else "declared"
            print(f"    {each['kind']}, {word}: {', '.join(each['stages'])}: {said}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
