"""Saving a model and loading it again.

The user's architecture in miniature, with random weights, is saved with `save_pretrained` (safetensors) and loaded
with `from_pretrained`, in its own dtype and in float32, with and without tied embeddings, in one file and in several.
If the training file has LoRA, the adapters are saved and loaded through peft in the same way, with the modules that
are saved as a whole. Loading a state dict into a fresh model is the control.

Bound: every parameter must be the same bit for bit, and tied weights must still share their memory. The same kernels
compute the logits from the same numbers, so the logits must equal the logits from before to 64 u in float32 and 16 u
in 16 bits at the worst token, with u the unit roundoff of the dtype; a loaded model may choose other kernels for the
same formula. Buffers are judged by the logits, in float32. A failure means that the checkpoint is not the model that
was trained: a random output layer, a lost tie, or changed buffers.

Request: seed, device, dtype, config, training (lora).
"""

from __future__ import annotations

import copy
import inspect
import os
import tempfile
from functools import partial
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Tuple

from compatcheck.probes._criterion import Measuring, Module, Request, Row, Stage, Tensor, Tensors
from compatcheck.probes._criterion import judge as judge
from compatcheck.probes._device import NO_DEVICE, device_of
from compatcheck.probes.training._batches import padded, sequences
from compatcheck.probes.training._logits import attempted, deviation, logits_of
from compatcheck.probes.training._model import Built, Unbuildable, build, instance
from compatcheck.probes.training._recipe import Recipe, apply, recipe_of

NEEDS: Dict[str, str] = {"torch": ">=1.13", "transformers": ">=4.31"}
TIMEOUT: float = 120.0
PROFILE = "quick"
SECONDS: float = 1.5
ASKED_BY: Tuple[str, ...] = ("training.lora",)

COUNT = 3
SHARDS = 3


class Journey(NamedTuple):
    """A model, what it computed before it was saved, and how to look at it again."""

    case: str
    dtype: str
    device: str
    attention: str
    model: Module
    batch: Tensors
    logits: Tensor


def measure(request: Request, stage: Stage) -> Measuring:
    """A row for the control and the journey of each kind of model."""
    device = device_of(request)
    if device is None:
        return {"unsupported": NO_DEVICE}
    stage("model")
    try:
        built = build(request)
    except Unbuildable as reason:
        return {"unsupported": str(reason)}
    recipe = recipe_of(request)._replace(quantization=None, checkpointing=False)
    chosen = sequences(built.vocabulary, built.special_ids, int(request["seed"]))[:COUNT]
    batch = padded(chosen, "right", built.pad_id)
    for kind in _kinds(built, bool(request.get("config"))):
        tied = bool(getattr(kind.config, "tie_word_embeddings", False))
        stage("tied embeddings" if tied else "untied embeddings")
        for dtype in _dtypes(recipe, device):
            yield from _whole_model(kind, recipe, dtype, device, batch, "tied" if tied else "untied")
    facts: Row = {"device": device, "model": built.facts}
    if recipe.lora is not None:
        stage("adapters")
        try:
            yield from _adapters(built, recipe, device, batch)
        except Unbuildable as reason:
            facts["adapters"] = str(reason)
    return facts


def _kinds(built: Built, given: bool) -> List[Built]:
    """The model as it is, and, where the user gave none, with its embeddings tied as well."""
    if given:
        return [built]
    config = copy.deepcopy(built.config)
    config.tie_word_embeddings = True
    return [built, built._replace(config=config)]


def _dtypes(recipe: Recipe, device: str) -> Tuple[str, ...]:
    """float32 and the user's dtype; float16 on a CPU is slow and shows nothing more."""
    own = recipe.dtype
    return ("float32",) if own == "float32" or (own == "float16" and device == "cpu") else ("float32", own)


