"""A small model trains right here, and faults planted in its attention, loss and gradients are told."""

from __future__ import annotations

import argparse
import contextlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from compatcheck.environment import Target
from compatcheck.probes import run
from compatcheck.probes.training import micro_training
from tests.probes.conftest import Plant

pytestmark = [pytest.mark.stack, pytest.mark.slow]
torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from compatcheck.probes.training import _batches as batches  # noqa: E402
from compatcheck.probes.training import _exact as exact  # noqa: E402
from compatcheck.probes.training import _model as model  # noqa: E402
from compatcheck.probes.training import _passes as passes  # noqa: E402
from compatcheck.probes.training import _ramp as ramp  # noqa: E402
from compatcheck.probes.training import _recipe as recipe  # noqa: E402
from compatcheck.probes.training._unreached import unreached  # noqa: E402

SAMPLES = Path(__file__).parent / "samples"
CONFIGS: dict[str, dict[str, Any]] = json.loads((SAMPLES / "model_configs.json").read_text(encoding="utf-8"))
TINY = {
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "vocab_size": 128,
}
QUICK = {"seed": 0, "device": "cpu", "batch_sizes": [1, 2]}
Breaks = Callable[..., Any]


def measured(**request: Any) -> dict[str, Any]:
    threads = torch.get_num_threads()
    rows = []
    child = micro_training.measure({**QUICK, "config": TINY, **request}, lambda stage: None)
    try:
        while True:
            rows.append(next(child))
    except StopIteration as end:
        return {"rows": rows, **end.value}
    finally:
        torch.set_num_threads(threads)


def judged(**request: Any) -> tuple[str, str]:
    return micro_training.judge(measured(**request))


@contextlib.contextmanager
def attention_broken(monkeypatch: pytest.MonkeyPatch, breaks: Breaks) -> Iterator[None]:
    """Scaled dot-product attention, which eager attention does not call, goes through ``breaks``."""
    original = torch.nn.functional.scaled_dot_product_attention
    with monkeypatch.context() as patch:
        patch.setattr(
            torch.nn.functional,
            "scaled_dot_product_attention",
            lambda q, k, v, **options: breaks(original, q, k, v, **options),
        )
        yield


def _nan_on_padding(attend: Any, q: Any, k: Any, v: Any, attn_mask: Any = None, **options: Any) -> Any:
    out = attend(q, k, v, attn_mask=attn_mask, **options)
    return out if attn_mask is None else out * float("nan")


def _mask_dropped(attend: Any, q: Any, k: Any, v: Any, attn_mask: Any = None, **options: Any) -> Any:
    return attend(q, k, v, **{**options, "is_causal": True})


def _wrong_scale(attend: Any, q: Any, k: Any, v: Any, **options: Any) -> Any:
    return attend(q * (64 / 65) ** 0.5, k, v, **options)


def _gradient_of_keys_lost(attend: Any, q: Any, k: Any, v: Any, **options: Any) -> Any:
    return attend(q, k.detach(), v, **options)


def test_the_default_model_trains_right_in_a_child(stack: Target) -> None:
    result = run("micro_training", stack, QUICK)
    assert result.outcome == "pass", result.why
    variants = {row["variant"] for row in result.measured["rows"]}
    assert variants >= {"sdpa bfloat16", "sdpa float32", "eager bfloat16", "padded, float64"}
    losses = next(
        row["losses"] for row in result.measured["rows"] if row["variant"] == "sdpa bfloat16" and "losses" in row
    )
    assert losses[0] > losses[1] > losses[2]


@pytest.mark.parametrize(
    ("breaks", "words"),
    [
        (
            _nan_on_padding,
            "right at batch size 1, but not finite from batch size 2 on, with padding on the right and left",
        ),
        (_mask_dropped, "right at batch size 1, but wrong from batch size 2 on, with padding on the left"),
        (_wrong_scale, "times the expected rounding error"),
        (_gradient_of_keys_lost, "no gradient reaches model.layers.0.self_attn.k_proj.weight"),
    ],
)
def test_faults_of_attention_are_convicted(monkeypatch: pytest.MonkeyPatch, breaks: Breaks, words: str) -> None:
    with attention_broken(monkeypatch, breaks):
        outcome, why = judged()
    assert outcome == "fail", why
    assert words in why
    assert "passing there: eager" in why


def test_a_loss_averaged_over_padding_is_convicted_by_a_loss_of_the_probes_own(monkeypatch: pytest.MonkeyPatch) -> None:
    original = torch.nn.functional.cross_entropy

    def averaged(logits: Any, targets: Any, *args: Any, **options: Any) -> Any:
        loss = original(logits, targets, *args, **options)
        mean = options.get("reduction", "mean") == "mean"
        return loss * (targets != -100).sum() / targets.numel() if mean else loss

    monkeypatch.setattr(torch.nn.functional, "cross_entropy", averaged)
    outcome, why = judged()
    assert outcome == "fail", why
    assert "passing there: sdpa float32, loss by the probe" in why


