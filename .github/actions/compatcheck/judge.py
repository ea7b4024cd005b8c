"""The step of the action that judges: one run of compatcheck, told in each of the places where GitHub shows a report.

Inputs come as variables of the environment, INPUT_… as action.yml names them, and are never text of a command line.
"""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from tempfile import mkdtemp

SINGLE = {"PYTHON": "--python", "SNAPSHOT": "--snapshot", "FAIL_ON": "--fail-on", "BASELINE": "--baseline"}
LISTS = {"ASSUME": "--assume", "SELECT": "--select", "IGNORE": "--ignore"}
REPORTS = {
    "json": "compatcheck.json",
    "sarif": "compatcheck.sarif",
    "github": "annotations.txt",
    "markdown": "summary.md",
}


def main() -> int:
    folder = Path(mkdtemp(prefix="compatcheck-", dir=os.environ["RUNNER_TEMP"]))
    reports = {name: folder / file for name, file in REPORTS.items()}
    status = judge([f"--report={name}={file}" for name, file in reports.items()])
    outputs: dict[str, object] = {"exit-status": status}
    if reports["json"].exists():
        without_what_was_set_aside(reports["sarif"])
        outputs |= {**counts(reports["json"]), "json": reports["json"], "sarif": reports["sarif"]}
        if is_wanted("ANNOTATIONS"):
            print(reports["github"].read_text(encoding="utf-8"), end="", flush=True)
        if is_wanted("SUMMARY"):
            append("GITHUB_STEP_SUMMARY", reports["markdown"].read_text(encoding="utf-8"))
    append("GITHUB_OUTPUT", "".join(f"{key}={value}\n" for key, value in outputs.items()))
    return status


def judge(reports: list[str]) -> int:
    """Run compatcheck with its text in the log, where no line of it may be a command to the runner."""
    command = [sys.executable, "-I", "-m", "compatcheck", "check", *reports, *options(), "--", *paths()]
    token = secrets.token_hex(16)
    print(f"::stop-commands::{token}", flush=True)
    status = subprocess.run(command, check=False).returncode
    print(f"::{token}::", flush=True)
    return status


def options() -> Iterator[str]:
    for name, option in SINGLE.items():
        if value := given(name).strip():
            yield f"{option}={value}"
    for name, option in LISTS.items():
        yield from (f"{option}={value}" for value in lines(name))
    if not is_wanted("PROBE"):
        yield "--no-probe"


def paths() -> list[str]:
    """What to judge; where nothing is named, the project."""
    named = list(lines("PATHS"))
    return named if named or given("PYTHON").strip() or given("SNAPSHOT").strip() else ["."]


def lines(name: str) -> Iterator[str]:
    return (line.strip() for line in given(name).splitlines() if line.strip())


def given(name: str) -> str:
    return os.environ.get(f"INPUT_{name}", "")


def is_wanted(name: str) -> bool:
    return given(name).strip().lower() == "true"


def without_what_was_set_aside(file: Path) -> None:
    """GitHub does not heed suppressions in SARIF: it would open an alert for each."""
    log = json.loads(file.read_text(encoding="utf-8"))
    for run in log["runs"]:
        run["results"] = [result for result in run["results"] if not result.get("suppressions")]
        for result in run["results"]:
            result.pop("baselineState", None)
    file.write_text(json.dumps(log), encoding="utf-8")


def counts(file: Path) -> dict[str, int]:
    written = json.loads(file.read_text(encoding="utf-8"))
    reports = written.get("projects", [written])
    counted = Counter(finding["status"] for report in reports for finding in report["findings"])
    shown = {status: counted[status] for status in ("confirmed", "affected", "possible")}
    return {**shown, "suppressed": sum(len(report["suppressed"]) for report in reports)}


def append(variable: str, text: str) -> None:
    with Path(os.environ[variable]).open("a", encoding="utf-8", newline="\n") as stream:
        stream.write(text)


if __name__ == "__main__":
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(encoding="utf-8")  # type: ignore[union-attr]
    sys.exit(main())
