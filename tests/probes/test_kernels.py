"""Repeats, attention packages, Triton and torch.compile: right here or by stand-ins, convicted with a planted defect.

flash-attn, xformers and Triton need a GPU. What is tried of them here is the probes' own logic, on stand-ins that have
their interface and none of their kernels.
"""

from __future__ import annotations

import math
import sys
import types
from collections.abc import Callable
from typing import Any

import pytest

from compatcheck.environment import Target
from compatcheck.probes import run
from compatcheck.probes.operators import (
    bitwise_repeat,
    compiled_block,
    flash_attention,
    triton_kernel,
    xformers_attention,
)
from tests.probes.inside import measured
from tests.probes.samples import stand_ins

torch = pytest.importorskip("torch")

Patch = pytest.MonkeyPatch


@pytest.mark.parametrize("seed", range(3))
def test_operations_repeat_bit_by_bit_here(seed: int) -> None:
    found = measured(bitwise_repeat, seed=seed, repeats=10)
    outcome, why = bitwise_repeat.judge(found)
    assert outcome == "pass" and why.startswith("6 operations repeat bit by bit"), why


def test_one_flipped_bit_in_one_repeat_is_convicted(monkeypatch: Patch) -> None:
    normalise, calls = torch.nn.functional.layer_norm, iter(range(1000))

    def flipped(*args: Any) -> Any:
        y = normalise(*args)
        if next(calls) == 7 and y.dtype == torch.float32:
            y.view(torch.int32)[3, 5] ^= 1
        return y

    monkeypatch.setattr(torch.nn.functional, "layer_norm", flipped)
    outcome, why = bitwise_repeat.judge(measured(bitwise_repeat, repeats=10))
    assert outcome == "fail" and "layer normalisation in float32 gives a different result in 1 of 10 repeats" in why, (
        why
    )


def test_nothing_that_repeats_is_no_proof_against_software() -> None:
    rows = [
        {"case": "2 repeats", "variant": name, "dtype": "float32", "different": 1, "elements": 1, "largest": 1e-7}
        for name in ("product", "attention")
    ]
    outcome, why = bitwise_repeat.judge({"rows": rows})
    assert outcome == "watch" and "hardware is suspect" in why


def test_a_corrupt_element_of_a_large_product_is_convicted(monkeypatch: Patch) -> None:
    multiply = torch.Tensor.__matmul__

    def corrupt(a: Any, b: Any) -> Any:
        product = multiply(a, b)
        if product.shape == (1024, 1024) and product.dtype == torch.float32:
            product.view(torch.int32)[100, 200] ^= 1 << 28
        return product

    monkeypatch.setattr(torch.Tensor, "__matmul__", corrupt)
    outcome, why = bitwise_repeat.judge(measured(bitwise_repeat, repeats=2))
    assert outcome == "fail" and "column sums" in why and "passing there: float64" in why, why


def healthy(q: Any, k: Any, v: Any, allowed: Any) -> Any:
    return stand_ins.attend(q, k, v, allowed)


def last_key_dropped(q: Any, k: Any, v: Any, allowed: Any) -> Any:
    return stand_ins.attend(q, k, v, allowed & (torch.arange(k.shape[1]) < max(k.shape[1] - 1, 1)))


def wrong_scale(q: Any, k: Any, v: Any, allowed: Any) -> Any:
    return stand_ins.attend(q * 1.25, k, v, allowed)


def nan_in_a_gradient(q: Any, k: Any, v: Any, allowed: Any) -> Any:
    if q.shape[-1] == 256 and q.requires_grad:
        q.register_hook(lambda gradient: gradient.index_fill(1, torch.tensor([5]), math.nan))
    return stand_ins.attend(q, k, v, allowed)


def beyond_int16(q: Any, k: Any, v: Any, allowed: Any) -> Any:
    return stand_ins.attend(q, k, v, allowed & (torch.arange(k.shape[1]) < 32768))


FAULTS = [last_key_dropped, wrong_scale, nan_in_a_gradient, beyond_int16]


