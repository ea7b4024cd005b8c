"""Adapters that are kept in half precision.

A LoRA adapter on an embedding or an output layer takes the dtype of the layer under it, unless peft casts the adapter
to float32. peft does this by default from 0.12.0 (huggingface/peft#1706), but not before and not with
`autocast_adapter_dtype=False`. A float16 adapter does not survive training: the gradient of a zero embedding row (a
token added with zeros) exceeds 65504, and AdamW's epsilon of 1e-8 is 0 in float16, so one step on a zero gradient
gives 0/0.

The probe builds a tiny random Llama in the user's dtype, puts LoRA on q_proj, embed_tokens and lm_head with the
installed peft, lists the dtypes of the trainable parameters, and takes one plain AdamW step. A failure means that
parameters are float16, or that one step left non-finite values in them. bfloat16 parameters give a watch: they stay
finite, but steps below 2^-8 of a weight are lost. There is no bound, because both answers are yes or no. A recipe that
keeps float32 master weights itself (DeepSpeed's fp16 optimizer) works with float16 parameters.

Facts that are not judged, because they come from torch's arithmetic and not from peft: AdamW on a parameter with zero
gradient, and the gradient of 8 zero rows behind RMSNorm (eps 1e-6, width 3072, scale sqrt(3072) as in Gemma, upstream
deviation 2), each in float16, bfloat16 and float32.

Request: seed, device, dtype (of the base weights: float16, bfloat16 or float32; default float16),
autocast_adapter_dtype (passed on if peft accepts it).
"""

from __future__ import annotations

import inspect
import math
from typing import TYPE_CHECKING, Dict, Tuple

from compatcheck.probes._criterion import Measured, Module, Request, Row, Stage, Tensor
from compatcheck.probes._device import NO_DEVICE, device_of

if TYPE_CHECKING:
    from compatcheck.results.findings import Outcome

NEEDS: Dict[str, str] = {"torch": ">=1.13", "transformers": ">=4.31", "peft": ">=0.5"}
TIMEOUT: float = 120.0
PROFILE: str = "deep"
SECONDS: float = 3.0
ASKED_BY: Tuple[str, ...] = ("training.lora",)

DTYPES = ("float16", "bfloat16", "float32")
TARGETS = ("q_proj", "embed_tokens", "lm_head")
LOW: Tuple[Tuple[str, Outcome], ...] = (("float16", "fail"), ("bfloat16", "watch"))
GEMMA_WIDTH, ZERO_ROWS, RMS_EPSILON, UPSTREAM_DEVIATION = 3072, 8, 1e-6, 2.0


def measure(request: Request, stage: Stage) -> Row:
    """Trainable parameters by dtype, those that one step breaks, and the facts."""
    device = device_of(request)
    if device is None:
        return {"unsupported": NO_DEVICE}
    dtype = str(request.get("dtype") or "float16")
    if dtype not in DTYPES:
        return {"unsupported": f"no adapters to test for base weights in {dtype}"}
    stage(f"adapters on a {dtype} model")
    model = _adapted(request, dtype, device)
    measured: Row = {"dtype": dtype, "device": device, "trainable": _trainables_by_dtype(model)}
    stage("one step")
    measured["step"] = _step(model, device, int(request["seed"]))
    stage("facts")
    measured["facts"] = {
        "adamw_zero_gradient": {name: _adamw_on_zero_gradient(name, device) for name in DTYPES},
        "zero_row_gradient": {name: _zero_row_gradient(name, int(request["seed"]), device) for name in DTYPES},
    }
    return measured


