"""Stage 4: what to do instead."""

from __future__ import annotations

from collections.abc import Iterable

from compatcheck.environment import Environment
from compatcheck.results.findings import Finding


def recommend(environment: Environment, findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """The findings with the remedies that the user's GPUs allow, and the steps of each in the user's own files."""
    return tuple(_add_steps(environment, finding) for finding in findings)


def _add_steps(environment: Environment, finding: Finding) -> Finding:
    from compatcheck.advice._hardware import possible_remedies
    from compatcheck.advice.edits import steps

    possible = possible_remedies(finding.remedies, environment)
    remedies = (remedy._replace(steps=tuple(steps(remedy, environment))) for remedy in possible)
    return finding._replace(remedies=tuple(remedies))