QUICK = ["dense, head_dim 64", "grouped heads", "sequences in one row"]
UNUSED = "sequences in one row and rows beyond them"
CAUSAL = ["causal, fewer queries than keys", "causal, more queries than keys"]
CAUGHT_BY = {nan_in_a_gradient: ["causal, head_dim 256"], beyond_int16: ["33728 keys"]}


def judged(probe: Any, monkeypatch: Patch, modules: dict[str, types.ModuleType], **request: Any) -> tuple[str, str]:
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    return probe.judge(measured(probe, **request))  # type: ignore[no-any-return]


@pytest.mark.parametrize("attend", [healthy, *FAULTS])
def test_flash_attention_by_a_stand_in(monkeypatch: Patch, attend: stand_ins.Attend) -> None:
    outcome, why = judged(
        flash_attention,
        monkeypatch,
        {"flash_attn": stand_ins.flash_attn(attend=attend)},
        cases=CAUGHT_BY.get(attend, QUICK),
    )
    assert outcome == ("pass" if attend is healthy else "fail"), why
    assert outcome == "pass" or "passing there: plain attention" in why


@pytest.mark.parametrize("attend", [healthy, *FAULTS])
def test_xformers_by_a_stand_in(monkeypatch: Patch, attend: stand_ins.Attend) -> None:
    outcome, why = judged(
        xformers_attention, monkeypatch, stand_ins.xformers(attend=attend), cases=CAUGHT_BY.get(attend, QUICK)
    )
    assert outcome == ("pass" if attend is healthy else "fail"), why


@pytest.mark.parametrize(
    ("version", "lower_right", "outcome"),
    [("2.0.9", False, "pass"), ("2.0.9", True, "fail"), ("2.1.0", True, "pass"), ("2.1.0", False, "fail")],
)
def test_causal_alignment_is_that_of_the_version(
    monkeypatch: Patch, version: str, lower_right: bool, outcome: str
) -> None:
    modules = {"flash_attn": stand_ins.flash_attn(version, lower_right=lower_right)}
    found, why = judged(flash_attention, monkeypatch, modules, cases=CAUSAL)
    assert found == outcome, why
    assert found == "pass" or "queries than keys" in why


@pytest.mark.parametrize(("asked", "outcome"), [(True, "fail"), (False, "pass")])
def test_gradients_of_unused_rows_are_judged_where_they_are_asked_for(
    monkeypatch: Patch, asked: bool, outcome: str
) -> None:
    package = stand_ins.flash_attn()
    varlen = package.flash_attn_varlen_func

    def unwritten(q: Any, k: Any, v: Any, starts: Any, *rest: Any, **options: Any) -> Any:
        q.register_hook(lambda gradient: gradient.index_fill(0, torch.arange(int(starts[-1]), len(q)), math.nan))
        return varlen(q, k, v, starts, *rest, **options)

    monkeypatch.setattr(package, "flash_attn_varlen_func", unwritten)
    found, why = judged(flash_attention, monkeypatch, {"flash_attn": package}, rows_beyond=asked, cases=[UNUSED])
    assert found == outcome and (not asked or "gradients of rows beyond the last sequence" in why), why


def test_kernels_that_need_a_gpu_are_skipped_with_their_own_reason(monkeypatch: Patch) -> None:
    def refuses(*args: Any, **options: Any) -> Any:
        raise RuntimeError("FlashAttention only supports Ampere GPUs or newer.")

    outcome, why = judged(
        flash_attention, monkeypatch, {"flash_attn": stand_ins.flash_attn(attend=refuses)}, cases=QUICK
    )
    assert (outcome, "only supports Ampere" in why) == ("skip", True), why
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    outcome, why = judged(triton_kernel, monkeypatch, {"triton": types.ModuleType("triton")})
    assert (outcome, why) == ("skip", "Triton compiles for GPUs, but none is usable from this interpreter")


class PTXASError(Exception):
    """Triton's own error, which is no RuntimeError."""


