"""What the day of a report says of versions that nobody stated."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

import pytest

from compatcheck import matrix
from compatcheck.environment import Environment
from compatcheck.matrix.matching.match import TraitVerdict, Verdict, match_table

ASKED = {"distribution_ranges": {"deepspeed": ""}}


def judged(known: matrix.Matrix, facts: dict[str, Any], **conditions: str) -> Verdict:
    whole = matrix.infer(known, Environment(facts))
    table = {f"distributions.{name}": condition for name, condition in conditions.items()}
    traits = lambda name, environment: TraitVerdict(None, missing=(name,))  # noqa: E731
    return match_table(table, whole.view, traits, None, whole.inferred)


def on(day: str, **facts: Any) -> dict[str, Any]:
    return {"report": {"date": day}, **facts}


@pytest.mark.parametrize(
    ("day", "bad", "holds", "narrowed"),
    [
        ("2024-06-17", "<0.14.4", True, False),
        ("2024-06-17", ">=0.5.7,<0.14.4", None, True),
        ("2024-06-17", ">=0.14.4", False, False),
        ("2024-07-15", "<0.14.4", None, True),
        ("2024-10-30", "<0.14.4", None, False),
    ],
)
def test_a_package_that_is_there_in_some_version_has_one_that_was_out(
    known: matrix.Matrix, day: str, bad: str, holds: bool | None, narrowed: bool
) -> None:
    verdict = judged(known, on(day, **ASKED), deepspeed=bad)
    assert (verdict.holds, verdict.narrowed) == (holds, narrowed)


@pytest.mark.parametrize(
    ("day", "bad", "holds"),
    [
        ("2024-06-17", ">=0.14.2,<0.14.4", True),
        ("2024-06-17", "<0.14.2", False),
        ("2024-07-15", ">=0.14.4", True),
        ("2024-06-12", ">=0.14.3", None),
    ],
)
def test_what_is_called_the_latest_is_at_most_two_weeks_behind(
    known: matrix.Matrix, day: str, bad: str, holds: bool | None
) -> None:
    """DeepSpeed 0.14.3 came out on 2024-06-12, and 0.14.4 on 2024-06-21."""
    called = {"report": {"date": day, "newest": {"deepspeed": True}}}
    assert judged(known, called, deepspeed=bad).holds is holds
    stated = {**called, "distributions": {"deepspeed": "0.14.0"}}
    assert judged(known, stated, deepspeed="==0.14.0").holds is True


def test_the_finding_says_which_release_was_the_newest(known: matrix.Matrix) -> None:
    verdict = judged(known, on("2024-06-17", **ASKED), deepspeed="<0.14.4")
    assert verdict.partly == {
        "distributions.deepspeed": "has no version; 0.14.3 was the newest on 2024-06-17, and <0.14.4 is affected"
    }


def test_a_range_that_is_stated_is_cut_at_the_day(known: matrix.Matrix) -> None:
    stated = on("2024-06-17", distribution_ranges={"numpy": ">=2.0.0"})
    assert judged(known, stated, numpy=">=2.0.0,<2.1").holds is True
    assert judged(known, stated, numpy=">=2.1").holds is False


@pytest.mark.parametrize(
    ("day", "holds"),
    [
        ("2024-03-01", False),
        ("2024-05-29", None),
        ("2024-08-01", None),
    ],
)
def test_of_a_package_nobody_spoke_of_builds_ahead_of_a_release_stay_open(
    known: matrix.Matrix, day: str, holds: bool | None
) -> None:
    """torch 2.4.0 came out on 2024-07-24."""
    assert judged(known, on(day), torch=">=2.4.0").holds is holds


def test_a_day_settles_nothing_where_the_table_ends(known: matrix.Matrix) -> None:
    ends = known.table("release-history")["reviewed"]
    last = date.fromisoformat(ends) if isinstance(ends, str) else ends
    near, after = (str(last + timedelta(days=days)) for days in (-20, 1))
    assert judged(known, on(near), torch=">=99").holds is None
    assert judged(known, on(near, distribution_ranges={"torch": ""}), torch=">=99").holds is False
    assert judged(known, on(after, distribution_ranges={"torch": ""}), torch=">=99").holds is None


def test_what_had_no_release_by_then_was_installed_from_its_repository(known: matrix.Matrix) -> None:
    assert judged(known, on("2023-12-01", distribution_ranges={"axolotl": ""}), axolotl="<0.5.0").holds is None
    assert judged(known, on("2023-12-01"), axolotl="<0.5.0").holds is None
    assert judged(known, on("2023-12-01"), axolotl=">=0.5.0").holds is False


def test_without_a_day_there_is_no_limit(known: matrix.Matrix) -> None:
    assert judged(known, ASKED, deepspeed="<0.14.4").holds is None
    assert judged(known, {"report": {}}, torch=">=2.4.0").holds is None


def test_what_came_out_shortly_before_is_still_run(known: matrix.Matrix) -> None:
    """deepspeed 0.14.3 came out on 2024-06-12, 0.14.2 seven weeks before."""
    limit = matrix.infer(known, Environment(on("2024-06-17"))).inferred.limits["deepspeed"]
    assert (limit.newest, limit.recent) == ("0.14.3", ("0.14.1", "0.14.2", "0.14.3"))


def test_a_repository_that_bears_the_name_of_a_known_package_holds_it(known: matrix.Matrix) -> None:
    for repository, there in (("pyannote/pyannote-audio", True), ("QwenLM/Qwen3", False)):
        found = matrix.infer(known, Environment({"report": {"repository": repository}})).view
        assert bool(found.facts.get("distribution_ranges")) is there


@pytest.mark.parametrize(
    ("repository", "day", "model", "type_"),
    [
        ("zai-org/ChatGLM3", "2024-01-01", {}, "chatglm"),
        ("QwenLM/Qwen3-VL", "2025-11-01", {}, "qwen3_vl"),
        ("QwenLM/Qwen3-VL", "2024-09-01", {}, None),
        ("QwenLM/Qwen3-VL", "2025-11-01", {"name": "Qwen2-VL-7B"}, "qwen2_vl"),
        ("huggingface/transformers", "2025-11-01", {}, None),
    ],
)
def test_a_report_in_the_repository_of_a_model_is_about_that_model(
    known: matrix.Matrix, repository: str, day: str, model: dict[str, str], type_: str | None
) -> None:
    """Qwen2-VL was in the repository that Qwen3-VL has now."""
    facts = {"report": {"repository": repository, "date": day}, **({"model": model} if model else {})}
    assert matrix.infer(known, Environment(facts)).view.section("model").get("type") == type_


@pytest.mark.parametrize(
    ("name", "day", "training", "expected"),
    [
        ("Qwen/Qwen1.5-7B-Chat-GPTQ-Int4", "2024-05-01", {}, {"method": "gptq"}),
        ("Qwen1.5-7B-Chat-AWQ", "2024-05-01", {"method": "lora"}, {"method": "awq"}),
        ("unsloth/Qwen2.5-7B-bnb-4bit", "2026-05-01", {}, {"method": "bitsandbytes"}),
        ("Qwen/Qwen2.5-7B", "2024-11-01", {}, None),
        ("org/awqward-7b", "2024-05-01", {}, None),
        ("a-GPTQ-folder/Qwen-7B", "2024-05-01", {}, None),
        ("ISTA/gemma-3-27b-it-GPTQ-4b-128g", "2025-04-01", {}, None),
        ("org/Qwen3-30B-A3B-AWQ", "2025-08-01", {}, None),
        ("org/model-AWQ-GPTQ", "2024-05-01", {}, None),
        ("Qwen1.5-7B-Chat-AWQ", "2024-05-01", {"quantization": {"bits": 4}}, {"bits": 4}),
        ("Qwen1.5-7B-Chat-AWQ", None, {}, None),
    ],
)
def test_weights_that_a_report_calls_quantised_are(
    known: matrix.Matrix, name: str, day: str | None, training: dict[str, Any], expected: dict[str, Any] | None
) -> None:
    facts = {"report": {"date": day} if day else {}, "model": {"name": name}, "training": training}
    completed = matrix.infer(known, Environment(facts)).view.facts
    assert completed["training"].get("quantization") == expected
