"""What is found in the environment of a report."""

from __future__ import annotations

from compatcheck import matrix
from compatcheck.environment import Environment
from compatcheck.errors import NothingInspectedError
from compatcheck.pipelines.check import check
from compatcheck.results.findings import Finding


def findings_of(known: matrix.Matrix, environment: Environment) -> tuple[Finding, ...]:
    """What `check` finds; nothing where there is nothing to judge."""
    try:
        return check(environment, known).findings
    except NothingInspectedError:
        return ()