def triton(run: Callable[..., None]) -> dict[str, types.ModuleType]:
    """A Triton whose kernels are Python functions of whole tensors, and the module of kernels that uses it."""
    module = types.ModuleType("triton")
    vars(module).update(__version__="3.5.1", PTXASError=PTXASError, runtime=None, compiler=None)

    class Kernel:
        def __init__(self, name: str) -> None:
            self.name = name

        def __getitem__(self, grid: tuple[int, ...]) -> Callable[..., None]:
            return lambda *args, **options: run(self.name, *args)

    kernels = types.ModuleType("compatcheck.probes.operators._triton_kernels")
    vars(kernels).update(normalise=Kernel("normalise"), multiply=Kernel("multiply"))
    return {"triton": module, "compatcheck.probes.operators._triton_kernels": kernels}


def computes(name: str, a: Any, b: Any, out: Any, *rest: Any) -> None:
    if name == "multiply":
        out.copy_(a.float() @ b.float())
    else:
        out.copy_(a.float() * (a.float().square().mean(-1, keepdim=True) + 1e-6).rsqrt() * b.float())


def ptxas_too_old(name: str, *args: Any) -> None:
    raise PTXASError("PTXAS error: Internal Triton PTX codegen error\nptxas fatal   : Value 'sm_121a' is not defined")


def masked_wrongly(name: str, a: Any, b: Any, out: Any, *rest: Any) -> None:
    computes(name, a, b, out)
    out[..., -1] = 0


@pytest.mark.parametrize(
    ("run", "outcome", "words"),
    [(computes, "pass", ""), (ptxas_too_old, "fail", "sm_121a"), (masked_wrongly, "fail", "a Triton kernel")],
)
def test_triton_by_a_stand_in(monkeypatch: Patch, run: Callable[..., None], outcome: str, words: str) -> None:
    import compatcheck.probes.operators

    modules = triton(run)
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    kernels = modules["compatcheck.probes.operators._triton_kernels"]
    monkeypatch.setattr(compatcheck.probes.operators, "_triton_kernels", kernels, raising=False)
    found, why = judged(triton_kernel, monkeypatch, modules)
    assert found == outcome and words in why, why


def lost_gradient(function: Callable[..., Any], **_: Any) -> Callable[..., Any]:
    """A compiler that forgets one use of a shared table."""

    def compiled(**arguments: Any) -> Any:
        if "table" in arguments:
            table = arguments["table"]
            arguments["table"] = torch.cat((table[:2], table[2:].detach()))
        return function(**arguments)

    return compiled


def refuses(function: Callable[..., Any], **_: Any) -> Callable[..., Any]:
    def compiled(**arguments: Any) -> Any:
        raise RuntimeError("backend='inductor' raised: CppCompileError")

    return compiled


@pytest.mark.parametrize(
    ("compiler", "outcome", "words"),
    [
        (lambda function, **_: function, "pass", ""),
        (lost_gradient, "fail", "dtable"),
        (refuses, "fail", "CppCompileError"),
    ],
)
def test_what_a_compiler_does_is_judged(monkeypatch: Patch, compiler: Any, outcome: str, words: str) -> None:
    """torch.compile itself takes a minute: here in its place something that is quick and has, or has not, a fault."""
    monkeypatch.setattr(compiled_block, "_lacking", lambda device: "")
    monkeypatch.setattr(torch, "compile", compiler)
    found, why = compiled_block.judge(measured(compiled_block, dtype="bfloat16"))
    assert found == outcome and words in why, why


def test_compiling_without_a_compiler_is_skipped(monkeypatch: Patch) -> None:
    monkeypatch.setattr(compiled_block.shutil, "which", lambda name: None)
    outcome, why = compiled_block.judge(measured(compiled_block))
    assert (outcome, why) == ("skip", "torch.compile needs a C++ compiler, but none is on the path")


@pytest.mark.slow
def test_a_compiled_block_is_right_here(stack: Target) -> None:
    result = run("compiled_block", stack, {"device": "cpu"})
    assert result.outcome == "pass" or (result.outcome == "skip" and "compiler" in result.why), result.why
