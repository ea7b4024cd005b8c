"""Operators against float64: a healthy stack passes, every planted fault is convicted beside a control that passes."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from compatcheck.environment import Target
from compatcheck.probes import run
from compatcheck.probes._criterion import verdict
from compatcheck.probes.operators import (
    cross_entropy,
    embedding_backward,
    layer_norm,
    matmul,
    reduction,
    rms_norm,
    softmax,
)
from compatcheck.probes.operators._operator import CANNOT_RUN, attempt, draw, solved, trial
from tests.probes.inside import measured

pytestmark = pytest.mark.stack

PROBES = (cross_entropy, embedding_backward, layer_norm, matmul, reduction, rms_norm, softmax)
Operator = Callable[..., Any]


@pytest.mark.parametrize("probe", PROBES, ids=lambda probe: probe.__name__.rpartition(".")[2])
@pytest.mark.parametrize("seed", [0, 1])
def test_a_healthy_operator_passes_and_so_does_its_control(probe: Any, seed: int) -> None:
    found = measured(probe, seed=seed)
    outcome, why = probe.judge(found)
    assert outcome == "pass", why
    controls = [row for row in found["rows"] if row.get("control")]
    assert controls and probe.judge({"rows": [{**row, "control": False} for row in controls]})[0] == "pass"
    assert {row["dtype"] for row in found["rows"]} == {"float32", "bfloat16"}


@pytest.mark.parametrize("probe", [cross_entropy, reduction], ids=["cross_entropy", "reduction"])
def test_the_dtype_of_the_user_is_measured_too(probe: Any) -> None:
    found = measured(probe, dtype="float16")
    assert probe.judge(found)[0] == "pass"
    assert "float16" in {row["dtype"] for row in found["rows"]}


def test_cuda_that_is_asked_for_and_absent_is_a_skip(stack: Target) -> None:
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    result = run("matmul", stack, {"device": "cuda"})
    assert (result.outcome, result.why) == ("skip", "no CUDA device is usable from this interpreter")


def test_a_batch_without_labels_is_told_and_not_judged() -> None:
    found = measured(cross_entropy)
    assert math.isnan(found["all_ignored"]["mean"]["loss"])
    assert found["all_ignored"]["sum"] == {"loss": 0.0, "gradient_norm": 0.0}


@pytest.mark.parametrize("probe", [embedding_backward, layer_norm], ids=["embedding", "layer_norm"])
def test_sums_of_16_bit_parameters_are_recorded_and_judged_on_request(probe: Any) -> None:
    silent, asked = measured(probe), measured(probe, usage="parameters_in_16_bits")
    outcome, why = probe.judge(asked)
    assert probe.judge(silent)[0] == "pass"
    assert outcome == "fail" and "bfloat16" in why and "plain formula" in why


def as_tf32(value: Any) -> Any:
    import torch

    return value + ((value.float().view(torch.int32) & ~0x1FFF).view(torch.float32) - value).detach().to(value.dtype)


def tf32_inputs(original: Operator) -> Operator:
    return lambda x, w, b: original(as_tf32(x), as_tf32(w), b)


def partial_sums_in_16_bits(original: Operator) -> Operator:
    def linear(x: Any, w: Any, b: Any) -> Any:
        quarter = x.shape[-1] // 4
        if x.element_size() == 4 or not quarter:
            return original(x, w, b)
        parts = [
            original(x[:, n * quarter : (n + 1) * quarter], w[:, n * quarter : (n + 1) * quarter]) for n in range(4)
        ]
        rest = original(x[:, 4 * quarter :], w[:, 4 * quarter :], b)
        return parts[0] + parts[1] + parts[2] + parts[3] + rest

    return linear


def last_term_dropped(original: Operator) -> Operator:
    return lambda x, w, b: original(x[:, :-1], w[:, :-1], b)


def batch_mixed_up(original: Operator) -> Operator:
    return lambda b, x, w: original(b, x.flip(0), w.flip(0))


def one_exponent_bit(original: Operator) -> Operator:
    def linear(x: Any, w: Any, b: Any) -> Any:
        y = original(x, w, b)
        wrong = y.detach().clone()
        wrong[-1, -1] *= 2
        return y + (wrong - y.detach())

    return linear


def all_in_16_bits(original: Operator) -> Operator:
    import torch

    def softmax_(x: Any, dim: int, dtype: Any) -> Any:
        x = x.bfloat16()
        exponentials = (x - x.amax(dim, keepdim=True)).exp()
        total = exponentials.detach().cumsum(dim, dtype=torch.bfloat16)[..., -1:]
        return (exponentials / total).to(dtype)

    return softmax_


def a_column_missing(original: Operator) -> Operator:
    import torch

    def softmax_(x: Any, dim: int, dtype: Any) -> Any:
        wide = x.to(dtype)
        return torch.cat([original(wide[..., :-1], dim=dim), torch.zeros_like(wide[..., -1:])], -1)

    return softmax_


def other_epsilon(original: Operator) -> Operator:
    return lambda x, shape, w, epsilon: original(x, shape, w, 10 * epsilon)


def variance_by_difference(original: Operator) -> Operator:
    def layer_norm_(x: Any, shape: Any, w: Any, b: Any, epsilon: float) -> Any:
        wide = x.float()
        mean = wide.mean(-1, keepdim=True)
        variance = (wide.square().mean(-1, keepdim=True) - mean.square()).clamp(min=0)
        return ((wide - mean) * (variance + epsilon).rsqrt() * w + b).to(x.dtype)

    return layer_norm_


def averaged_over_ignored(original: Operator) -> Operator:
    def loss(x: Any, labels: Any, ignore_index: int, reduction: str) -> Any:
        total = original(x, labels, ignore_index=ignore_index, reduction="sum")
        return total / len(labels) if reduction == "mean" else total

    return loss


def log_probabilities_in_16_bits(original: Operator) -> Operator:
    import torch.nn.functional as F

    def loss(x: Any, labels: Any, ignore_index: int, reduction: str) -> Any:
        logs = F.log_softmax(x.float(), -1).bfloat16().float()
        return F.nll_loss(logs, labels, ignore_index=ignore_index, reduction=reduction)

    return loss


def scaled_by_frequency(original: Operator) -> Operator:
    return lambda tokens, w: original(tokens, w, scale_grad_by_freq=True)


def norm_of_a_half(original: Operator) -> Operator:
    return lambda x, *rest, **options: original(x.flatten()[::2] if x.element_size() == 2 else x, *rest, **options)


@pytest.mark.parametrize(
    ("probe", "operator", "plant"),
    [
        (matmul, "torch.nn.functional.linear", tf32_inputs),
        (matmul, "torch.nn.functional.linear", partial_sums_in_16_bits),
        (matmul, "torch.nn.functional.linear", last_term_dropped),
        (matmul, "torch.nn.functional.linear", one_exponent_bit),
        (matmul, "torch.baddbmm", batch_mixed_up),
        (softmax, "torch.nn.functional.softmax", all_in_16_bits),
        (softmax, "torch.nn.functional.softmax", a_column_missing),
        (rms_norm, "torch.nn.functional.rms_norm", other_epsilon),
        (layer_norm, "torch.nn.functional.layer_norm", variance_by_difference),
        (cross_entropy, "torch.nn.functional.cross_entropy", averaged_over_ignored),
        (cross_entropy, "torch.nn.functional.cross_entropy", log_probabilities_in_16_bits),
        (embedding_backward, "torch.nn.functional.embedding", scaled_by_frequency),
        (reduction, "torch.linalg.vector_norm", norm_of_a_half),
    ],
    ids=lambda value: getattr(value, "__name__", "").rpartition(".")[2],
)
def test_a_planted_fault_is_convicted(
    monkeypatch: pytest.MonkeyPatch, probe: Any, operator: str, plant: Callable[[Operator], Operator]
) -> None:
    import torch

    owner: Any = torch
    *path, name = operator.split(".")[1:]
    for part in path:
        owner = getattr(owner, part)
    monkeypatch.setattr(owner, name, plant(getattr(owner, name)))
    outcome, why = probe.judge(measured(probe))
    assert outcome == "fail", why
    assert "passing there" in why


def test_what_a_library_lacks_is_recorded_and_an_error_of_the_probes_own_code_is_not_hidden() -> None:
    torch = pytest.importorskip("torch")
    assert attempt(lambda: torch.no_such_operator)[1]["recorded"] == CANNOT_RUN
    assert attempt(lambda: {"y": torch.zeros(1, dtype=torch.float16).no_such_method()})[1]["recorded"] == CANNOT_RUN
    code = compile("def slip():\n    return {}.no_such_method()", softmax.__file__, "exec")
    names: dict[str, Any] = {}
    exec(code, names)
    with pytest.raises(AttributeError):
        attempt(names["slip"])


def test_narrow_statistics_of_torch_2_4_are_recorded_unless_they_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")

    def composed(x: Any, shape: Any, w: Any, epsilon: float) -> Any:
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + epsilon) * w

    monkeypatch.setattr(torch.nn.functional, "rms_norm", composed)
    monkeypatch.setattr(rms_norm, "SHAPES", ((64, 64),))
    assert rms_norm.judge(measured(rms_norm))[0] == "watch"
    monkeypatch.setattr(torch, "__version__", "2.4.1")
    found = measured(rms_norm)
    assert rms_norm.judge(found)[0] == "pass"
    assert {row["dtype"] for row in found["rows"] if "recorded" in row} == {"bfloat16"}
    assert rms_norm.judge(measured(rms_norm, usage="fused_rms_norm"))[0] == "watch"


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_a_batched_product_may_be_rounded_before_its_bias_is_added(dtype: str) -> None:
    """An H200 with torch 2.11 gave these very errors, to the last digit, where one rounding was expected."""
    import torch

    narrow = getattr(torch, dtype)
    shapes = {"x": (8, 64, 512), "w": (8, 72, 512), "g": (8, 64, 72), "b": (72,)}
    inputs = draw({"seed": 0}, "8 x 64 x 72 x 512", **shapes)
    problem = solved("product", dtype, inputs, matmul._products, partial(matmul._budget, cores=True))
    rounded_twice = matmul._products({**problem.inputs, "b": torch.zeros(72)})["y"].to(narrow).double()
    rounded_twice = (rounded_twice + problem.inputs["b"]).to(narrow).double()
    row = trial(problem, "two roundings", lambda _: {"y": rounded_twice})
    assert verdict(row["theta"], row["rho"]) == "pass"
    wrong = trial(problem, "a term lost", lambda _: {"y": (rounded_twice - inputs["x"][..., :1]).to(narrow).double()})
    assert verdict(wrong["theta"], wrong["rho"]) == "fail"
