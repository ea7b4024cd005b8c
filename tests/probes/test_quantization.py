"""bitsandbytes: right here, and convicted with a planted defect; and position tables, which 16 bits cannot hold."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import pytest

from compatcheck.probes.operators import _bitsandbytes, optimizer_8bit, quantized_linear, rotary_embedding
from tests.probes.inside import measured

torch = pytest.importorskip("torch")

Patch = pytest.MonkeyPatch


@pytest.fixture(scope="module")
def bitsandbytes() -> Any:
    return pytest.importorskip("bitsandbytes", minversion="0.45")


def test_quantised_layers_are_right_here(bitsandbytes: Any) -> None:
    found = measured(quantized_linear)
    outcome, why = quantized_linear.judge(found)
    assert outcome == "pass", why
    errors = {row["case"]: row["relative_error"] for row in found["rows"] if "relative_error" in row}
    assert errors["nf4 in blocks of 64, rows of 4096, quantised"] == pytest.approx(0.092, rel=0.05)
    assert errors["fp4 in blocks of 64, rows of 4096, quantised"] == pytest.approx(0.122, rel=0.05)
    assert found["library"]["file"].startswith("libbitsandbytes_")


def one_block_scaled(dequantise: Callable[..., Any]) -> Callable[..., Any]:
    def wrong(*args: Any, **options: Any) -> Any:
        weight = dequantise(*args, **options)
        weight.view(-1)[64:128] *= 1.25
        return weight

    return wrong


def bytes_swapped(quantise: Callable[..., Any]) -> Callable[..., Any]:
    def wrong(*args: Any, **options: Any) -> Any:
        stored, state = quantise(*args, **options)
        return (stored >> 4) | (stored << 4), state

    return wrong


@pytest.mark.parametrize(
    ("name", "fault", "words"),
    [("dequantize_4bit", one_block_scaled, "dequantised"), ("quantize_4bit", bytes_swapped, "quantised")],
)
def test_a_wrong_kernel_is_convicted(bitsandbytes: Any, monkeypatch: Patch, name: str, fault: Any, words: str) -> None:
    functional = bitsandbytes.functional
    monkeypatch.setattr(functional, name, fault(getattr(functional, name)))
    outcome, why = quantized_linear.judge(measured(quantized_linear, blocks=[64]))
    assert outcome == "fail" and words in why, why


def test_a_layer_that_drops_a_column_is_convicted(bitsandbytes: Any, monkeypatch: Patch) -> None:
    forward = bitsandbytes.nn.Linear4bit.forward
    drop = lambda self, x: forward(self, x * (torch.arange(x.shape[-1]) < x.shape[-1] - 1))  # noqa: E731
    monkeypatch.setattr(bitsandbytes.nn.Linear4bit, "forward", drop)
    outcome, why = quantized_linear.judge(measured(quantized_linear, blocks=[64]))
    assert outcome == "fail" and "Linear4bit" in why and "passing there: plain product" in why, why


def test_rows_that_end_inside_a_block_are_judged_where_they_are_asked_for(bitsandbytes: Any) -> None:
    """bitsandbytes 0.50.2 dequantises them wrongly on a CPU with AVX-512, and rightly without."""
    outcome, why = quantized_linear.judge(measured(quantized_linear, blocks=[64], broken_rows=True))
    assert outcome in ("pass", "fail")
    assert outcome == "pass" or "rows of 96, dequantised" in why, why


def test_8bit_optimisers_are_right_here(bitsandbytes: Any) -> None:
    found = measured(optimizer_8bit)
    outcome, why = optimizer_8bit.judge(found)
    assert outcome == "pass", why
    assert 0 < found["facts"]["off_after_ten_steps"]["AdamW8bit"] < 0.05


def state_not_kept(step: Callable[..., Any]) -> Callable[..., Any]:
    def wrong(self: Any, group: Any, p: Any, *rest: Any) -> Any:
        before = self.state[p]["state1"].clone()
        step(self, group, p, *rest)
        self.state[p]["state1"].copy_(before)

    return wrong


def ascending(step: Callable[..., Any]) -> Callable[..., Any]:
    def wrong(self: Any, group: Any, p: Any, *rest: Any) -> Any:
        before = p.detach().clone()
        step(self, group, p, *rest)
        p.data = 2 * before - p.data

    return wrong


@pytest.mark.parametrize(("fault", "tensor"), [(state_not_kept, "first_moment"), (ascending, "parameter")])
def test_a_wrong_8bit_step_is_convicted(bitsandbytes: Any, monkeypatch: Patch, fault: Any, tensor: str) -> None:
    steps = bitsandbytes.optim.optimizer.Optimizer2State
    monkeypatch.setattr(steps, "update_step", fault(steps.update_step))
    outcome, why = optimizer_8bit.judge(measured(optimizer_8bit))
    assert outcome == "fail" and why.startswith(f"error of {tensor}"), why


@pytest.mark.parametrize(("cuda", "outcome"), [(True, "pass"), (False, "fail")])
def test_the_library_for_cpus_on_a_gpu_is_convicted(monkeypatch: Patch, cuda: bool, outcome: str) -> None:
    monkeypatch.setattr(_bitsandbytes, "native_library", lambda: {"file": "libbitsandbytes_cpu.so", "cuda": cuda})
    judged, why = quantized_linear.judge({"rows": list(_bitsandbytes.native_rows("cuda"))})
    assert judged == outcome
    assert cuda or "libbitsandbytes_cpu.so" in why


def test_positions_are_exact_here() -> None:
    pytest.importorskip("transformers")
    found = measured(rotary_embedding, families=["llama", "gemma"])
    outcome, why = rotary_embedding.judge(found)
    assert outcome == "pass", why
    assert {row["variant"] for row in found["rows"]} >= {"built in bfloat16", "under autocast to bfloat16"}


def test_angles_in_bfloat16_are_convicted(monkeypatch: Patch) -> None:
    llama = pytest.importorskip("transformers.models.llama.modeling_llama")

    def forward(self: Any, x: Any, position_ids: Any) -> Any:
        angles = (self.inv_freq[None, :, None] @ position_ids[:, None].float()).transpose(1, 2)
        table = torch.cat((angles, angles), -1)
        return table.cos().to(x.dtype), table.sin().to(x.dtype)

    monkeypatch.setattr(llama.LlamaRotaryEmbedding, "forward", forward)
    outcome, why = rotary_embedding.judge(measured(rotary_embedding))
    assert outcome == "fail" and "under autocast to bfloat16" in why, why
    assert "passing there: built in bfloat16, built in float32" in why


def test_a_base_that_config_json_does_not_name_is_convicted() -> None:
    pytest.importorskip("transformers")
    given = {"model_type": "llama", "max_position_embeddings": 512, "rope_theta": 500000.0}
    kind = types.SimpleNamespace(family="llama", layer_type="")
    rows = list(
        rotary_embedding._frequency_rows("llama", kind, 1e4 ** -(torch.arange(64.0) / 64).double(), {"config": given})
    )
    outcome, why = rotary_embedding.judge({"rows": rows})
    assert outcome == "fail" and "base 500000" in why, why
    outcome, why = rotary_embedding.judge(measured(rotary_embedding, config=given))
    assert outcome == "pass", why


@pytest.mark.parametrize("family", ["chatglm", "gpt2"])
def test_a_family_without_a_module_of_its_own_is_skipped_with_a_reason(family: str) -> None:
    pytest.importorskip("transformers")
    outcome, why = rotary_embedding.judge(measured(rotary_embedding, config={"model_type": family}))
    assert (outcome, family in why) == ("skip", True)
