"""Try each of TrainCheck's published silent faults, and count those that are found.

    python -m tools.traincheck [--installs FOLDER] [--only NAME] [--write]

A fault of a release is tried in an installation of it below FOLDER, made where it is missing. Without --installs it is
not tried, and not counted. --write puts the table into docs/explanation/accuracy.md.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

from tools.traincheck.faults import FAULTS, Fault

_ROOT = Path(__file__).parents[2]
_PAGE = _ROOT / "docs" / "explanation" / "accuracy.md"
_BEGIN, _END = "<!-- traincheck -->", "<!-- end of traincheck -->"
_EXTRA = "accelerate-2665"
_SECONDS = 600


def found(fault: Fault, installs: str | None) -> bool | None:
    """Whether the fault is found as expected; None where that was not tried."""
    if fault.by == "nothing":
        return False
    if fault.by == "entry":
        return _applies(fault)
    if fault.requires:
        return None if installs is None else fault.finds in _signatures_there(fault, installs)
    assert fault.program is not None
    with contextlib.redirect_stderr(open(os.devnull, "w", encoding="utf-8")):
        return fault.finds in fault.program()


def _applies(fault: Fault) -> bool:
    from compatcheck import matrix
    from compatcheck.environment import Environment
    from compatcheck.pipelines.check import check

    report = check(Environment({**fault.environment}), matrix.load())
    return any(each.id == fault.finds and each.status in ("affected", "possible") for each in report.findings)


def _signatures_there(fault: Fault, installs: str) -> list[str]:
    """The alarms in an installation of the releases that the fault lives in."""
    name = hashlib.sha256(repr(fault.requires).encode()).hexdigest()[:12]
    folder = Path(installs, f"traincheck-{name}")
    python = folder / "bin" / "python"
    if not python.exists():
        uv = [sys.executable, "-m", "uv"]
        subprocess.run([*uv, "venv", "-q", "-p", "3.11", str(folder)], check=True)
        needs = [*fault.requires, "babel", "-e", str(_ROOT)]
        subprocess.run([*uv, "pip", "install", "-q", "-p", str(python), *needs], check=True)
    assert fault.program is not None
    code = (
        f"import json; from tools.traincheck import reproductions as r; print(json.dumps(r.{fault.program.__name__}()))"
    )
    done = subprocess.run(
        [str(python), "-c", code], cwd=_ROOT, capture_output=True, text=True, timeout=_SECONDS, check=True
    )
    return [str(each) for each in json.loads(done.stdout.splitlines()[-1])]


def table(results: dict[str, bool | None]) -> str:
    rows = ["| fault | what goes wrong | found by | how it was tried |", "|---|---|---|---|"]
    for fault in FAULTS:
        by = f"{fault.by}: `{fault.finds}`" if results.get(fault.name) else "not found"
        how = fault.why or ("its environment" if fault.by == "entry" else "a loop on a CPU")
        rows.append(f"| {fault.name} | {fault.wrong} | {by} | {how} |")
    counted = [fault for fault in FAULTS if fault.name != _EXTRA]
    total = sum(bool(results.get(fault.name)) for fault in counted)
    return f"{total} of the {len(counted)} public reproductions are found.\n\n" + "\n".join(rows) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--installs", help="folder of the installations; made where it is missing")
    parser.add_argument("--only", help="try the faults whose name holds this")
    parser.add_argument("--write", action="store_true", help="put the table into the page of accuracy")
    options = parser.parse_args()
    results: dict[str, bool | None] = {}
    for fault in FAULTS:
        if (options.only or "") in fault.name:
            results[fault.name] = found(fault, options.installs)
            word = {True: "found", False: "missed", None: "not tried"}[results[fault.name]]
            print(f"{word:10}{fault.name}: {fault.finds or fault.why}", flush=True)
    if options.write and not options.only:
        text = _PAGE.read_text(encoding="utf-8")
        head, tail = text.split(_BEGIN)[0], text.split(_END)[1]
        _PAGE.write_text(f"{head}{_BEGIN}\n\n{table(results)}\n{_END}{tail}", encoding="utf-8")
    expected = [fault for fault in FAULTS if fault.by != "nothing" and results.get(fault.name) is False]
    return 1 if expected else 0


if __name__ == "__main__":
    sys.exit(main())
