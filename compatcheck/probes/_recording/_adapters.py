"""LoRA through peft: what it adapts and in which dtype, how adapters begin, what they compute, merged and saved."""

from __future__ import annotations

import copy
import inspect
import tempfile
from functools import partial
from typing import Any, Dict, Iterator, Tuple

from compatcheck.probes._criterion import Module, Request, Row
from compatcheck.probes._recording._case import Case
from compatcheck.probes._recording._models import Subject, make, padded, sequences
from compatcheck.probes._recording._record import Record, copies
from compatcheck.probes._recording._sketch import drawn
from compatcheck.probes._recording._weights import common_name

_KINDS: Tuple[Tuple[str, Dict[str, Any]], ...] = (
    ("LoRA", {}),
    ("LoRA, rank-stabilised", {"use_rslora": True}),
    ("DoRA", {"use_dora": True}),
    ("LoRA with modules_to_save", {"modules_to_save": ["lm_head"]}),
)
_ADAPTER_SCALE = 0.3
_TAKEN = ("r", "lora_alpha", "bias", "use_dora", "use_rslora")


def cases(subject: Subject, request: Request) -> Iterator[Case]:
    """LoRA on one model, in float32 and over a model in 16 bits."""
    packages = ("transformers", "peft")
    stated = (request.get("training") or {}).get("lora")
    if stated:
        own = {key: stated[key] for key in _TAKEN if stated.get(key) is not None}
        own["r"] = min(int(own.get("r") or 8), 16)
        yield Case(f"{subject.name}, LoRA with your settings", "float32", packages, partial(_train, subject, own))
    for label, options in _KINDS:
        yield Case(f"{subject.name}, {label}", "float32", packages, partial(_train, subject, options))
    for dtype in ("float16", "bfloat16"):
        run = partial(_wrap, subject, dtype)
        yield Case(f"{subject.name}, LoRA over a {dtype} model", dtype, packages, run)
    yield Case(f"{subject.name}, LoRA saved and loaded", "float32", packages, partial(_reload, subject))


def adapted(model: Module, subject: Subject, options: Row) -> Module:
    """The model with LoRA on the query and value projections; adapters as peft begins them."""
    import peft

    known = inspect.signature(peft.LoraConfig.__init__).parameters
    names = {name.rpartition(".")[2] for name, _ in model.named_modules()}
    targets = [name for name in ("q_proj", "v_proj", "c_attn", "query_key_value", "qkv_proj") if name in names]
    asked = {"r": 8, "lora_alpha": 16, "lora_dropout": 0.0, "target_modules": targets, **options}
    own = {key: value for key, value in asked.items() if key in known}
    return peft.get_peft_model(model, peft.LoraConfig(task_type="CAUSAL_LM", **own))


def fill_adapters(model: Module) -> None:
    """Give the matrices of adapters values that depend on their names alone."""
    import torch

    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if ".lora_" in name and parameter.dim() > 1:
                value = drawn(list(parameter.shape), common_name(name), 3) * (
                    _ADAPTER_SCALE / parameter.shape[-1] ** 0.5
                )
                parameter.copy_(value.to(parameter.dtype))


def _note_beginning(record: Record, model: Module) -> None:
    """How adapters begin: which are zero, and the spread of the others to one part in four."""
    import math

    record.trainables(model)
    for name, parameter in model.named_parameters():
        if ".lora_" in name and parameter.requires_grad:
            size = float(parameter.detach().double().norm()) / max(parameter.numel(), 1) ** 0.5
            words = (
                "zero"
                if size == 0
                else f"2 to the power of {round(math.log2(size))}"
                if math.isfinite(size)
                else "not finite"
            )
            record.text("size of the initial adapters", words, common_name(name))


def _batch(subject: Subject) -> Row:
    return padded(sequences(subject.vocabulary), "right")


def _train(subject: Subject, options: Row, record: Record, shift: float) -> None:
    """How adapters begin, then loss, gradients and one step of AdamW, then the logits once they are merged."""
    import torch

    model = adapted(make(subject, shift=shift), subject, options)
    _note_beginning(record, model)
    fill_adapters(model)
    model.train()
    batch = _batch(subject)
    loss = model(**batch).loss
    record.number("loss", float(loss.detach()))
    loss.backward()
    record.step = 1
    record.gradients(model)
    before = copies(model)
    torch.optim.AdamW([each for each in model.parameters() if each.requires_grad], lr=1e-3).step()
    record.updates(before, model)
    merged = model.merge_and_unload().eval()
    labels = batch.pop("labels")
    with torch.no_grad():
        logits = merged(**batch).logits
    record.tensor("logits", "", logits.masked_fill((labels == -100).unsqueeze(-1), 0.0))


def _wrap(subject: Subject, dtype: str, record: Record, shift: float) -> None:
    """What is trained, and in which dtype, over a base that is held in 16 bits."""
    record.trainables(adapted(make(subject, dtype=dtype, shift=shift), subject, {}))


def _reload(subject: Subject, record: Record, shift: float) -> None:
    """The logits of adapters that were saved and loaded upon the same base."""
    import peft
    import torch

    base = make(subject, shift=shift)
    model = adapted(copy.deepcopy(base), subject, {"modules_to_save": ["lm_head"]})
    fill_adapters(model)
    batch = _batch(subject)
    labels = batch.pop("labels")
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        loaded = peft.PeftModel.from_pretrained(base, folder).eval()
    with torch.no_grad():
        logits = loaded(**batch).logits
    record.tensor("logits", "", logits.masked_fill((labels == -100).unsqueeze(-1), 0.0))