def _whole_model(built: Built, recipe: Recipe, dtype: str, device: str, batch: Tensors, ties: str) -> Iterator[Row]:
    attention = recipe.attention if recipe.attention in built.attentions else built.attentions[-1]
    model = instance(built, dtype, attention).to(device).eval()
    journey = Journey(f"{ties} embeddings", dtype, device, attention, model, batch, logits_of(model, batch, device))

    def restored() -> Module:
        fresh = instance(built._replace(seed=built.seed + 1), dtype, attention)
        fresh.load_state_dict(copy.deepcopy(model.state_dict()))
        return fresh

    def reloaded(**options: Any) -> Module:
        with tempfile.TemporaryDirectory() as folder:
            model.save_pretrained(folder, safe_serialization=True, **options)
            return _loaded(built, folder, dtype, attention)

    size = sum(value.numel() * value.element_size() for value in model.parameters())
    yield _row(journey, "state dict into a fresh model", restored, control=True)
    yield _row(journey, "save_pretrained, from_pretrained", reloaded)
    yield _row(journey, "save_pretrained in several files", partial(reloaded, max_shard_size=size // SHARDS))


def _loaded(built: Built, folder: str, dtype: str, attention: str) -> Module:
    import torch

    files = sorted(os.listdir(folder))
    if not any(name.endswith(".safetensors") for name in files):
        raise ValueError("save_pretrained wrote no safetensors file: " + ", ".join(files))
    options: Dict[str, Any] = {"local_files_only": True}
    if len(built.attentions) > 1:  # releases before 4.36 have one implementation, and no option for it
        options["attn_implementation"] = attention
    config = type(built.config).from_pretrained(folder)
    if hasattr(config, "_experts_implementation"):
        config._experts_implementation = "eager"
    names = inspect.signature(built.model_class.from_pretrained).parameters
    options["dtype" if "dtype" in names else "torch_dtype"] = getattr(torch, dtype)
    before = torch.get_default_dtype()
    try:
        return built.model_class.from_pretrained(folder, config=config, **options)
    finally:
        torch.set_default_dtype(before)  # an old release that raises leaves its own


def _adapters(built: Built, recipe: Recipe, device: str, batch: Tensors) -> Iterator[Row]:
    """Adapters saved and loaded by peft onto a base of the same weights."""
    dtype = "float32" if recipe.dtype == "float16" and device == "cpu" else recipe.dtype
    attention = recipe.attention if recipe.attention in built.attentions else built.attentions[-1]
    model = apply(recipe, instance(built, dtype, attention), built.seed).to(device).eval()
    journey = Journey("adapters", dtype, device, attention, model, batch, logits_of(model, batch, device))

    def restored() -> Module:
        fresh = apply(recipe, instance(built, dtype, attention), built.seed + 1)
        fresh.load_state_dict(copy.deepcopy(model.state_dict()))
        return fresh

    def reloaded() -> Module:
        from peft import PeftModel

        with tempfile.TemporaryDirectory() as folder:
            model.save_pretrained(folder)
            cast = (recipe.lora or {}).get("autocast_adapter_dtype")
            options = {}
            if cast is not None and "autocast_adapter_dtype" in inspect.signature(PeftModel.from_pretrained).parameters:
                options["autocast_adapter_dtype"] = bool(cast)
            return PeftModel.from_pretrained(instance(built, dtype, attention), folder, **options)

    yield _row(journey, "state dict into a fresh model", restored, control=True)
    yield _row(journey, "peft save_pretrained, from_pretrained", reloaded)


def _row(journey: Journey, variant: str, made: Callable[[], Module], **notes: Any) -> Row:
    row = {"case": journey.case, "variant": variant, "dtype": journey.dtype, "tensor": "logits", **notes}

    def measured() -> Row:
        other = made().to(journey.device).eval()
        changed = _changed(journey.model, other)
        if changed:
            return {"theta": float("inf"), "rho": 0.0, "nonfinite": 0, "changed": changed[:8], "says": _says(changed)}
        found = logits_of(other, journey.batch, journey.device)
        before = [tokens.double() for tokens in journey.logits]
        row = {**deviation(list(found), before, before, journey.dtype), "rho": 0.0}
        if row["theta"] == 0:
            row["says"] = "all parameters and logits are the same after loading, bit for bit"
        return row

    return attempted(row, measured)


def _changed(model: Module, other: Tensor) -> List[str]:
    """Parameters that differ in any bit, are missing or new, and ties that came or went."""
    import torch

    before, after = dict(model.named_parameters()), dict(other.named_parameters())
    names = [name for name in before if name in after and not torch.equal(before[name], after[name])]
    names += [f"{name} (missing)" for name in before if name not in after]
    names += [f"{name} (new)" for name in after if name not in before]
    if _tied(model) != _tied(other):
        names.append("the tie of input and output embeddings")
    return names


def _tied(model: Module) -> bool:
    output = model.get_output_embeddings()
    weights: List[Any] = [getattr(each, "weight", None) for each in (output, model.get_input_embeddings())]
    return all(each is not None for each in weights) and weights[0].data_ptr() == weights[1].data_ptr()


def _says(changed: List[str]) -> str:
    return f"{len(changed)} parameters do not come back as they were saved (such as {changed[0]})"