def test_an_optimiser_that_does_not_learn_is_convicted(monkeypatch: pytest.MonkeyPatch) -> None:
    step = torch.optim.AdamW.step

    def idle_in_bfloat16(self: Any, *args: Any) -> Any:
        if self.param_groups[0]["params"][0].dtype == torch.float32:
            return step(self, *args)
        return None

    monkeypatch.setattr(torch.optim.AdamW, "step", idle_in_bfloat16)
    outcome, why = judged()
    assert outcome == "fail", why
    assert "12 optimiser steps" in why


def test_a_step_that_leaves_one_parameter_out_is_convicted_by_a_step_written_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    step = torch.optim.AdamW.step

    def without_the_last(self: Any, *args: Any) -> Any:
        self.param_groups[-1]["params"][-1].grad = None
        return step(self, *args)

    monkeypatch.setattr(torch.optim.AdamW, "step", without_the_last)
    outcome, why = judged(batch_sizes=[1])
    assert outcome == "fail", why
    assert why.startswith("no optimizer step changes lm_head.weight")
    assert "passing there: eager float32, AdamW written out" in why


class Toy(torch.nn.Module):  # type: ignore[misc]
    """Two paths to the logits, one of which may be detached, and a parameter that is not used."""

    def __init__(self, detached: bool) -> None:
        super().__init__()
        self.embedding, self.output = torch.nn.Embedding(11, 4), torch.nn.Linear(4, 11)
        self.block, self.unused = torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)
        self.detached = detached
        self.double()

    def forward(self, input_ids: Any, **_: Any) -> Any:
        x = self.embedding(input_ids)
        y = self.block(x)
        return argparse.Namespace(logits=self.output(x + (y.detach() if self.detached else y)))


@pytest.mark.parametrize("detached", [True, False])
def test_a_parameter_that_counts_and_gets_no_gradient_is_told_and_an_unused_one_is_not(detached: bool) -> None:
    toy, chosen = Toy(detached), batches.singles([torch.tensor([1, 5, 7, 2])])
    before = {name: value.clone() for name, value in toy.named_parameters()}
    rows = list(unreached(toy, passes.sums(toy, chosen, (1,))[1], chosen, 0))
    assert all(torch.equal(value, before[name]) for name, value in toy.named_parameters())
    assert [row["variant"] for row in rows] == (
        ["the model's code", "finite differences of the loss"] if detached else []
    )
    assert not detached or rows[0]["lost"] == ["block.weight", "block.bias"]


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        ({"config": {"model_type": "nonesuch"}}, "knows no model type 'nonesuch'"),
        ({"config": {"model_type": "vit"}}, "no causal language model"),
        ({"config": {"model_type": "chatglm", "auto_map": {"AutoConfig": "a.B"}}}, "--trust-remote-code"),
        ({"config": {"model_type": "llama", "hidden_size": "wide"}}, "LlamaConfig"),
        ({"config": {**CONFIGS["llama"], "head_dim": 65536}}, "too large to shrink"),
        ({"training": {"attention": "flash_attention_2"}}, "flash_attention_2 attention cannot run here"),
    ],
)
def test_what_cannot_be_measured_is_skipped_with_why(request_: dict[str, Any], words: str) -> None:
    outcome, why = judged(**request_)
    assert (outcome, words in why) == ("skip", True), why


def test_an_optimiser_that_is_not_to_be_had_is_told() -> None:
    outcome, why = judged(training={"optimizer": "nonesuch"})
    assert (outcome, why.endswith("not run: optimizer nonesuch is not supported by this probe")) == ("pass", True), why


@pytest.mark.parametrize(
    "training",
    [
        {"mixed_precision": "bf16", "dtype": "bfloat16"},
        {"mixed_precision": "bf16", "load_dtype": "bfloat16", "lora": {"r": 8, "target_modules": ["q_proj", "v_proj"]}},
        {"dtype": "float32", "gradient_checkpointing": True, "optimizer": "sgd", "attention": "eager"},
    ],
    ids=["autocast", "lora", "checkpointing"],
)
def test_recipes_are_right_here(training: dict[str, Any]) -> None:
    if "lora" in training:
        pytest.importorskip("peft")
    outcome, why = judged(training=training)
    assert outcome == "pass", why


def test_a_quantised_base_is_measured_against_what_its_weights_stand_for() -> None:
    pytest.importorskip("peft")
    pytest.importorskip("bitsandbytes")
    found = {"bits": 4, "type": "nf4", "double_quant": True}
    outcome, why = judged(training={"mixed_precision": "bf16", "load_dtype": "bfloat16", "quantization": found})
    assert outcome in ("pass", "skip"), why


