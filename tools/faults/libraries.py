"""Faults of quantised layers, 8-bit optimisers, checkpoints, memory, and of hardware that does not repeat itself."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from tools.faults._plant import Call, Fault, Plant, altered, replaced
from tools.faults.models import method

BITSANDBYTES, NEEDS = ("bitsandbytes",), ("transformers",)
QUANTISED, EIGHT_BIT, SAVED = "quantized_linear", "optimizer_8bit", "save_reload"
FUNCTIONAL = "bitsandbytes.functional"


def wrong_code(original: Any, *args: Any, **options: Any) -> Any:
    """The first pair of codes is exchanged."""
    stored, state = original(*args, **options)
    first = stored.view(-1)[:1]
    first.copy_((first >> 4) | ((first & 15) << 4) if int(first >> 4) != int(first & 15) else first ^ 0x80)
    return stored, state


def next_entry(original: Any, *args: Any, **options: Any) -> Any:
    """Every code is one entry too high, as with a code book that is shifted."""
    stored, state = original(*args, **options)
    high, low = (stored >> 4), (stored & 15)
    stored.copy_((((high + 1).clamp(max=15)) << 4) | (low + 1).clamp(max=15))
    return stored, state


def next_block(original: Any, stored: Any, state: Any = None, *args: Any, **options: Any) -> Any:
    """Every block is scaled by the magnitude of the one before it."""
    out = original(stored, state, *args, **options)
    if state.nested:
        return out
    own = state.absmax.repeat_interleave(state.blocksize)[: out.numel()].reshape(out.shape)
    other = state.absmax.roll(1).repeat_interleave(state.blocksize)[: out.numel()].reshape(out.shape)
    return (out.float() / own * other).to(out.dtype)


def product_scaled(original: Any, *args: Any, **options: Any) -> Any:
    return original(*args, **options) * (1 + 2.0**-5)


def eight_bit_step(change: Callable[[Any], None]) -> Plant:
    @contextmanager
    def plant() -> Iterator[None]:
        import bitsandbytes

        def make(original: Any) -> Any:
            @functools.wraps(original)
            def candidate(self: Any, *args: Any, **options: Any) -> Any:
                before = {each: each.detach().clone() for group in self.param_groups for each in group["params"]}
                out = original(self, *args, **options)
                for parameter, value in before.items():
                    change((self, parameter, value))
                return out

            return candidate

        with replaced(bitsandbytes.optim.AdamW8bit, "step", make):
            yield

    return plant


def half_a_step(found: Any) -> None:
    _, parameter, before = found
    parameter.data.copy_((parameter.data + before) / 2)


def last_block_left_out(found: Any) -> None:
    _, parameter, before = found
    parameter.data.view(-1)[-256:].copy_(before.view(-1)[-256:])


def state_shifted(found: Any) -> None:
    optimizer, parameter, _ = found
    state = optimizer.state[parameter]
    if state["state1"].element_size() == 1:
        state["state1"].copy_(state["state1"].roll(1))


def head_drawn_anew(original: Any, *args: Any, **options: Any) -> Any:
    import torch

    model = original(*args, **options)
    head = model.get_output_embeddings().weight
    with torch.no_grad():
        model.get_output_embeddings().weight = torch.nn.Parameter(torch.randn_like(head) * 0.02)
    return model


def tie_lost(original: Any, *args: Any, **options: Any) -> Any:
    import torch

    model = original(*args, **options)
    head = model.get_output_embeddings()
    head.weight = torch.nn.Parameter(head.weight.detach().clone())
    return model


def one_weight_rounded(original: Any, *args: Any, **options: Any) -> Any:
    import torch

    model = original(*args, **options)
    with torch.no_grad():
        weight = model.get_input_embeddings().weight
        weight.view(-1)[7] *= 1 + torch.finfo(weight.dtype).eps
    return model


def leaking(original: Any, model: Any, *args: Any, **options: Any) -> Any:
    """The model keeps the logits of all steps, as a metric that is summed up at the end does."""
    out = original(model, *args, **options)
    model.__dict__.setdefault("kept", []).append(out.logits)
    return out


def small_leak(original: Any, model: Any, *args: Any, **options: Any) -> Any:
    """16 KiB a step."""
    import torch

    model.__dict__.setdefault("kept", []).append(torch.zeros(4096))
    return original(model, *args, **options)


def sometimes(change: Callable[[Call], Any], every: int = 17) -> Callable[[], AbstractContextManager[None]]:
    """Only one call in so many is changed, as failing hardware does."""

    def plant() -> AbstractContextManager[None]:
        count = iter(range(1 << 30))

        def alter(call: Call) -> Any:
            return change(call) if next(count) % every == every - 1 else call.out

        return altered(("mm",), alter)()

    return plant


def lowest_bit(call: Call) -> Any:
    import torch

    out = call.out.clone()
    element = out.view(-1)[:1]
    whole = torch.int32 if out.dtype == torch.float32 else torch.int16
    element.copy_((element.view(whole) ^ 1).view(out.dtype))
    return out


LOAD, FORWARD = "PreTrainedModel.from_pretrained", "transformers.models.llama.modeling_llama"
CAUSAL = "LlamaForCausalLM.forward"
FAULTS = (
    Fault(
        "two codes of 4 bits exchanged", QUANTISED, method(FUNCTIONAL, "quantize_4bit", wrong_code), needs=BITSANDBYTES
    ),
    Fault(
        "every code one entry too high", QUANTISED, method(FUNCTIONAL, "quantize_4bit", next_entry), needs=BITSANDBYTES
    ),
    Fault(
        "blocks scaled by their neighbours",
        QUANTISED,
        method(FUNCTIONAL, "dequantize_4bit", next_block),
        needs=BITSANDBYTES,
    ),
    Fault(
        "product of a 4-bit layer 3 % too large",
        QUANTISED,
        method("bitsandbytes", "matmul_4bit", product_scaled),
        needs=BITSANDBYTES,
    ),
    Fault("half of each step taken", EIGHT_BIT, eight_bit_step(half_a_step), needs=BITSANDBYTES),
    Fault("last block never updated", EIGHT_BIT, eight_bit_step(last_block_left_out), needs=BITSANDBYTES),
    Fault("8-bit state shifted by one", EIGHT_BIT, eight_bit_step(state_shifted), needs=BITSANDBYTES),
    Fault("output layer drawn anew on loading", SAVED, method("transformers", LOAD, head_drawn_anew), needs=NEEDS),
    Fault("tie of the embeddings lost on loading", SAVED, method("transformers", LOAD, tie_lost), needs=NEEDS),
    Fault(
        "lowest bit of one weight lost on loading", SAVED, method("transformers", LOAD, one_weight_rounded), needs=NEEDS
    ),
    Fault("logits of every step kept", "memory_growth", method(FORWARD, CAUSAL, leaking), needs=NEEDS),
    Fault("16 KiB of every step kept", "memory_growth", method(FORWARD, CAUSAL, small_leak), needs=NEEDS),
    Fault("lowest bit of one product in 17 flipped", "bitwise_repeat", sometimes(lowest_bit), quick=True),
)
