"""Real children in an interpreter with torch: healthy cases pass, planted defects are caught."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from compatcheck.model import Target
from compatcheck.probes import _criterion, _process, run
from tests.probes.conftest import Plant

pytestmark = pytest.mark.stack

SAMPLES = Path(__file__).parent / "samples"
CPU = {"device": "cpu"}
PADDED = {**CPU, "groups": ["padded_right", "padded_left", "transposed_inputs"]}
Needs = Callable[..., None]

NAN_IN_GRADIENT = """
    import torch.nn.functional as F
    original = F.scaled_dot_product_attention

    def attention(q, k, v, attn_mask=None, **options):
        if attn_mask is not None and q.shape[-2] % 128 == 64 and q.requires_grad:
            q.register_hook(lambda gradient: gradient.index_fill(-2, gradient.new_tensor([5]).long(), float("nan")))
        return original(q, k, v, attn_mask=attn_mask, **options)

    F.scaled_dot_product_attention = attention
"""
KEY_LEAKS = """
    import torch
    import torch.nn.functional as F
    original = F.scaled_dot_product_attention

    def attention(q, k, v, attn_mask=None, **options):
        if attn_mask is not None and attn_mask.dtype == torch.bool and q.shape[-2] == 130:
            attn_mask = attn_mask.clone()
            attn_mask[..., 3, 4] = True
        return original(q, k, v, attn_mask=attn_mask, **options)

    F.scaled_dot_product_attention = attention
"""
STRIDES_IGNORED = """
    import torch.nn.functional as F
    original = F.scaled_dot_product_attention

    def attention(q, k, v, **options):
        if not k.is_contiguous():
            k = k.transpose(1, 2).reshape(k.shape)
        return original(q, k, v, **options)

    F.scaled_dot_product_attention = attention
"""
LOSS_NOT_DIVIDED = """
    import transformers
    original = transformers.Trainer.compute_loss

    def compute_loss(self, *args, **options):
        return original(self, *args, **options) * self.args.gradient_accumulation_steps

    transformers.Trainer.compute_loss = compute_loss
"""
NO_AUTOCAST = """
    import peft
    original = peft.get_peft_model
    peft.get_peft_model = lambda model, config: original(model, config, autocast_adapter_dtype=False)
"""
SEED_DEPENDENT = """
    import json, sys
    seed = json.load(open(sys.argv[-1] + "/request.json"))["request"]["seed"]
    import transformers
    compute_loss = transformers.Trainer.compute_loss
    factor = 2 if seed == 0 else 1
    transformers.Trainer.compute_loss = lambda self, *args, **options: compute_loss(self, *args, **options) * (
        factor if self.args.gradient_accumulation_steps > 1 else 1
    )
