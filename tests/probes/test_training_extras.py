"""Packing, checkpointing, memory, saving, accumulation and adapters: healthy stacks pass, planted faults fail."""

from __future__ import annotations

import functools
import importlib
import json
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest

from compatcheck.environment import Target
from compatcheck.probes import _units, run

pytestmark = [pytest.mark.stack, pytest.mark.slow]

CPU = {"device": "cpu"}
SINGLE = {**CPU, "training": {"dtype": "float32", "attention": "sdpa"}}
PACKING = {**CPU, "training": {**SINGLE["training"], "packing": True}}
GLM = {
    "model_type": "glm",
    "hidden_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 32,
}
Fault = Callable[[pytest.MonkeyPatch], None]

OWN_CODE = """
from transformers import LlamaConfig, LlamaForCausalLM

class C(LlamaConfig):
    def __init__(self, **options):
        small = {"hidden_size": 128, "num_attention_heads": 4, "num_hidden_layers": 2, "vocab_size": 256}
        super().__init__(**{**small, **options})

class M(LlamaForCausalLM):
    config_class = C

    def gradient_checkpointing_enable(self, gradient_checkpointing_kwargs=None):
        pass
"""


@pytest.fixture(autouse=True)
def _with_transformers() -> None:
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    pytest.importorskip("accelerate")


def judged(name: str, request: dict[str, Any], seed: int = 0) -> tuple[str, str, dict[str, Any]]:
    """Outcome, why and what was measured, in this process; what was measured goes through JSON as in a child."""
    unit = _units.unit(name)
    measured = unit.measure({"seed": seed, **request}, lambda stage: None)
    if isinstance(measured, Generator):
        rows = []
        while True:
            try:
                rows.append(next(measured))
            except StopIteration as end:
                measured = {"rows": rows, **(end.value or {})}
                break
    return (*unit.judge(json.loads(json.dumps(measured))), measured)


def padding_is_seen(patch: pytest.MonkeyPatch) -> None:
    import torch.nn.functional as functional

    original = functional.scaled_dot_product_attention

    def attention(q: Any, k: Any, v: Any, attn_mask: Any = None, **options: Any) -> Any:
        if attn_mask is not None and attn_mask.shape[0] > 1:
            attn_mask = attn_mask.clone()
            attn_mask[..., 5:, 0] = True if attn_mask.dtype is q.new_ones(1).bool().dtype else 0.0
        return original(q, k, v, attn_mask=attn_mask, **options)

    patch.setattr(functional, "scaled_dot_product_attention", attention)


