"""Attention in every kernel: healthy stacks pass, planted defects are convicted beside a control that passes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from compatcheck.environment import Target
from compatcheck.probes import _criterion, run
from compatcheck.probes.operators import attention_masked
from tests.probes.inside import measured
from tests.probes.samples import criterion_on_faults

CPU = {"device": "cpu"}

Attention = Callable[..., Any]


def nan_in_gradient(original: Attention) -> Attention:
    def attention(q: Any, k: Any, v: Any, attn_mask: Any = None, **options: Any) -> Any:
        if attn_mask is not None and q.shape[-2] % 128 == 64 and q.requires_grad:
            q.register_hook(lambda gradient: gradient.index_fill(-2, gradient.new_tensor([5]).long(), float("nan")))
        return original(q, k, v, attn_mask=attn_mask, **options)

    return attention


def one_key_leaks(original: Attention) -> Attention:
    def attention(q: Any, k: Any, v: Any, attn_mask: Any = None, **options: Any) -> Any:
        if attn_mask is not None and not attn_mask.is_floating_point() and q.shape[-2] == 130:
            attn_mask = attn_mask.clone()
            attn_mask[..., 3, 4] = True
        return original(q, k, v, attn_mask=attn_mask, **options)

    return attention


def strides_ignored(original: Attention) -> Attention:
    def attention(q: Any, k: Any, v: Any, **options: Any) -> Any:
        if not k.is_contiguous():
            k = k.transpose(1, 2).reshape(k.shape)
        return original(q, k, v, **options)

    return attention


def wrong_head(original: Attention) -> Attention:
    def attention(q: Any, *rest: Any, **options: Any) -> Any:
        return (
            original(q.flip(1), *rest, **options).flip(1) if "enable_gqa" in options else original(q, *rest, **options)
        )

    return attention


def not_causal(original: Attention) -> Attention:
    return lambda *args, is_causal=False, **options: original(*args, **options)


def flash_alone_wrong(original: Attention) -> Attention:
    def attention(*args: Any, **options: Any) -> Any:
        import torch

        wrong = torch.backends.cuda.flash_sdp_enabled() and options.get("is_causal")
        return original(*args, **options) * (1.001 if wrong else 1)

    return attention


def last_key_missed(original: Attention) -> Attention:
    return lambda q, k, v, attn_mask=None, **options: original(
        q, k, v, attn_mask=None if attn_mask is None else without_last_key(attn_mask), **options
    )


def without_last_key(mask: Any) -> Any:
    mask = mask.clone()
    mask[..., -1, -1] = mask[..., 0, -1] if mask.is_floating_point() else False
    return mask


def row(**changes: Any) -> dict[str, Any]:
    known = {"case": "padded_right, min-right, length 64", "variant": "default", "dtype": "float32", "tensor": "dq"}
    return {**known, "theta": 0.1, "rho": 1.0, "nonfinite": 0, **changes}


CONTROL = row(variant="plain attention", control=True)


@pytest.mark.parametrize(
    ("rows", "outcome", "words"),
    [
        ([row()], "pass", ["error of dq: 0.1 times", "bound 1"]),
        ([row(), row(theta=2.0, tensor="dv")], "watch", ["error of dv: 2 times"]),
        ([row(theta="inf", rho="inf", nonfinite=9), CONTROL], "fail", ["9 elements of dq", "plain attention"]),
        ([row(rho=5.0)], "watch", ["no implementation passes there"]),
        ([row(theta=7.0), row(variant="math")], "fail", ["length 64, default", "passing there: math"]),
        ([row(error="RuntimeError: no plan"), CONTROL], "fail", ["raised RuntimeError: no plan"]),
        ([row(variant="cudnn", error="RuntimeError: no kernel", recorded="cannot run here"), row()], "pass", []),
    ],
)
def test_the_worst_row_decides_beside_one_that_passes(
    rows: list[dict[str, Any]], outcome: str, words: list[str]
) -> None:
    found, why = attention_masked.judge({"rows": rows})
    assert found == outcome
    assert all(word in why for word in words), why
    assert "\n" not in why


def test_what_ran_nothing_is_skipped_with_the_reason() -> None:
    nothing = {"rows": [{"case": "shifted", "variant": "default", "recorded": "needs compute capability 9.0"}]}
    outcome, why = attention_masked.judge(nothing)
    assert (outcome, "compute capability 9.0" in why) == ("skip", True)
    assert attention_masked.judge({"unsupported": "no CUDA", "rows": []}) == ("skip", "no CUDA")


@pytest.mark.stack
def test_a_group_that_does_not_exist_is_a_skip_in_one_line() -> None:
    outcome, why = attention_masked.judge(measured(attention_masked, groups=["padded_rigth"]))
    assert (outcome, why.startswith("there is no group padded_rigth; choose from unmasked")) == ("skip", True)


@pytest.mark.stack
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_criterion_tells_faults_from_rounding(dtype: str, seed: int) -> None:
    found = measured(criterion_on_faults, dtype=dtype, seed=seed)
    assert found["formulas"] < 1e-12
    verdicts = {name: _criterion.verdict(row["theta"], row["rho"]) for name, row in found["faults"].items()}
    assert verdicts.pop("healthy") == "pass"
    assert set(verdicts.values()) == {"fail"}, verdicts


@pytest.mark.stack
def test_every_kernel_of_this_stack_passes(stack: Target) -> None:
    result = run("attention_masked", stack, {**CPU, "profile": "quick"})
    assert result.outcome == "pass", result.why
    judged = [row for row in result.measured["rows"] if "recorded" not in row]
    assert {row["variant"] for row in judged} >= {"default", "math", "plain attention"}
    assert {row["group"] for row in judged} == set(attention_masked.DEFAULT_GROUPS)


@pytest.mark.stack
def test_fully_masked_rows_depend_on_the_torch_and_math_is_right() -> None:
    masked = measured(attention_masked, groups=["fully_masked_rows"])
    outcome, why = attention_masked.judge(masked)
    assert outcome == "pass" or (outcome == "fail" and "passing there: math, plain attention; worst of 30" in why)
    by_math = [row for row in masked["rows"] if row["variant"] == "math"]
    assert {_criterion.verdict(row["theta"], row["rho"]) for row in by_math} == {"pass"}


@pytest.mark.stack
def test_heads_of_the_users_model_are_taken() -> None:
    config = {"num_attention_heads": 8, "num_key_value_heads": 2, "hidden_size": 256}
    found = measured(attention_masked, profile="smoke", config=config)
    assert attention_masked.judge(found)[0] == "pass"


@pytest.mark.stack
@pytest.mark.parametrize(
    ("plant", "request_", "words"),
    [
        (nan_in_gradient, {"groups": ["padded_left"]}, ["of dq are not finite", "length"]),
        (one_key_leaks, {"groups": ["padded_right"]}, ["bool-right", "length 130"]),
        (strides_ignored, {"groups": ["transposed_inputs"]}, ["transposed_inputs"]),
        (wrong_head, {"profile": "smoke"}, ["enable_gqa"]),
        (not_causal, {"profile": "smoke"}, ["unmasked, causal"]),
        (flash_alone_wrong, {"groups": ["unmasked"]}, ["unmasked, causal", "passing there: math"]),
        (last_key_missed, {"groups": ["all_true"]}, ["all_true"]),
    ],
)
def test_defects_are_convicted(
    monkeypatch: pytest.MonkeyPatch, plant: Callable[..., Attention], request_: dict[str, Any], words: list[str]
) -> None:
    functional = pytest.importorskip("torch.nn.functional")
    monkeypatch.setattr(functional, "scaled_dot_product_attention", plant(functional.scaled_dot_product_attention))
    outcome, why = attention_masked.judge(measured(attention_masked, **request_))
    assert outcome == "fail", why
    assert all(word in why for word in words), why
