"""A finding in plain lines, for the formats whose fields hold text."""

from __future__ import annotations

from collections.abc import Iterator

from compatcheck.report.steps import step_texts
from compatcheck.results.findings import Finding, Report


def told(report: Report, refuted: bool) -> list[Finding]:
    """What the report shows, the worst first: what a probe refuted only on request."""
    return [each for each in report.findings if refuted or each.status != "refuted"]


def lines(finding: Finding) -> Iterator[str]:
    """What is seen, what is not known, what its probe found, and each way out."""
    yield finding.summary
    if finding.status == "possible":
        yield undecided(finding)
    if finding.probe:
        yield f"probe {finding.probe.probe}: {finding.probe.outcome}, {finding.probe.why}"
    for number, remedy in enumerate(finding.remedies):
        yield f"{'or' if number else 'fix'}: {', and '.join(step_texts(remedy))}"


def undecided(finding: Finding) -> str:
    """Why a finding is no more than possible."""
    missing = ", ".join(dict.fromkeys(finding.missing))
    return f"not known, and it decides: {missing}" if missing else "reported, and nobody has confirmed it yet"
