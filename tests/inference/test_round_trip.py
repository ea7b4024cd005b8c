"""The environment in a JSON report is what was stated: judging it again gives the same verdict."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compatcheck import matrix
from compatcheck.bug_report import read_report
from compatcheck.environment import Environment
from compatcheck.environment.snapshot import load_snapshot, read_snapshot
from compatcheck.errors import NothingInspectedError
from compatcheck.matrix.compile import read_entries
from compatcheck.pipelines.check import check
from compatcheck.report import render
from compatcheck.report.shapes import finite
from compatcheck.report.subjects.check import document
from tests.conftest import SOURCES

MACHINES = sorted((SOURCES.parent / "tests" / "machines").glob("*.json"))
EXAMPLES = [case.environment for entry in read_entries(SOURCES).values() for case in entry.cases]
ISSUE = {
    "report": {"date": "2024-11-20", "repository": "huggingface/trl"},
    "distributions": {"transformers": "4.46.0", "torch": "2.5.0", "trl": "0.12"},
    "gpus": [{"name": "A100"}, {"name": "A100"}],
}
GPUS_NAMED = {
    "report": {},
    "gpus": [{"name": "NVIDIA GeForce RTX 4090"}],
    "training": {"method": "qlora"},
    "distributions": {"transformers": "4.46.0", "bitsandbytes": "0.44.1"},
}


def report_on(known: matrix.Matrix, environment: Environment) -> dict[str, Any]:
    shape: dict[str, Any] = json.loads(render(document(check(environment, known, now=0)), "json"))
    return shape


def require_same_verdict_again(known: matrix.Matrix, environment: Environment) -> dict[str, Any]:
    """The report, after judging its environment once more gave the whole of it again."""
    report = report_on(known, environment)
    assert report["environment"] == finite(json.loads(json.dumps(environment.dump())))
    assert report_on(known, load_snapshot(json.dumps(report["environment"]), "the report")) == report
    return report


@pytest.mark.parametrize("day", ["2024-11-20", "2027-05-01", None])
def test_an_issue_is_judged_again(known: matrix.Matrix, day: str | None) -> None:
    stated = {**ISSUE["report"], "date": day} if day else {}
    found = require_same_verdict_again(known, Environment({**ISSUE, "report": stated}))
    assert "distribution_limits" not in json.dumps(found)


def test_a_cuda_that_is_only_known_to_be_there_is_no_fact(known: matrix.Matrix) -> None:
    found = require_same_verdict_again(known, Environment(GPUS_NAMED))
    assert "cuda" not in found["environment"] and not any(path.startswith("cuda") for path in found["inferred"])


@pytest.mark.parametrize("path", MACHINES, ids=lambda path: path.stem)
def test_a_machine_is_judged_again(known: matrix.Matrix, path: Path) -> None:
    require_same_verdict_again(known, read_snapshot(str(path)))


days = st.none() | st.dates(date(2023, 1, 1), date(2027, 6, 1)).map(date.isoformat)
images = [{"name": "nvcr.io/nvidia/pytorch", "release": release} for release in ("22.01", "23.08", "24.10", "99.99")]
repositories = ["huggingface/trl", "QwenLM/Qwen3-VL", "zai-org/ChatGLM3", "nobody/nothing"]
models = [{"name": name} for name in ("Qwen/Qwen2.5-7B-AWQ", "LlamaForCausalLM", "me/mine")]
reentry = [{"use_reentrant": None}, {"use_reentrant": True}, None]


def some(**values: st.SearchStrategy[Any] | list[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Some of the facts, each with one of its values."""
    each = {name: st.sampled_from(value) if isinstance(value, list) else value for name, value in values.items()}
    return st.fixed_dictionaries({}, optional=each)


reports = some(
    date=days,
    repository=repositories,
    newest=st.dictionaries(st.sampled_from(["torch", "transformers", "deepspeed"]), st.booleans()),
)
training = some(
    framework=["transformers", "trl", "llama-factory"],
    dtype_rule=["bfloat16-if-supported"],
    deterministic=[True, False],
    attention=["sdpa", "flash_attention_2", None],
    load_dtype=["bfloat16", None],
    quantization=[{"bits": 4}, None, {"method": "gptq"}],
    deepspeed=[{"zero_stage": 3}, {}, None],
    gradient_checkpointing_kwargs=reentry,
    learning_rate=[1e-4, float("nan"), float("-inf")],
)
parts = some(
    report=reports,
    image=images,
    gpus=st.lists(some(name=["A100", "Tesla T4", "RTX 4090", "MI300X", ""])),
    cuda=[None, {}, {"runtime": "11.8"}, {"runtime": "12.2"}, {"runtime": None}],
    training=st.none() | training,
    model=[None, *models],
)


@settings(max_examples=60, deadline=None)
@given(example=st.sampled_from(EXAMPLES), part=parts)
def test_any_environment_is_judged_again(known: matrix.Matrix, example: dict[str, Any], part: dict[str, Any]) -> None:
    environment = Environment({**example, **part})
    try:
        require_same_verdict_again(known, environment)
    except NothingInspectedError:
        assert not {"distributions", "training", "model"} & {key for key, value in environment.facts.items() if value}
    view = matrix.infer(known, environment).view
    stated = load_snapshot(json.dumps(view.dump()), "the view")
    assert finite(matrix.infer(known, stated).view.facts) == finite(view.facts)


@pytest.mark.parametrize("text", ["torch 2.3.1+cu121\nA100 x 2, transformers 4.46, deepspeed zero3, latest peft"])
def test_a_pasted_report_is_judged_again(known: matrix.Matrix, text: str) -> None:
    require_same_verdict_again(known, read_report(text, "report"))
