"""Which releases of transformers know a model's type."""

from __future__ import annotations

from typing import Any

import pytest

from compatcheck import matrix
from compatcheck.environment import Environment
from compatcheck.results.findings import Finding

LACKS = "CC-2024-0500"


def told(known: matrix.Matrix, transformers: str, model: dict[str, Any], **more: Any) -> Finding | None:
    facts = {"distributions": {"transformers": transformers}, "model": model, **more}
    found = matrix.judge(known, Environment(facts)).findings
    return next((each for each in found if each.id == LACKS), None)


@pytest.mark.parametrize(
    ("transformers", "model_type", "pin"),
    [
        ("4.36.2", "qwen2", ">=4.37.0"),
        ("4.48.1", "qwen2_5_vl", ">=4.49.0"),
        ("4.45.2", "glm", ">=4.46.0"),
        ("4.56.2", "qwen3_next", ">=4.57.0"),
        ("5.1.0", "nezha", "<=4.57.6"),
        ("4.37.0", "qwen2", None),
        ("5.23.0", "qwen2", None),
        ("4.46.0", "glm", None),
        ("4.57.6", "nezha", None),
        ("4.15.0", "t5", None),
        ("4.36.0", "clip_text_model", None),
        ("4.36.0", "my_own_type", None),
        ("4.37.0.dev0", "qwen2", None),
        ("4.31.0", "llava", None),
    ],
)
def test_a_type_is_known_from_one_release_to_another(
    known: matrix.Matrix, transformers: str, model_type: str, pin: str | None
) -> None:
    finding = told(known, transformers, {"type": model_type, "remote_code": False})
    assert (finding.remedies[0].pins if finding else None) == ({"transformers": pin} if pin else None)
    assert finding is None or (finding.status == "affected" and model_type in finding.summary)


def test_a_model_that_brings_its_own_code_does_not_suffer(known: matrix.Matrix) -> None:
    assert told(known, "4.50.0", {"name": "deepseek-ai/DeepSeek-V3"}) is None
    assert told(known, "4.40.0", {"type": "phi3", "remote_code": True}) is None
    finding = told(known, "4.40.0", {"type": "phi3"})
    assert finding and (finding.status, finding.missing) == ("possible", ("model.remote_code",))


def test_a_name_is_enough(known: matrix.Matrix) -> None:
    finding = told(known, "4.35.0", {"name": "Qwen1.5"})
    assert finding and finding.status == "affected"


def test_who_has_models_or_classes_of_its_own_is_let_be(known: matrix.Matrix) -> None:
    model = {"name": "Qwen/Qwen2.5-7B"}
    assert told(known, "4.35.0", model, training={"framework": "torchtune"}) is None
    both = {"distributions": {"transformers": "4.35.0", "vllm": "0.5.4"}}
    assert told(known, "4.35.0", model, **both) is None
