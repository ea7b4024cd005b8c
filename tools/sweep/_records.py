"""What was measured: one line of JSON for each stack, in the order in which the stacks ran."""

from __future__ import annotations

import ast
import functools
import hashlib
import json
import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from compatcheck.files import storage
from compatcheck.probes import _units
from compatcheck.probes._criterion import verdict
from compatcheck.results.findings import ProbeResult
from tools.sweep._stacks import TRIALS

ROOT = Path(__file__).resolve().parents[2]
RECORDS = ROOT / "matrix" / "records" / "releases-swept.json"
LONGEST, MOST_CASES = 300, 12
_FOLDER = re.compile(r"/\S*/(?=site-packages/)")
_SENTENCE = re.compile(r"\w.*\s.*\w.*\s.*\w")
Record = dict[str, Any]
"""``stack``, ``packages``, ``date``, ``hardware`` and ``probes``: by column what came of it; or ``unbuildable``."""


def read(path: Path | None = None) -> dict[str, Record]:
    """The records by stack."""
    path = path or RECORDS
    if not path.exists():
        return {}
    return {record["stack"]: record for record in json.loads(path.read_text(encoding="utf-8"))["stacks"]}


def keep(record: Record, path: Path | None = None) -> None:
    """Put the record in the place of an older one of its stack; what that knows of other columns stays."""
    records = read(path)
    before = records.pop(record["stack"], {})
    if before.get("packages") == record["packages"]:
        record["probes"] = {**before.get("probes", {}), **record["probes"]}
    lines = ",\n".join(json.dumps(each, ensure_ascii=False) for each in [*records.values(), record])
    head = '{"command": "python -m tools.sweep", "stacks": [\n'
    storage.write(str(path or RECORDS), f"{head}{lines}\n]}}\n")


def columns_left(name: str, columns: Sequence[str], again: bool, path: Path | None = None) -> list[str]:
    """The columns of a stack that have not been run with the present probes."""
    record = read(path).get(name, {"probes": {}})
    if "unbuildable" in record and not again:
        return []
    known = {column: row["digest"] for column, row in record["probes"].items()}
    existing = [column for column in columns if TRIALS.get(column, (column,))[0] in _units.paths()]
    return [column for column in existing if again or known.get(column) != digest(column)]


def hardware() -> str:
    """The processor in a few words, and how many of it."""
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines() if os.path.exists("/proc/cpuinfo") else []
    model = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown")
    return f"{os.cpu_count()} x {model}"


def row(column: str, result: ProbeResult) -> dict[str, Any]:
    """What is kept of a result."""
    kept = {
        "outcome": result.outcome,
        "theta": worst(result.measured),
        "why": _FOLDER.sub("", result.why)[:LONGEST],
        "failing": failing(result.measured) or None,
        "seconds": round(result.seconds, 1),
        "digest": digest(column),
    }
    return {name: value for name, value in kept.items() if value is not None}


def failing(measured: Mapping[str, Any]) -> list[str]:
    """The cases of which a judged row fails."""
    rows = [
        row for row in measured.get("rows", ()) if "case" in row and "recorded" not in row and not row.get("control")
    ]
    failed = {f"{row['case']}, {row['variant']}": _size(row) for row in rows if _fails(row)}
    return [_FOLDER.sub("", f"{name} ({size})") for name, size in failed.items()][:MOST_CASES]


def _fails(row: Mapping[str, Any]) -> bool:
    return "error" in row and "theta" not in row or verdict(row["theta"], row["rho"]) == "fail"


def _size(row: Mapping[str, Any]) -> str:
    """The length of what was computed over the right one, where the row has it, else theta."""
    if "ratio" in row:
        return f"{float(row['ratio']):.3g} times"
    return f"theta {float(row['theta']):.2g}" if "theta" in row else str(row["error"])[:80]


def worst(measured: Mapping[str, Any]) -> float | str | None:
    """The largest error of the judged rows over what rounding explains; None where the rows are of another kind."""
    rows = [row for row in measured.get("rows", ()) if "recorded" not in row and not row.get("control")]
    found = [theta for row in rows if row.get("judged", True) for theta in _theta(row)]
    if not found:
        return None
    largest = max(found, key=lambda theta: (not theta <= math.inf, theta))
    return float(f"{largest:.3g}") if math.isfinite(largest) else str(largest)


def _theta(row: Mapping[str, Any]) -> Iterator[float]:
    try:
        if "theta" in row:
            yield float(row["theta"])
        elif "error" in row and "bound" in row:
            yield float(row["error"]) / float(row["bound"])
    except (TypeError, ValueError):
        return


@functools.cache
def digest(column: str) -> str:
    """A word for what the column measures with: its request, its probe, and the modules of ours that it imports.

    What is only said of them, in docstrings, comments and sentences, does not count.
    """
    probe, request = TRIALS.get(column, (column, {}))
    files = sorted(_files(_units.paths()[probe]))
    parts = [json.dumps(request, sort_keys=True), *(_code(path) for path in files)]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:8]


def _code(path: Path) -> str:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node, clean=False):
            del node.body[0]
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and _SENTENCE.search(node.value):
            node.value = ""
    return ast.dump(tree)


def _files(path: Path, known: frozenset[Path] = frozenset()) -> frozenset[Path]:
    """The file and those of the probes that it imports, directly or not."""
    known |= {path}
    for name in _imported(ast.parse(path.read_text(encoding="utf-8"))):
        file = ROOT.joinpath(*name.split(".")).with_suffix(".py")
        if name.startswith("compatcheck.probes.") and file.exists() and file not in known:
            known = _files(file, known)
    return known


def _imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
