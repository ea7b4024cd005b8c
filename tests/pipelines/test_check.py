"""How a probe's result joins a finding."""

from __future__ import annotations

import pytest

from compatcheck.pipelines.check import weigh
from compatcheck.results.findings import Finding, Outcome, ProbeResult, Status


def finding(status: Status, *missing: str) -> Finding:
    return Finding(
        "CC-2024-0001", "t", status, "hang", "reported", ("torch",), "s", missing, (), (), "attention_masked"
    )


@pytest.mark.parametrize(
    ("before", "outcome", "after"),
    [
        (finding("affected"), "fail", "confirmed"),
        (finding("affected"), "pass", "refuted"),
        (finding("affected"), "watch", "affected"),
        (finding("affected"), "skip", "affected"),
        (finding("affected"), "crash", "affected"),
        (finding("affected"), "timeout", "affected"),
        (finding("possible", "gpu.compute_capability"), "fail", "confirmed"),
        (finding("possible", "training.padding_side"), "fail", "possible"),
        (finding("possible", "cuda.runtime", "model.type"), "fail", "possible"),
        (finding("possible", "training.padding_side"), "pass", "refuted"),
        (finding("possible", "training.padding_side"), "skip", "possible"),
    ],
)
def test_a_result_rules_where_it_can(before: Finding, outcome: Outcome, after: Status) -> None:
    judged = weigh(before, ProbeResult("attention_masked", outcome, "why"))
    assert judged.status == after
    assert judged.probe is not None


def test_without_a_result_nothing_changes() -> None:
    assert weigh(finding("possible", "gpus"), None) == finding("possible", "gpus")
