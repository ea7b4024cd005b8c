"""Documented faults, planted on purpose, and what the probes make of them.

A plain file holds the faults of one area as ``FAULTS``; `_plant.py` says how they are planted and tried.
`python tools/fault_table.py` prints the table that stands in `compatcheck/probes/README.md`.
"""

from __future__ import annotations

import importlib
from pathlib import Path

from tools.faults._plant import Fault


def all_faults() -> tuple[Fault, ...]:
    """Every fault of this folder, by area in the order of the file names."""
    areas = sorted(path.stem for path in Path(__file__).parent.glob("[!_]*.py"))
    return tuple(fault for area in areas for fault in importlib.import_module(f"{__package__}.{area}").FAULTS)
