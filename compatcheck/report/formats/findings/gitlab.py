"""Findings as GitLab's Code Quality, which is shown beside a merge request.

https://docs.gitlab.com/ci/testing/code_quality/#code-quality-report-format
"""

from __future__ import annotations

from collections import Counter

from compatcheck.files import repository
from compatcheck.files.json_text import written_json
from compatcheck.language import gettext as _
from compatcheck.report import because
from compatcheck.report._places import place
from compatcheck.report._plain_text import first_fix
from compatcheck.report.document import Document
from compatcheck.results.findings import Finding, Report, Status, fingerprint
from compatcheck.terminal.screen import Screen

_SEVERITIES: dict[Status, str] = {
    "confirmed": "critical",
    "affected": "major",
    "possible": "minor",
    "refuted": "info",
}


def render(document: Document, screen: Screen) -> str:
    """Every finding but those set aside. GitLab wants each fingerprint once: that of a repeated one is counted on."""
    report, root = document.findings, repository.root()
    seen: Counter[str] = Counter()
    issues = []
    for finding in report.findings:
        mark = fingerprint(finding)
        seen[mark] += 1
        issues.append(_issue(finding, report, root, mark if seen[mark] == 1 else f"{mark}-{seen[mark]}"))
    return written_json(issues)


def _issue(finding: Finding, report: Report, root: str, mark: str) -> dict[str, object]:
    at = place(finding, report, root)
    rests_on = because.sentence(finding)
    why = f" {rests_on[:1].upper()}{rests_on[1:]}." if rests_on else ""
    fix = f" {first_fix(finding)}" if finding.remedies else ""
    return {
        "description": f"{finding.title} ({_(finding.status)}). {finding.summary}{why}{fix}",
        "check_name": finding.id,
        "fingerprint": mark,
        "severity": _SEVERITIES[finding.status],
        "location": {"path": at.path, "lines": {"begin": at.line or 1}},
    }
