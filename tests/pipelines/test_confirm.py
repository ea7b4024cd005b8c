"""From facts to findings, and from findings to the probes that decide them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from compatcheck import matrix, probes
from compatcheck.environment import Environment, Location, Target
from compatcheck.pipelines.check import check, confirm
from compatcheck.results.findings import STATUSES, Finding, Outcome, ProbeResult, Report
from tests.conftest import ROOT

TARGET = Target("/venv/bin/python", "3.11.7", "/venv", (), "--python")
PAIR = {"distributions": {"torch": "2.5.1", "torchvision": "0.18.1"}, "distributions_complete": True}
ZERO2 = {"deepspeed": {"zero_stage": 2, "overlap_comm": True, "reduce_scatter": True}}
DEEPSPEED = {"distributions": {"deepspeed": "0.14.4"}}
MIXED = {
    "distributions": {"torch": "2.5.0+cu118", "torchvision": "0.18.1", "deepspeed": "0.14.4"},
    "training": {"attention": "sdpa", "per_device_train_batch_size": 2, **ZERO2},
}


@pytest.fixture(scope="module")
def known() -> matrix.Matrix:
    return matrix.load(str(ROOT / "matrix"))


def by_id(report: Report) -> dict[str, Finding]:
    return {finding.id: finding for finding in report.findings}


def test_a_version_alone_makes_a_finding_possible_and_names_what_is_missing(known: matrix.Matrix) -> None:
    finding = by_id(check(Environment(DEEPSPEED), known))["CC-2024-0021"]
    settings = ("zero_stage", "overlap_comm", "reduce_scatter")
    assert finding.status == "possible"
    assert finding.missing == tuple(f"training.deepspeed.{name}" for name in settings)


def test_a_setting_that_becomes_known_is_no_longer_missing(known: matrix.Matrix) -> None:
    partly = {**DEEPSPEED, "training": {"deepspeed": {"zero_stage": 2, "reduce_scatter": True}}}
    finding = by_id(check(Environment(partly), known))["CC-2024-0021"]
    assert (finding.status, finding.missing) == ("possible", ("training.deepspeed.overlap_comm",))


@pytest.mark.parametrize(("stage", "status"), [(2, "affected"), (3, None)])
def test_settings_that_are_known_decide(known: matrix.Matrix, stage: int, status: str | None) -> None:
    stated = {**DEEPSPEED, "training": {"deepspeed": {**ZERO2["deepspeed"], "zero_stage": stage}}}
    finding = by_id(check(Environment(stated), known)).get("CC-2024-0021")
    assert (finding and finding.status) == status


def test_a_trait_brings_its_own_pins_and_packages(known: matrix.Matrix) -> None:
    (finding,) = check(Environment(PAIR), known).findings
    assert (finding.id, finding.status) == ("CC-2026-0003", "affected")
    assert finding.remedies[0].pins == {"torchvision": "==0.20.1"}
    assert "torchvision" in finding.packages and "0.18.1" in finding.summary


def test_the_worst_is_first(known: matrix.Matrix) -> None:
    findings = check(Environment(MIXED), known).findings
    order = [(STATUSES.index(finding.status), finding.id) for finding in findings]
    assert {finding.status for finding in findings} == {"affected", "possible"}
    assert order == sorted(order)


def test_select_and_ignore_choose_by_id(known: matrix.Matrix) -> None:
    def ids(**choice: Sequence[str]) -> list[str]:
        return [finding.id for finding in check(Environment(MIXED), known, **choice).findings]

    every = ids()
    assert ids(select=["CC-2024-0021"]) == ["CC-2024-0021"]
    assert ids(ignore=["CC-2024-0021"]) == [each for each in every if each != "CC-2024-0021"]
    assert ids(select=["CC-2024-0021", "CC-2026-0003"], ignore=["CC-2024-0021"]) == ["CC-2026-0003"]
    assert ids(select=["CC-1999-0001"]) == [] and len(every) > 2


@pytest.mark.parametrize(
    ("places", "expected"),
    [
        ({}, None),
        ({"training.packing": Location("train.yaml", 3)}, None),
        ({"training.deepspeed.overlap_comm": Location("ds.json", 8)}, Location("ds.json", 8)),
        (
            {"training.deepspeed.zero_stage": Location("ds.json", 7), "distributions.deepspeed": Location("r.txt", 2)},
            Location("ds.json", 7),
        ),
    ],
)
def test_a_finding_stands_where_a_setting_is_stated_rather_than_a_version(
    known: matrix.Matrix, places: dict[str, Location], expected: Location | None
) -> None:
    environment = Environment({**DEEPSPEED, "training": ZERO2}, locations=places)
    assert by_id(check(environment, known))["CC-2024-0021"].location == expected


def test_the_report_says_which_matrix_and_what_was_judged(known: matrix.Matrix) -> None:
    report = check(Environment({"distributions": {"torch": "2.5.1+cu118"}}), known)
    assert (report.matrix_revision, report.matrix_entries) == (known.revision, known.entries)
    assert report.environment.facts == {"distributions": {"torch": "2.5.1+cu118"}}
    assert report.judged.view.facts["cuda"] == {"runtime": "11.8"}


class Ran(NamedTuple):
    """What the runner of probes was asked."""

    trials: Sequence[tuple[str, Mapping[str, Any]]]
    target: Target
    budget: float | None
    told: Callable[[str, str, float], None] | None
    memory: probes.Memory | None


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[Ran]:
    """The runs of probes; each trial answers with the outcome its own request names, else with a pass."""
    asked: list[Ran] = []

    def run_all(
        trials: Sequence[tuple[str, Mapping[str, Any]]],
        target: Target,
        budget_seconds: float | None = None,
        on_progress: Callable[[str, str, float], None] | None = None,
        memory: probes.Memory | None = None,
        partial: object = None,
    ) -> tuple[ProbeResult, ...]:
        asked.append(Ran(trials, target, budget_seconds, on_progress, memory))
        return tuple(ProbeResult(name, request.get("answer", "pass"), repr(request)) for name, request in trials)

    monkeypatch.setattr(probes, "run_all", run_all)
    return asked


def finding(number: int, probe: str | None, answer: Outcome = "pass", missing: tuple[str, ...] = ()) -> Finding:
    return Finding(
        f"CC-2024-{number:04}",
        "t",
        "possible" if missing else "affected",
        "hang",
        "reported",
        ("torch",),
        "s",
        missing,
        (),
        (),
        probe,
        {"answer": answer},
    )


def report(*findings: Finding, **facts: Any) -> Report:
    return Report(Environment(facts), findings, "abc", 1)


def test_each_result_joins_the_findings_that_asked_for_it(runs: list[Ran]) -> None:
    found = report(
        finding(1, "attention_masked", "pass"),
        finding(2, None),
        finding(3, "attention_masked", "fail"),
        finding(4, "labels_masked", "skip"),
        finding(5, "labels_masked", "fail", missing=("gpu.compute_capability",)),
        finding(6, "labels_masked", "fail", missing=("training.packing",)),
    )
    judged = [(each.id[-1], each.status, each.probe and each.probe.outcome) for each in confirm(found, TARGET).findings]
    assert judged == [
        ("3", "confirmed", "fail"),
        ("5", "confirmed", "fail"),
        ("2", "affected", None),
        ("4", "affected", "skip"),
        ("6", "possible", "fail"),
        ("1", "refuted", "pass"),
    ]


def test_the_same_question_is_asked_once(runs: list[Ran]) -> None:
    found = report(finding(1, "labels_masked"), finding(2, "labels_masked"), finding(3, "labels_masked", "fail"))
    joined = confirm(found, TARGET)
    assert [name for name, _ in runs[0].trials] == ["labels_masked", "labels_masked"]
    assert {each.id[-1]: each.status for each in joined.findings} == {"1": "refuted", "2": "refuted", "3": "confirmed"}


@pytest.mark.parametrize(
    ("facts", "request_dtype", "asked"),
    [
        ({"training": {"dtype": "bfloat16"}}, None, "bfloat16"),
        ({"training": {"dtype": "bfloat16"}}, "float16", "float16"),
        ({"training": {"dtype": None}}, None, None),
        ({"training": None}, None, None),
        ({}, None, None),
    ],
)
def test_the_users_dtype_is_handed_on_unless_the_entry_names_one(
    runs: list[Ran], facts: dict[str, Any], request_dtype: str | None, asked: str | None
) -> None:
    stated = {"dtype": request_dtype} if request_dtype else {}
    confirm(report(finding(1, "labels_masked")._replace(probe_request=stated), **facts), TARGET)
    assert runs[0].trials[0][1].get("dtype") == asked


def test_the_users_settings_and_model_are_handed_on_whole(runs: list[Ran], tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "llama", "hidden_size": 64}', encoding="utf-8")
    training = {"dtype": "bfloat16", "packing": True, **ZERO2}
    found = report(finding(1, "labels_masked"), training=training)
    here = found.environment._replace(locations={"model": Location(str(tmp_path))})
    confirm(found._replace(environment=here), TARGET, device="cpu")
    ((_, asked),) = runs[0].trials
    assert asked == {
        "answer": "pass",
        "training": training,
        "dtype": "bfloat16",
        "config": {"model_type": "llama", "hidden_size": 64},
        "model_folder": str(tmp_path),
        "device": "cpu",
    }


def test_a_model_that_is_not_here_is_not_handed_on(runs: list[Ran]) -> None:
    found = report(finding(1, "labels_masked"), model={"name": "THUDM/glm-4-9b-chat-hf"})
    elsewhere = found.environment._replace(locations={"model": Location("/nowhere")})
    confirm(found._replace(environment=elsewhere), TARGET)
    assert set(runs[0].trials[0][1]) == {"answer"}


def test_target_budget_and_listener_are_handed_on(runs: list[Ran]) -> None:
    heard: list[tuple[str, str, float]] = []
    confirm(report(finding(1, "labels_masked")), TARGET, budget_seconds=2.5, on_probe=lambda *said: heard.append(said))
    (ran,) = runs
    assert (ran.target, ran.budget) == (TARGET, 2.5)
    assert ran.told is not None and (ran.told("a", "b", 1.0), heard) == (None, [("a", "b", 1.0)])


def test_remembered_results_hang_on_what_is_installed_and_not_on_the_users_settings(runs: list[Ran]) -> None:
    for facts in ({"torch": "2.5.0"}, {"torch": "2.5.1"}):
        for packing in (True, False):
            found = report(finding(1, "labels_masked"), distributions=facts, training={"packing": packing})
            confirm(found, TARGET, fresh=packing)
    first, second, third, _ = (ran.memory for ran in runs)
    assert first and second and third
    assert (first.fresh, second.fresh) == (True, False)
    assert first.environment == second.environment != third.environment


def test_the_real_runner_starts_nothing_once_the_budget_is_spent() -> None:
    (judged,) = confirm(report(finding(1, "labels_masked")), TARGET, budget_seconds=0).findings
    assert judged.status == "affected" and judged.probe is not None
    assert (judged.probe.outcome, judged.probe.why) == ("skip", "not run: budget of 0 s spent")
