"""What is found in the environment of a report."""

from __future__ import annotations

from compatcheck import matrix
from compatcheck.environment import Environment
from compatcheck.errors import NothingInspectedError
from compatcheck.pipelines.check import check
from compatcheck.results.findings import Finding


def findings_of(known: matrix.Matrix, environment: Environment, *, suspected: int | None = None) -> tuple[Finding, ...]:
    """What `check` finds, or `triage` where somebody met a fault; nothing where there is nothing to judge."""
    try:
        return check(environment, known, suspected=suspected).findings
    except NothingInspectedError:
        return ()