"""


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_criterion_tells_faults_from_rounding(stack: Target, dtype: str, seed: int) -> None:
    trace = _process.attempt(SAMPLES / "criterion_on_faults.py", stack, {"seed": seed, "dtype": dtype}, 120)
    measured = trace.last("result")["measured"]
    assert measured["formulas"] < 1e-12
    verdicts = {name: _criterion.verdict(row["theta"], row["rho"]) for name, row in measured["faults"].items()}
    assert verdicts.pop("healthy") == "pass"
    assert set(verdicts.values()) == {"fail"}, verdicts


def test_attention_on_this_stack(stack: Target) -> None:
    """The padded groups pass; fully masked rows depend on the torch, and the math kernel gets them right."""
    padded = run("attention_masked", stack, PADDED)
    assert padded.outcome == "pass", padded.why
    assert {row["backend"] for row in padded.measured["rows"]} >= {"default", "math"}
    masked = run("attention_masked", stack, {**CPU, "groups": ["fully_masked_rows"]})
    assert masked.outcome in ("pass", "fail")
    by_math = [row for row in masked.measured["rows"] if row["backend"] == "math"]
    assert {_criterion.verdict(row["theta"], row["rho"]) for row in by_math} == {"pass"}
    assert masked.outcome == "pass" or masked.why.endswith("passing there: math; 30 cases)")


def test_attention_that_needs_other_hardware_is_skipped(stack: Target) -> None:
    result = run("attention_masked", stack, {**CPU, "groups": ["shifted_logits"]})
    assert (result.outcome, "compute capability 9.0" in result.why) == ("skip", True)


@pytest.mark.parametrize(
    ("defect", "words"),
    [
        (NAN_IN_GRADIENT, ["of dq are not finite", "length"]),
        (KEY_LEAKS, ["bool-right", "length 130"]),
        (STRIDES_IGNORED, ["transposed_inputs"]),
    ],
    ids=["nan", "leak", "strides"],
)
def test_attention_defects_are_caught(plant: Plant, defect: str, words: list[str]) -> None:
    result = run("attention_masked", plant(defect), PADDED)
    assert result.outcome == "fail"
    assert all(word in result.why for word in words), result.why


def test_accumulation_is_exact_here(stack: Target, needs: Needs) -> None:
    needs("transformers", "accelerate")
    result = run("gradient_accumulation", stack, CPU)
    assert result.outcome == "pass", result.why
    assert len(result.measured["rows"]) == 4


def test_a_loss_that_is_not_divided_is_caught(plant: Plant, needs: Needs) -> None:
    needs("transformers", "accelerate")
    result = run("gradient_accumulation", plant(LOSS_NOT_DIVIDED), CPU)
    assert result.outcome == "fail"
    ratios = {round(row["ratio"], 3) for row in result.measured["rows"] if row["lengths"] == "equal"}
    assert ratios == {4.0}


def test_a_failure_that_does_not_repeat_is_flaky(plant: Plant, needs: Needs) -> None:
    needs("transformers", "accelerate")
    result = run("gradient_accumulation", plant(SEED_DEPENDENT), CPU)
    assert result.outcome == "watch"
    assert result.why.startswith("flaky: failed with seed 0, passed with seed 1")


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_adapters_of_this_peft_are_float32(stack: Target, needs: Needs, dtype: str) -> None:
    needs("transformers", "peft")
    result = run("low_precision_trainables", stack, {**CPU, "dtype": dtype})
    assert result.outcome == "pass", result.why
    facts = result.measured["facts"]
    assert facts["adamw_zero_gradient"]["float16"] == "nan"
    assert facts["zero_row_gradient"]["float16"] == "inf"
    assert facts["zero_row_gradient"]["float32"] > 65504


@pytest.mark.parametrize(("dtype", "outcome"), [("float16", "fail"), ("bfloat16", "watch"), ("float32", "pass")])
def test_adapters_left_in_the_base_dtype_are_caught(plant: Plant, needs: Needs, dtype: str, outcome: str) -> None:
    needs("transformers", "peft")
    result = run("low_precision_trainables", plant(NO_AUTOCAST), {**CPU, "dtype": dtype})
    assert result.outcome == outcome, result.why
    assert list(result.measured["trainable"]) == [dtype]


@pytest.mark.parametrize(
    ("lines", "outcome"),
    [
        ([{"labels": [-100, 5]}, {"input_ids": [1, 2], "labels": [-100, 7]}], "pass"),
        ([{"labels": [-100, 5]}, {"labels": [-100, -100]}], "fail"),
        ([{"labels": [[5, 6]]}], "fail"),
        ([{"text": "no labels"}], "skip"),
        ([], "skip"),
    ],
)
def test_labels_of_a_file(stack: Target, tmp_path: Path, lines: list[dict[str, Any]], outcome: str) -> None:
    path = tmp_path / "samples.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    result = run("labels_masked", stack, {"samples_file": str(path)})
    assert result.outcome == outcome, result.why


def test_labels_without_samples_show_the_mechanism(stack: Target) -> None:
    result = run("labels_masked", stack, {})
    assert result.outcome == "skip"
    assert result.measured["mechanism"] == {"loss": "nan", "gradient_norm": 0.0}
