"""The pipeline of `compatcheck model`: what the matrix says because of the model."""

from __future__ import annotations

from compatcheck import matrix
from compatcheck.environment import Environment
from compatcheck.pipelines.check import check
from compatcheck.results.findings import Report


def judge(environment: Environment, known: matrix.Matrix) -> Report:
    """The findings that depend on the model: those that would not be there without it."""
    report = check(environment, known)
    without = environment.with_fact("model", None)
    anyway = {finding.id for finding in matrix.judge(known, without).findings}
    return report._replace(findings=tuple(finding for finding in report.findings if finding.id not in anyway))
