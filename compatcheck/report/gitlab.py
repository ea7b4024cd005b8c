"""The report as GitLab's Code Quality, which is shown beside a merge request.

https://docs.gitlab.com/ci/testing/code_quality/#code-quality-report-format
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from compatcheck.files import repository
from compatcheck.report._places import place
from compatcheck.report._plain_text import told
from compatcheck.report.steps import step_texts
from compatcheck.results.findings import Finding, Report, Status, fingerprint

_SEVERITIES: dict[Status, str] = {
    "confirmed": "critical",
    "affected": "major",
    "possible": "minor",
    "refuted": "info",
}


def render(report: Report, *, exit_reason: str, refuted: bool = False) -> str:
    """Every finding but those set aside. GitLab wants each fingerprint once: that of a repeated one is counted on."""
    root = repository.root()
    seen: Counter[str] = Counter()
    issues = []
    for finding in told(report, refuted):
        mark = fingerprint(finding)
        seen[mark] += 1
        issues.append(_issue(finding, report, root, mark if seen[mark] == 1 else f"{mark}-{seen[mark]}"))
    return json.dumps(issues, indent=2, ensure_ascii=False) + "\n"


def _issue(finding: Finding, report: Report, root: str, mark: str) -> dict[str, Any]:
    at = place(finding, report, root)
    fix = f" Fix: {', and '.join(step_texts(finding.remedies[0]))}." if finding.remedies else ""
    return {
        "description": f"{finding.title} ({finding.status}). {finding.summary}{fix}",
        "check_name": finding.id,
        "fingerprint": mark,
        "severity": _SEVERITIES[finding.status],
        "location": {"path": at.path, "lines": {"begin": at.line or 1}},
    }