def segments_are_dropped(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("transformers.masking_utils.find_packed_sequence_indices", lambda position_ids: None)


def the_switch_is_ignored(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("transformers.PreTrainedModel.gradient_checkpointing_enable", lambda self, **options: None)


def inputs_take_no_gradient(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("transformers.PreTrainedModel.enable_input_require_grads", lambda self: None)


def recomputing_differs(patch: pytest.MonkeyPatch) -> None:
    from transformers.models.llama.modeling_llama import LlamaMLP

    original, seen = LlamaMLP.forward, {}

    def forward(self: Any, x: Any) -> Any:
        seen[id(self)] = seen.get(id(self), 0) + 1
        return original(self, x) * (1 + 0.01 * (seen[id(self)] % 2 == 0))

    patch.setattr(LlamaMLP, "forward", forward)


def keeps(value: Callable[[Any], Any]) -> Fault:
    """A fault: something of every forward pass stays behind."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        from transformers import LlamaForCausalLM

        original, kept = LlamaForCausalLM.forward, []

        @functools.wraps(original)
        def forward(self: Any, *args: Any, **options: Any) -> Any:
            output = original(self, *args, **options)
            kept.append(value(output))
            return output

        patch.setattr(LlamaForCausalLM, "forward", forward)

    return plant


def sixteen_kibibytes_leak(patch: pytest.MonkeyPatch) -> None:
    keeps(lambda output: output.loss.new_zeros(4096))(patch)


def logits_are_collected(patch: pytest.MonkeyPatch) -> None:
    keeps(lambda output: output.logits)(patch)


def the_tie_is_lost(patch: pytest.MonkeyPatch) -> None:
    import torch
    from transformers import LlamaForCausalLM

    original = LlamaForCausalLM.from_pretrained

    def from_pretrained(*args: Any, **options: Any) -> Any:
        model = original(*args, **options)
        if model.config.tie_word_embeddings:
            model.lm_head.weight = torch.nn.Parameter(torch.randn_like(model.lm_head.weight))
        return model

    patch.setattr(LlamaForCausalLM, "from_pretrained", from_pretrained)


def one_tensor_is_rounded(patch: pytest.MonkeyPatch) -> None:
    from transformers import PreTrainedModel

    original = PreTrainedModel.save_pretrained

    def save_pretrained(self: Any, *args: Any, **options: Any) -> None:
        weight = self.model.norm.weight.data
        self.model.norm.weight.data = weight.bfloat16().to(weight.dtype)
        original(self, *args, **options)
        self.model.norm.weight.data = weight

    patch.setattr(PreTrainedModel, "save_pretrained", save_pretrained)


def the_loss_is_not_divided(patch: pytest.MonkeyPatch) -> None:
    from transformers import Trainer

    original = Trainer.compute_loss
    patch.setattr(
        Trainer,
        "compute_loss",
        lambda self, *args, **options: original(self, *args, **options) * self.args.gradient_accumulation_steps,
    )


@pytest.mark.parametrize(
    "name", ["packed_sequences", "gradient_checkpointing", "rollout_logprobs", "save_reload", "memory_growth"]
)
@pytest.mark.parametrize("config", [None, GLM], ids=["default", "glm"])
def test_this_stack_passes(name: str, config: dict[str, Any] | None, patched_window: None) -> None:
    outcome, why, _ = judged(name, {**CPU, "config": config})
    assert outcome == "pass", why


@pytest.fixture
def patched_window(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorter windows of memory readings, enough for the rule."""
    monkeypatch.setattr("compatcheck.probes.training.memory_growth.WINDOW", 12)


@pytest.mark.parametrize(
    ("name", "request_", "fault", "words"),
    [
        ("packed_sequences", SINGLE, padding_is_seen, "padding, float32"),
        ("packed_sequences", PACKING, segments_are_dropped, "packed row, sdpa"),
        ("gradient_checkpointing", SINGLE, the_switch_is_ignored, "kept for the backward pass (bytes kept"),
        ("gradient_checkpointing", SINGLE, inputs_take_no_gradient, "lose their gradient"),
        ("gradient_checkpointing", SINGLE, recomputing_differs, "error of gradients"),
        ("memory_growth", SINGLE, sixteen_kibibytes_leak, "16384 bytes per step are not freed"),
        ("memory_growth", SINGLE, logits_are_collected, "bytes per step are not freed"),
        ("save_reload", SINGLE, the_tie_is_lost, "do not come back as they were saved"),
        ("save_reload", SINGLE, one_tensor_is_rounded, "model.norm.weight"),
        ("gradient_accumulation", CPU, the_loss_is_not_divided, "micro-batches gives "),
    ],
    ids=lambda value: value.__name__ if callable(value) else value if value in ("packed_sequences",) else "",
)
def test_a_planted_fault_is_convicted(
    name: str,
    request_: dict[str, Any],
    fault: Fault,
    words: str,
    monkeypatch: pytest.MonkeyPatch,
    patched_window: None,
) -> None:
    fault(monkeypatch)
    outcome, why, _ = judged(name, request_)
    assert outcome == "fail", why
    assert words in why


def test_remote_code_that_ignores_checkpointing_is_convicted_beside_layers_wrapped_by_hand(
    stack: Target, tmp_path: Path
) -> None:
    (tmp_path / "modeling_own.py").write_text(OWN_CODE, encoding="utf-8")
    classes = {"AutoConfig": "modeling_own.C", "AutoModelForCausalLM": "modeling_own.M"}
    config = {"model_type": "llama", "auto_map": classes}
    request = {**SINGLE, "config": config, "model_folder": str(tmp_path), "trust_remote_code": True}
    result = run("gradient_checkpointing", stack, request)
    assert result.outcome == "fail", result.why
    assert "passing there: layers wrapped by hand" in result.why


@pytest.mark.parametrize(
    ("request_", "outcome", "words"),
    [
        (SINGLE, "pass", "padding"),
        (PACKING, "watch", "that comes with a mask of ones"),
        ({**CPU, "training": {**PACKING["training"], "framework": "trl"}}, "pass", ""),
        ({**PACKING, "packed": "positions"}, "pass", ""),
        ({**SINGLE, "packed": "with mask"}, "fail", "packed row with a mask of ones"),
    ],
    ids=["nobody packs", "somebody packs", "TRL packs", "asked without a mask", "asked with a mask"],
)
def test_a_mask_of_ones_counts_where_it_can_come(request_: dict[str, Any], outcome: str, words: str) -> None:
    found, why, measured = judged("packed_sequences", request_)
    assert (found, words in why) == (outcome, True), why
    if request_ is SINGLE:
        assert all("recorded" in row for row in measured["rows"] if "packed row" in row["variant"])


@pytest.mark.parametrize(("model_type", "scored"), [("llama", True), ("opt", True), ("gpt2", False)])
def test_a_model_that_counts_padding_is_scored_at_other_positions_than_it_generates(
    model_type: str, scored: bool
) -> None:
    request = {**SINGLE, "config": {"model_type": model_type}}
    outcome, why, measured = judged("rollout_logprobs", request)
    assert (outcome, {row["recorded"] for row in measured["rows"] if "recorded" in row}) == (
        "pass",
        {"the objective draws no completions"},
    ), why
    outcome, why, _ = judged("rollout_logprobs", {**request, "training": {"objective": "grpo"}})
    assert outcome == ("pass" if scored else "fail"), why
    assert scored or "forward pass, padded on both sides" in why


def test_an_encoder_does_not_generate_token_by_token() -> None:
    outcome, why, _ = judged("rollout_logprobs", {**SINGLE, "config": {"model_type": "bert"}})
    assert (outcome, why) == ("skip", "the logits of BertLMHeadModel depend on the tokens that follow")


def test_an_attention_that_does_not_run_is_named_and_is_no_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    functional, refused = torch.nn.functional, "FlashAttention only supports Ampere GPUs or newer."
    original = functional.scaled_dot_product_attention

    def attention(query: Any, *args: Any, **options: Any) -> Any:
        if query.dtype == torch.bfloat16:
            raise RuntimeError(refused)
        return original(query, *args, **options)

    monkeypatch.setattr(functional, "scaled_dot_product_attention", attention)
    outcome, why, _ = judged("packed_sequences", CPU)
    assert (outcome, why) == ("watch", f"sdpa in bfloat16 does not run here: RuntimeError: {refused}")


def test_an_unknown_architecture_is_skipped_with_the_reason() -> None:
    for name in ("packed_sequences", "gradient_checkpointing", "save_reload", "memory_growth", "gradient_accumulation"):
        outcome, why, _ = judged(name, {**CPU, "config": {"model_type": "no-such-model"}})
        assert (outcome, "no-such-model" in why) == ("skip", True), why


def test_adapters_make_the_journey_too(monkeypatch: pytest.MonkeyPatch) -> None:
    peft = pytest.importorskip("peft")
    request = {**CPU, "training": {"dtype": "float32", "lora": {"r": 4}}}
    outcome, why, _ = judged("save_reload", request)
    assert outcome == "pass", why
    original = peft.PeftModel.from_pretrained

    def from_pretrained(*args: Any, **options: Any) -> Any:
        wrapped = original(*args, **options)
        for name, parameter in wrapped.named_parameters():
            if ".lora_B." in name:
                parameter.data.zero_()
        return wrapped

    monkeypatch.setattr(peft.PeftModel, "from_pretrained", from_pretrained)
    outcome, why, _ = judged("save_reload", request)
    assert (outcome, "lora_B" in why) == ("fail", True), why


@pytest.mark.parametrize(("config", "models"), [(None, {"loss_kwargs", "no_kwargs"}), (GLM, {"own"})])
def test_accumulation_is_exact_here(config: dict[str, Any] | None, models: set[str]) -> None:
    outcome, why, measured = judged("gradient_accumulation", {**CPU, "config": config})
    assert outcome == "pass", why
    assert {row["model"] for row in measured["rows"]} == models


def test_who_accumulates_nothing_is_not_kept_waiting() -> None:
    outcome, why, _ = judged("gradient_accumulation", {**CPU, "training": {"gradient_accumulation_steps": 1}})
    assert (outcome, why) == ("skip", "the training file does not accumulate gradients")


RISING, FLAT = [index << 14 for index in range(36)], [1 << 20] * 18


@pytest.mark.parametrize(
    ("model", "plain", "outcome"),
    [
        ([FLAT, FLAT], [FLAT, FLAT], "pass"),
        ([RISING[:18], RISING[18:]], [FLAT, FLAT], "fail"),
        ([RISING[:18], FLAT], [FLAT, FLAT], "pass"),
        ([[0] * 9 + FLAT[9:], FLAT], [FLAT, FLAT], "pass"),
        ([RISING[:18], RISING[18:]], [RISING[:18], RISING[18:]], "watch"),
    ],
    ids=["flat", "leak", "settles in the second window", "one jump", "plain torch leaks too"],
)
def test_growth_is_judged_over_two_windows(model: list[list[int]], plain: list[list[int]], outcome: str) -> None:
    rows = [
        {"control": control, "meter": "live storages", "windows": windows}
        for control, windows in ((False, model), (True, plain))
    ]
    judge = importlib.import_module("compatcheck.probes.training.memory_growth").judge
    assert judge({"rows": rows, "device": "cpu"})[0] == outcome


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_adapters_of_this_peft_are_float32(dtype: str) -> None:
    pytest.importorskip("peft")
    outcome, why, measured = judged("low_precision_trainables", {**CPU, "dtype": dtype})
    assert outcome == "pass", why
    facts = measured["facts"]
    assert str(facts["adamw_zero_gradient"]["float16"]) == "nan"
    assert str(facts["zero_row_gradient"]["float16"]) == "inf"
    assert facts["zero_row_gradient"]["float32"] > 65504


@pytest.mark.parametrize(("dtype", "outcome"), [("float16", "fail"), ("bfloat16", "watch"), ("float32", "pass")])
def test_adapters_left_in_the_base_dtype_are_caught(dtype: str, outcome: str, monkeypatch: pytest.MonkeyPatch) -> None:
    peft = pytest.importorskip("peft")
    original = peft.get_peft_model
    monkeypatch.setattr(
        peft, "get_peft_model", lambda model, config: original(model, config, autocast_adapter_dtype=False)
    )
    found, why, measured = judged("low_precision_trainables", {**CPU, "dtype": dtype})
    assert found == outcome, why
    assert list(measured["trainable"]) == [dtype]