def test_remote_code_runs_only_where_it_is_trusted(stack: Target) -> None:
    folder = SAMPLES / "remote_model"
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    request = {"config": config, "model_folder": str(folder), "training": {"dtype": "float32"}}
    kept = run("micro_training", stack, {"device": "cpu", **request})
    assert (kept.outcome, "--trust-remote-code" in kept.why) == ("skip", True)
    trusted = run("micro_training", stack, {"device": "cpu", **request, "trust_remote_code": True})
    assert trusted.outcome == "pass", trusted.why
    assert not list(folder.rglob("__pycache__"))


def test_the_exact_model_does_not_see_padding() -> None:
    built = model.build({"seed": 3})
    with exact.float64_everywhere():
        oracle = model.exact_instance(built)
        chosen = batches.sequences(built.vocabulary, built.special_ids, 3)
        alone = passes.sums(oracle, batches.singles(chosen), (8,))[8]
        together = passes.sums(oracle, [batches.padded(chosen, "left", built.pad_id)], (1,))[1]
    errors = [float((together.gradients[name] - alone.gradients[name]).norm()) for name in alone.gradients]
    assert max(errors) < 1e-13
    assert together.loss == pytest.approx(alone.loss, abs=1e-13)
    assert torch.get_default_dtype() == torch.float32


def test_weights_come_from_seed_and_name_alone_and_are_rounded_once() -> None:
    built = model.build({"seed": 5})
    narrow, wide = model.instance(built, "bfloat16", "eager"), model.instance(built, "float32", "sdpa")
    for (name, one), (_, other) in zip(narrow.named_parameters(), wide.named_parameters(), strict=True):
        assert one.dtype == torch.bfloat16
        assert torch.equal(one, built.weights[name].to(torch.bfloat16))
        assert torch.equal(other, built.weights[name].float())
    assert (narrow.config._attn_implementation, wide.config._attn_implementation) == ("eager", "sdpa")


def test_padding_carries_no_label_and_packing_restarts_positions() -> None:
    first, second = torch.tensor([5, 6, 7]), torch.tensor([8, 9])
    left = batches.padded([first, second], "left", 0)
    assert left["input_ids"].tolist() == [[5, 6, 7], [0, 8, 9]]
    assert left["labels"].tolist() == [[-100, 6, 7], [-100, -100, 9]]
    assert batches.padded([first, second], "left", 0, label_first=True)["labels"].tolist() == [[5, 6, 7], [-100, 8, 9]]
    assert batches.packed([first, second])["position_ids"].tolist() == [[0, 1, 2, 0, 1]]
    assert batches.packed([first, second])["labels"].tolist() == [[-100, 6, 7, -100, 9]]
    assert batches.predicted(left) == 3


@pytest.mark.parametrize(
    ("stated", "expected"),
    [
        ({}, ("bfloat16", "bfloat16", False)),
        ({"mixed_precision": "fp16"}, ("float16", "float32", True)),
        ({"dtype": "float16", "mixed_precision": "no"}, ("float16", "float16", False)),
        ({"mixed_precision": "bf16", "load_dtype": "bfloat16", "lora": {}}, ("bfloat16", "bfloat16", True)),
    ],
)
def test_precision_as_the_training_file_states_it(stated: dict[str, Any], expected: tuple[str, str, bool]) -> None:
    found = recipe.recipe_of({"training": stated})
    assert (found.dtype, found.weights, found.autocast) == expected
    assert found.scaler == (expected[0] == "float16" and expected[2])


@pytest.mark.parametrize("name", sorted(CONFIGS))
def test_published_architectures_train_right_here(name: str) -> None:
    outcome, why = judged(config=CONFIGS[name])
    assert outcome in ("pass", "watch") or (outcome == "skip" and "knows no model type" in why), why


def test_positions_learned_by_number_are_no_fault_of_padding_on_the_left() -> None:
    rows = measured(config=CONFIGS["gpt2"])["rows"]
    left = [row for row in rows if row["case"].startswith("formula") and row["case"].endswith("left")]
    assert [row.get("recorded") for row in left if row["variant"] == "padded, float64"] == [ramp.BY_DESIGN]
    assert micro_training.judge({"rows": rows})[0] == "pass"


NAN_ON_PADDING = """
    import torch.nn.functional as F
    original = F.scaled_dot_product_attention

    def attention(q, k, v, attn_mask=None, **options):
        out = original(q, k, v, attn_mask=attn_mask, **options)
        return out if attn_mask is None else out * float("nan")

    F.scaled_dot_product_attention = attention
"""


def test_a_planted_stack_is_convicted_twice(plant: Plant) -> None:
    result = run("micro_training", plant(NAN_ON_PADDING), QUICK)
    assert result.outcome == "fail"
    assert "not finite from batch size 2" in result.why
