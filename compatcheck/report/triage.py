"""Which findings tell the same fault twice, and which missing fact would settle most of the possible ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from compatcheck.results.findings import Finding, Remedy

_LEAST_SETTLED = 2


def doubles_of(findings: Sequence[Finding]) -> dict[str, str]:
    """Each finding that another one above it stands for: they share a package and a fix, so that it clears both."""
    doubles: dict[str, str] = {}
    for at, finding in enumerate(findings):
        for above in findings[:at]:
            is_other = above.id != finding.id and above.id not in doubles and above.status == finding.status
            if is_other and set(above.packages) & set(finding.packages) and _fixes(above) & _fixes(finding):
                doubles[finding.id] = above.id
                break
    return doubles


def _fixes(finding: Finding) -> set[str]:
    """Its settings and code; versions are left out, as faults that have nothing in common end with one release."""
    return {repr(fix) for remedy in finding.remedies if (fix := _fix(remedy))}


def _fix(remedy: Remedy) -> Mapping[str, object]:
    parts = {"config": dict(remedy.config), "environ": dict(remedy.environ), "code": remedy.code}
    return {} if remedy.pins else {name: part for name, part in parts.items() if part}


def open_question(findings: Sequence[Finding]) -> tuple[str, int] | None:
    """The fact that most of the findings lack, and how many; None where only one lacks it.

    Of facts that equally many lack, it is the one that is more often all that is missing.
    """
    lacking = Counter(path for finding in findings for path in set(finding.missing))
    alone = Counter(finding.missing[0] for finding in findings if len(set(finding.missing)) == 1)
    best = max(lacking, key=lambda path: (lacking[path], alone[path], path), default=None)
    return (best, lacking[best]) if best is not None and lacking[best] >= _LEAST_SETTLED else None