def judge(measured: Measured) -> tuple[Outcome, str]:
    """float16 or broken adapters fail, bfloat16 ones are watched."""
    if "unsupported" in measured:
        return "skip", str(measured["unsupported"])
    trainable, step = measured["trainable"], measured["step"]
    total = sum(entry["count"] for entry in trainable.values())
    broken = step.get("nonfinite_after", ())
    after = step.get("not_run") or f"after one AdamW step, {len(broken)} of {total} are not finite"
    for dtype, at_least in LOW:
        if dtype in trainable:
            seen = f"{trainable[dtype]['count']} of {total} trainable tensors are {dtype}"
            return ("fail" if broken else at_least), f"{seen} (such as {trainable[dtype]['example']}); {after}"
    if broken:
        return "fail", f"{after} (such as {broken[0]})"
    kinds = ", ".join(sorted(trainable))
    outcome: Outcome = "watch" if "not_run" in step else "pass"
    return outcome, f"all {total} trainable tensors are {kinds} on a {measured['dtype']} model; {after}"


def _adapted(request: Request, dtype: str, device: str) -> Module:
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(int(request["seed"]))
    config = LlamaConfig(
        vocab_size=32,
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=2,
        max_position_embeddings=64,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
    )
    model = LlamaForCausalLM(config).to(device=device, dtype=getattr(torch, dtype))
    options = {}
    if "autocast_adapter_dtype" in inspect.signature(get_peft_model).parameters:
        autocast = request.get("autocast_adapter_dtype")
        options["autocast_adapter_dtype"] = True if autocast is None else bool(autocast)
    lora = LoraConfig(r=4, lora_alpha=8, target_modules=list(TARGETS), task_type="CAUSAL_LM")
    return get_peft_model(model, lora, **options)


def _trainable(model: Module) -> Row:
    return {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}


def _trainables_by_dtype(model: Module) -> Dict[str, Row]:
    found: Dict[str, Row] = {}
    for name, parameter in _trainable(model).items():
        entry = found.setdefault(str(parameter.dtype).replace("torch.", ""), {"count": 0, "example": name})
        entry["count"] += 1
    return found


def _step(model: Module, device: str, seed: int) -> Row:
    """One forward, backward and AdamW step; ``not_run`` where this torch cannot compute in the dtype."""
    import torch

    trainable = _trainable(model)
    generator = torch.Generator().manual_seed(seed)
    tokens = torch.randint(3, 32, (2, 12), generator=generator).to(device)
    try:
        loss = model(input_ids=tokens, attention_mask=torch.ones_like(tokens), labels=tokens).loss
        loss.backward()
    except RuntimeError as error:
        if "not implemented for" not in str(error):
            raise
        return {"not_run": "no step was taken: " + str(error).split("\n")[0]}
    gradients = [name for name, value in trainable.items() if value.grad is not None and _broken(value.grad)]
    torch.optim.AdamW(trainable.values(), lr=1e-4).step()
    after = [name for name, value in trainable.items() if _broken(value)]
    return {"loss": float(loss.detach()), "nonfinite_gradients": gradients, "nonfinite_after": after}


def _broken(value: Tensor) -> bool:
    return not bool(value.detach().isfinite().all())


def _adamw_on_zero_gradient(dtype: str, device: str) -> float:
    """A parameter of 1 after one AdamW step without gradient and decay."""
    import torch

    parameter = torch.nn.Parameter(torch.ones(1, dtype=getattr(torch, dtype), device=device))
    parameter.grad = torch.zeros_like(parameter)
    torch.optim.AdamW([parameter], lr=1e-4, weight_decay=0.0).step()
    return float(parameter.detach())


def _zero_row_gradient(dtype: str, seed: int, device: str) -> float:
    """Largest gradient of a zero embedding row in front of RMSNorm with float32 statistics."""
    import torch

    table = torch.zeros(ZERO_ROWS, GEMMA_WIDTH, dtype=getattr(torch, dtype), device=device).requires_grad_()
    hidden = (table * math.sqrt(GEMMA_WIDTH)).float()
    normed = (hidden * torch.rsqrt(hidden.pow(2).mean(-1, keepdim=True) + RMS_EPSILON)).to(table.dtype)
    upstream = torch.randn(normed.shape, generator=torch.Generator().manual_seed(seed)) * UPSTREAM_DEVIATION
    normed.backward(upstream.to(device, table.dtype))
    return float("nan") if table.grad is None else float(table.grad.abs().max())
