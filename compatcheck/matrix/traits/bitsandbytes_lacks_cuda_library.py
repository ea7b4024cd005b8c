"""The bitsandbytes release carries no library that it would load beside torch's CUDA runtime.

Up to 0.49 it looks for the very version, from 0.50 on for the nearest of the same major version:
https://github.com/bitsandbytes-foundation/bitsandbytes/blob/0.49.2/bitsandbytes/cextension.py
https://github.com/bitsandbytes-foundation/bitsandbytes/blob/0.50.1/bitsandbytes/cextension.py
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from packaging.version import Version

from compatcheck.environment import Environment, Unknown
from compatcheck.matrix._traits import Table
from compatcheck.matrix.matching.match import Occurrence, TraitVerdict
from compatcheck.packages.versions import parse_version

_FACTS = ("distributions.bitsandbytes", "cuda.runtime")
_MACHINES = ("x86_64", "AMD64")


def find(environment: Environment, table: Table) -> TraitVerdict:
    """Without a GPU it looks for none. A build of one's own, or a platform that was not looked up, leaves it open."""
    installed, runtime = (environment.get(path) for path in _FACTS)
    gpus = environment.get("gpus")
    if installed is None or runtime is None or not gpus:
        return TraitVerdict(False)
    missing = tuple(path for path, value in zip(_FACTS, (installed, runtime)) if isinstance(value, Unknown))
    if missing:
        return TraitVerdict(None, missing=missing)
    rows: Sequence[Mapping[str, Any]] = table("bitsandbytes-libraries")["releases"]
    version = parse_version(installed)
    row = next((row for row in reversed(rows) if version and version >= Version(row["from"])), None)
    machine, system = (environment.get(f"platform.{part}") for part in ("machine", "system"))
    looked_up = isinstance(machine, Unknown) or machine in _MACHINES
    if row is None or version is None or version.is_devrelease or "+" in installed or not looked_up:
        return TraitVerdict(None, missing=_FACTS[:1])
    if not isinstance(system, Unknown) and system not in row.get("systems", (system,)):
        return TraitVerdict(None, missing=_FACTS[:1])
    if _loads(row, runtime):
        return TraitVerdict(False)
    summary = (
        f"bitsandbytes {installed} ships libraries for CUDA {', '.join(row['libraries'])}; torch is "
        f"built with CUDA {runtime}"
    )
    return TraitVerdict(True, (Occurrence(summary, ("bitsandbytes", "torch"), _pins(rows, version, runtime)),))


def _loads(row: Mapping[str, Any], runtime: str) -> bool:
    if row["nearest"]:
        return runtime.split(".")[0] in {library.split(".")[0] for library in row["libraries"]}
    return runtime in row["libraries"]


def _pins(rows: Sequence[Mapping[str, Any]], version: Version, runtime: str) -> dict[str, str]:
    """The first release after the one installed that has a library to load."""
    later = (row["from"] for row in rows if Version(row["from"]) > version and _loads(row, runtime))
    first = next(later, None)
    return {"bitsandbytes": f">={first}"} if first else {}
