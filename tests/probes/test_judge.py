"""Verdict rules on recorded numbers; nothing here needs torch."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compatcheck.probes import _criterion
from compatcheck.probes.training import gradient_accumulation, labels_masked, low_precision_trainables

ORDER = {"pass": 0, "watch": 1, "fail": 2}
numbers = st.floats(min_value=0, allow_nan=False)


@pytest.mark.parametrize(
    ("theta", "rho", "expected"),
    [
        (0.0, 0.0, "pass"),
        (1.0, 2.0, "pass"),
        (1.01, 1.0, "watch"),
        (0.5, 2.01, "watch"),
        (4.0, 4.0, "watch"),
        (4.01, 1.0, "fail"),
        (0.5, 4.01, "fail"),
        ("inf", 0.0, "fail"),
        ("nan", 0.0, "fail"),
        (0.0, math.nan, "fail"),
    ],
)
def test_verdict_table(theta: Any, rho: Any, expected: str) -> None:
    assert _criterion.verdict(theta, rho) == expected


@given(numbers, numbers, numbers, numbers)
def test_a_larger_error_never_looks_better(theta: float, rho: float, more_theta: float, more_rho: float) -> None:
    small, large = _criterion.verdict(theta, rho), _criterion.verdict(theta + more_theta, rho + more_rho)
    assert ORDER[small] <= ORDER[large]


@given(numbers, numbers)
def test_a_verdict_survives_json(theta: float, rho: float) -> None:
    assert _criterion.verdict(str(theta), str(rho)) == _criterion.verdict(theta, rho)


def test_a_case_in_which_nothing_passes_hides_no_conviction() -> None:
    def row(case: str, variant: str, theta: float) -> dict[str, Any]:
        shown = {"case": case, "variant": variant, "dtype": "float32", "tensor": "y"}
        return {**shown, "theta": theta, "rho": 1.0, "nonfinite": 0}

    hopeless = [row("a", "eager", math.inf), row("a", "fused", math.inf)]
    outcome, why = _criterion.judge_rows([*hopeless, row("b", "eager", 0.5), row("b", "fused", 9.0)])
    assert outcome == "fail" and "(b, fused, float32; passing there: eager;" in why
    assert _criterion.judge_rows(hopeless)[0] == "watch"


def counts(total: int, without: int, nested: int = 0) -> dict[str, Any]:
    first = list(range(1, without + 1))
    return {"total": total, "without_target": without, "nested": nested, "fewest_targets": 3, "first": first}


@pytest.mark.parametrize(
    ("found", "batch_size", "outcome"),
    [
        (counts(8, 0), 1, "pass"),
        (counts(8, 1), 1, "fail"),
        (counts(8, 1), 2, "watch"),
        (counts(8, 2), 2, "fail"),
        (counts(2, 2), 8, "fail"),
        (counts(8, 1, nested=1), 8, "fail"),
        (counts(0, 0), 1, "skip"),
    ],
)
def test_labels(found: dict[str, Any], batch_size: int, outcome: str) -> None:
    shown = {"loss": "nan", "gradient_norm": 0.0}
    measured = {"mechanism": shown, "batch_size": batch_size, "samples": found}
    assert labels_masked.judge(measured)[0] == outcome


def test_labels_without_samples_prove_nothing() -> None:
    outcome, why = labels_masked.judge({"mechanism": {"loss": "nan", "gradient_norm": 0.0}, "batch_size": 1})
    assert outcome == "skip"
    assert "no samples were given" in why and "loss nan and gradient norm 0.0" in why


labels = st.lists(st.lists(st.sampled_from([-100, 5]), max_size=6), max_size=8)


@given(labels)
def test_counting_agrees_with_the_shifted_labels(samples: list[list[int]]) -> None:
    found = labels_masked._count(samples)
    targets = [sum(label != -100 for label in sample[1:]) for sample in samples]
    assert found["total"] == len(samples)
    assert found["without_target"] == targets.count(0)
    assert found["fewest_targets"] == min(targets, default=None)


def accumulation(distance: Any, plain: float = 1e-7, **notes: Any) -> list[dict[str, Any]]:
    row = {"case": "no_kwargs, equal lengths", "dtype": "float32", "tensor": "update", "rho": 0.0, "nonfinite": 0}
    theta = float(distance) / 4e-5
    return [
        {**row, "variant": "plain torch loop", "control": True, "theta": plain / 4e-5},
        {**row, "variant": "Trainer, micro-batches", "theta": theta, **notes},
    ]


@pytest.mark.parametrize(
    ("rows", "outcome"),
    [
        (accumulation(1e-7), "pass"),
        (accumulation(1e-4), "watch"),
        (accumulation(3.0), "fail"),
        (accumulation(3.0, plain=3.0), "watch"),
        ([*accumulation(0.75), *accumulation(1e-7)], "fail"),
        (accumulation("nan"), "fail"),
        ([*accumulation(0.6, by_design="mean of means", difference=0.6), *accumulation(1e-7)], "pass"),
        (accumulation(0.6, by_design="mean of means", difference=0.6), "skip"),
    ],
)
def test_accumulation(rows: list[dict[str, Any]], outcome: str) -> None:
    assert gradient_accumulation.judge({"rows": rows})[0] == outcome


def adapters(dtypes: dict[str, int], nonfinite: int) -> dict[str, Any]:
    trainable = {dtype: {"count": count, "example": "lm_head.lora_A"} for dtype, count in dtypes.items()}
    step = {"nonfinite_after": ["embed_tokens.lora_A"] * nonfinite}
    return {"dtype": "float16", "trainable": trainable, "step": step}


@pytest.mark.parametrize(
    ("measured", "outcome"),
    [
        (adapters({"float32": 6}, 0), "pass"),
        (adapters({"float32": 6}, 1), "fail"),
        (adapters({"float16": 6}, 6), "fail"),
        (adapters({"float16": 2, "float32": 4}, 0), "fail"),
        (adapters({"bfloat16": 6}, 0), "watch"),
        (adapters({"bfloat16": 6}, 1), "fail"),
        ({**adapters({"float32": 6}, 0), "step": {"not_run": "no step was taken: no half"}}, "watch"),
        ({"unsupported": "no CUDA"}, "skip"),
    ],
)
def test_adapters(measured: dict[str, Any], outcome: str) -> None:
    assert low_precision_trainables.judge(measured)[0] == outcome
