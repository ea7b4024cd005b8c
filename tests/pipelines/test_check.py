"""How a probe's result joins a finding."""

from __future__ import annotations

import pytest

from compatcheck.environment import Environment
from compatcheck.explanation.ranking import score_of_finding, weights_of
from compatcheck.matrix import Matrix
from compatcheck.pipelines.check import check, weigh
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


def test_unusable_library_confirms_no_entry() -> None:
    broken = ProbeResult("attention_masked", "fail", "why", {"unusable": "the Trainer cannot be built"})
    assert weigh(finding("affected"), broken).status == "affected"


def test_without_a_result_nothing_changes() -> None:
    assert weigh(finding("possible", "gpus"), None) == finding("possible", "gpus")


def test_possible_findings_come_by_how_much_the_facts_speak_for_each(known: Matrix) -> None:
    facts = {"torch": "2.5.0", "transformers": "4.40.0", "peft": "0.10.0", "bitsandbytes": "0.43.1"}
    facts["deepspeed"] = "0.14.0"
    training = {"framework": "transformers", "quantization": {"bits": 4}, "lora": {"r": 8}, "dtype": "float16"}
    found = check(Environment({"distributions": facts, "training": training}), known).findings
    possible = [each for each in found if each.status == "possible"]
    likely = [score_of_finding(each, weights_of(known)) for each in possible]
    assert len(set(likely)) > 2 and likely == sorted(likely, reverse=True)
    assert [each.id for each in possible] != sorted(each.id for each in possible)


def test_a_healthy_environment_without_training_gives_nothing(known: Matrix) -> None:
    stated = {"transformers": "4.57.6", "torch": "2.9.1", "accelerate": "1.12.0", "peft": "0.18.0", "numpy": "2.3.5"}
    healthy = {"distributions": stated, "distributions_complete": True, "python": "3.11.7", "cuda": {"runtime": None}}
    assert check(Environment(healthy), known).findings == ()
