"""Build stacks of the past, train a tiny model in each, and compare what failed with what compatcheck said beforehand.

    python -m tools.ground_truth.training [--folder DIR] [--keep] [--limit SECONDS] [--out RECORD.json] [NAME...]

Needs uv, the package index and some GB of disk. The check comes first, on the environment and on a script that trains
as the stages do; then each stage runs in a process of its own: the imports, full training, accumulated gradients, LoRA,
left padding, saving and loading, resuming, and calls of each library. A stage that failed and of which nothing was said
is a *miss*; an affected finding in a stack that passed every stage is *without cause*. The exit status is 1 where there
is one of these.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

from compatcheck import matrix
from tools.ground_truth import _stages
from tools.ground_truth._run import applicable, outcomes
from tools.ground_truth._stacks import build, installed, parsed, parser_of

STAGES = (*_stages.IMPORTS, *_stages.TRAINING, *_stages.CALLS)
SCRIPT = (
    "python train.py --model_name_or_path model --per_device_train_batch_size 2 --gradient_accumulation_steps 4 "
    "--use_peft --lora_r 4 --resume_from_checkpoint out/checkpoint-2 --output_dir out\n"
)
CONFIG = {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 128, "hidden_size": 64}


class Outcome(NamedTuple):
    """What happened in one stack: the error of each failed stage, and the affected findings of the check before."""

    failed: Mapping[str, Mapping[str, Any]]
    findings: tuple[Mapping[str, Any], ...]

    def explained(self, stage: str) -> list[str]:
        """The findings that name the error of a stage or a package its traceback runs through."""
        imports = "import" in self.failed[stage]["error"].partition(":")[0].lower() or stage in _stages.IMPORTS
        return [finding["id"] for finding in self.findings if _explains(finding, self.failed[stage], imports)]

    def missed(self) -> list[str]:
        return [stage for stage in self.failed if not self.explained(stage)]

    def without_cause(self) -> list[str]:
        return [] if self.failed else [finding["id"] for finding in self.findings]


def _explains(finding: Mapping[str, Any], failure: Mapping[str, Any], imports: bool) -> bool:
    if any(re.search(regex, failure["error"]) for regex in finding["patterns"]):
        return True
    silent = finding["impact"] in ("silent-wrong", "divergence")
    if silent or failure["wrong"]:
        return bool(silent and failure["wrong"])
    if imports and finding["impact"] not in ("import-fail", "install-fail"):
        return False
    through = {name for path in failure["files"] for name in re.findall(r"site-packages/(\w+)", path)}
    return bool(through & {name.replace("-", "_") for name in finding["packages"]})


def forecast(python: Path, project: Path) -> tuple[Mapping[str, Any], ...]:
    """The affected findings of the command people type, with the error patterns of their entries."""
    (project / "model").mkdir(parents=True, exist_ok=True)
    (project / "model" / "config.json").write_text(json.dumps(CONFIG), encoding="utf-8")
    (project / "train.sh").write_text(SCRIPT, encoding="utf-8")
    command = [sys.executable, "-m", "compatcheck", "check", "train.sh", "--imports", "--no-probe", "--format", "json"]
    done = subprocess.run([*command, "--python", str(python)], capture_output=True, text=True, cwd=project)
    if done.returncode not in (0, 1):
        raise RuntimeError(done.stderr[-1500:])
    known: dict[str, list[str]] = {}
    for pattern in matrix.load().patterns():
        known.setdefault(pattern.entry, []).append(pattern.regex)
    found = json.loads(done.stdout)["findings"]
    return tuple(
        {**finding, "patterns": known.get(finding["id"], [])} for finding in found if finding["status"] == "affected"
    )


def failures(python: Path, room: Path, ends: float) -> dict[str, Mapping[str, Any]]:
    """The stages that failed, each with its error."""
    verdicts = outcomes(python, room, ends, applicable(STAGES, installed(python)))
    return {stage: verdict for stage, verdict in verdicts.items() if verdict}


def judged(name: str, folder: Path, limit: float) -> Outcome:
    """Raises RuntimeError where the stack cannot be built, TimeoutExpired where it takes too long."""
    ends = time.monotonic() + limit
    python = build(name, folder, ends)
    room = folder / name / "run"
    shutil.rmtree(room, ignore_errors=True)
    return Outcome(findings=forecast(python, room / "project"), failed=failures(python, room, ends))


def told(name: str, outcome: Outcome) -> Iterator[str]:
    for stage, failure in outcome.failed.items():
        by = outcome.explained(stage)
        yield f"    {'told' if by else 'MISS':6}{stage}: {failure['error'].splitlines()[0]:.150}  {' '.join(by)}"
    for finding in outcome.findings:
        if finding["id"] in outcome.without_cause():
            yield f"    FALSE {finding['id']} {finding['title']}"
    explained = len(outcome.failed) - len(outcome.missed())
    verdict = (
        "every stage passes" if not outcome.failed else f"{len(outcome.failed)} stages fail, {explained} were told"
    )
    yield f"{name}: {verdict}; {len(outcome.findings)} findings, {len(outcome.without_cause())} without cause"


def shape(outcome: Outcome) -> dict[str, Any]:
    return {
        "failed": {stage: failure["error"][:300] for stage, failure in outcome.failed.items()},
        "told": {stage: outcome.explained(stage) for stage in outcome.failed},
        "findings": [finding["id"] for finding in outcome.findings],
        "without_cause": outcome.without_cause(),
    }


def main() -> int:
    parser = parser_of(__doc__)
    parser.add_argument("--out", type=Path, help="write what happened as JSON")
    options = parsed(parser)
    folder = options.folder
    done: dict[str, Any] = {}
    wrong = 0
    for name in options.names:
        try:
            outcome = judged(name, folder, options.limit)
        except (RuntimeError, subprocess.TimeoutExpired) as error:
            why = str(error) if isinstance(error, RuntimeError) else f"it takes longer than {options.limit:.0f} s"
            print(f"{name}: passed over: {why}", flush=True)
            continue
        finally:
            if not options.keep:
                shutil.rmtree(folder / name, ignore_errors=True)
        print("\n".join(told(name, outcome)), flush=True)
        done[name] = shape(outcome)
        wrong += len(outcome.missed()) + len(outcome.without_cause())
        if options.out:
            record = {"date": date.today().isoformat(), "matrix": matrix.load().revision, "stacks": done}
            options.out.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    passing = sum(not each["failed"] for each in done.values())
    print(f"in all: {len(done)} stacks, {passing} pass every stage; {wrong} misses or findings without cause")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
