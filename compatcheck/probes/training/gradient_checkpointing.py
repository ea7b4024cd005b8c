"""Gradient checkpointing: whether it takes effect, and whether it keeps all gradients.

The user's architecture in miniature, with random weights, does one backward pass without checkpointing and one with
checkpointing, re-entrant and not, after `gradient_checkpointing_enable`. It uses autocast if the user trains with
autocast. It also runs on rows that are padded on the left, where tokens depend on the mask, and with dropout from
equal seeds if the architecture has dropout. So a block that is recomputed under other conditions gives a difference.
The same layers, wrapped by hand in `torch.utils.checkpoint`, are the control. `saved_tensors_hooks` counts what
autograd keeps: distinct storages that are not parameters, so the numbers are the same on every device.

Bounds: the kept bytes must fall to a third. If the logits and embeddings of a small model are larger than that, they
must fall to 1.1 times what the layers wrapped by hand keep. The probe fails if they fall only half as far, or if less
than 0.6 of the savings of wrapping by hand is reached. On 21 healthy families the kept bytes fell by a factor of 3.5
to 43.
The gradients must equal the gradients without checkpointing to 64 u in float32 and 16 u in 16 bits, where u is the
unit roundoff of the dtype. These are the same operations twice, equal bit for bit on a CPU. No parameter may lose its
gradient.

A failure on bytes means that the model's code accepts the switch and ignores it, so that the memory is the same as
without checkpointing. Remote code that overrides gradient_checkpointing_enable does this, such as ChatGLM3's and
glm-4-9b's of 2024.
A failure on gradients under frozen embeddings means that the inputs of the first re-entrant block need no gradient, so
that all later layers get none. `enable_input_require_grads()` is meant to prevent this. Without this call, torch gives
no gradient by design: this is recorded, and judged on request.

Request: seed, device, dtype, config, training (lora: with these adapters), input_require_grads (false: judge frozen
embeddings without that call).
"""

from __future__ import annotations

import copy
import inspect
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

from compatcheck.probes._criterion import UNIT_ROUNDOFF, Measuring, Module, Request, Row, Stage, Tensor, Tensors
from compatcheck.probes._criterion import judge as judge
from compatcheck.probes._device import NO_DEVICE, device_of
from compatcheck.probes.training._batches import on, padded, sequences
from compatcheck.probes.training._logits import ROUNDINGS, attempted
from compatcheck.probes.training._model import Built, Unbuildable, build, instance
from compatcheck.probes.training._recipe import Recipe, apply, computing, recipe_of

NEEDS: Dict[str, str] = {"torch": ">=1.13", "transformers": ">=4.31"}
TIMEOUT: float = 120.0
PROFILE = "quick"
SECONDS: float = 2.0
ASKED_BY: Tuple[str, ...] = ("training.gradient_checkpointing",)

COUNT = 4
LEAST_FALL, ABOVE_LEAST, UNSAVED = 3.0, 1.1, 0.1
DROPOUT = 0.5
DROPOUTS = ("attention_dropout", "attn_pdrop", "resid_pdrop", "hidden_dropout")
NO_HOOKS = "yet support saved tensor hooks"
"""What torch before 2.5 says of `vmap`, with which transformers 4.53 to 4.57 make the masks of padded batches."""
NOT_REQUESTED = "without enable_input_require_grads() torch gives no gradient here, by design"


class Backward(NamedTuple):
    """``kept``: bytes held for the backward pass; ``gradients`` in float64 by parameter, None where there is none."""

    kept: int
    gradients: Tensors


class Setting(NamedTuple):
    """How one model is made and run; ``reentrant`` None: without checkpointing."""

    built: Built
    recipe: Recipe
    dtype: str
    device: str
    batch: Tensors
    reentrant: Optional[bool] = None
    frozen: bool = False
    inputs_require_grads: bool = True
    by_hand: bool = False


def measure(request: Request, stage: Stage) -> Measuring:
    """Two rows (bytes kept, gradients) for each variant, with all parameters trained and with frozen embeddings."""
    device = device_of(request)
    if device is None:
        return {"unsupported": NO_DEVICE}
    stage("model")
    try:
        built = _with_dropout(build(request))
    except Unbuildable as reason:
        return {"unsupported": str(reason)}
    recipe = recipe_of(request)._replace(quantization=None, checkpointing=False)
    chosen = sequences(built.vocabulary, built.special_ids, int(request["seed"]))[:COUNT]
    batch = on(padded(chosen, "left", built.pad_id), device)
    facts = []
    for frozen in (False, True):
        name = "frozen embeddings" if frozen else "all trained"
        if recipe.lora is not None and not frozen:
            continue
        setting = Setting(built, recipe, _dtype(recipe, device), device, batch, frozen=frozen)
        stage(f"{name}, without")
        try:
            setting, plain = _without_checkpointing(setting, on(padded(chosen[:1], "left", built.pad_id), device))
        except Unbuildable as reason:
            return {"unsupported": str(reason)}
        least = 0
        for variant, changed, notes in _variants(setting, request.get("input_require_grads") is False):
            stage(f"{name}, {variant}")
            kept, gradients = _rows(f"{name}, {setting.dtype}", variant, changed, plain, least)
            least = least or kept.get("kept", 0)
            yield {**kept, **notes}
            yield {**gradients, **notes}
            facts.append({"case": name, "variant": variant, "kept_without": plain.kept, "kept_with": kept.get("kept")})
    return {"device": device, "model": built.facts, "kept": facts}


def _without_checkpointing(setting: Setting, unpadded: Tensors) -> Tuple[Setting, Backward]:
    """The reference, of the unpadded batch where the mask of a padded one cannot be made under the counting hooks."""
    try:
        return setting, _backward(setting)
    except RuntimeError as error:
        if NO_HOOKS not in str(error):
            raise
        setting = setting._replace(batch=unpadded)
        return setting, _backward(setting)


def _with_dropout(built: Built) -> Built:
    """With a rate of dropout for each that the configuration names."""
    config = copy.deepcopy(built.config)
    for name in DROPOUTS:
        if isinstance(getattr(config, name, None), (int, float)):
            setattr(config, name, DROPOUT)
    return built._replace(config=config)


def _dtype(recipe: Recipe, device: str) -> str:
    """The user's dtype, but float32 for float16 on a CPU, which is slow there."""
    return "float32" if recipe.dtype == "float16" and device == "cpu" else recipe.dtype


def _variants(setting: Setting, judge_missing: bool) -> List[Tuple[str, Setting, Row]]:
    """Name, setting and marks: by hand as the control, the two kinds, and re-entrant without input gradients."""
    kinds: List[Tuple[str, Setting, Row]] = [
        ("layers wrapped by hand", setting._replace(reentrant=False, by_hand=True), {"control": True}),
        ("use_reentrant=False", setting._replace(reentrant=False), {}),
        ("use_reentrant=True", setting._replace(reentrant=True), {}),
    ]
    if setting.frozen:
        marks = {} if judge_missing else {"recorded": NOT_REQUESTED}
        missing = setting._replace(reentrant=True, inputs_require_grads=False)
        kinds.append(("use_reentrant=True, inputs without gradient", missing, marks))
    return kinds


def _rows(case: str, variant: str, setting: Setting, plain: Backward, least: int) -> Tuple[Row, Row]:
    """The row of the bytes kept and that of the gradients; what was raised stands in both.

    ``least``: the bytes kept by layers wrapped by hand, 0 where these are measured now.
    """
    row = {"case": f"bytes kept, {case}", "variant": variant, "dtype": setting.dtype, "tensor": "bytes kept"}
    found: List[Backward] = []

    def measured() -> Row:
        found.append(_backward(setting))
        return _fallen(found[0].kept, plain.kept, least or found[0].kept)

    kept = attempted(row, measured)
    second = {**row, "case": f"gradients, {case}", "tensor": "gradients"}
    if not found:
        return kept, {**second, "error": kept["error"]}
    return kept, {**second, **_compared(found[0], plain, setting.dtype)}


def _fallen(kept: int, before: int, least: int) -> Row:
    """theta is 1 at a 3-fold fall, or near what wrapping by hand reaches; 4 at half of it, or 0.6 of its saving."""
    theta = (kept / max(before / LEAST_FALL, ABOVE_LEAST * least)) ** 2
    unsaved = (kept - least) / max(before - least, 1)
    return {
        "theta": max(theta, unsaved / UNSAVED) if theta > 1 else theta,
        "rho": 0.0,
        "nonfinite": 0,
        "kept": kept,
        "says": f"with checkpointing, {kept / 2**20:.2f} MiB of {before / 2**20:.2f} MiB are still kept "
        "for the backward pass",
    }


def _compared(with_it: Backward, without: Backward, dtype: str) -> Row:
    import torch

    lost = [name for name, value in without.gradients.items() if value is not None and with_it.gradients[name] is None]
    if lost:
        says = f"{len(lost)} of {len(without.gradients)} parameters lose their gradient (such as {lost[0]})"
        return {"theta": float("inf"), "rho": 0.0, "nonfinite": 0, "lost": len(lost), "says": says}
    names = [name for name, value in without.gradients.items() if value is not None]
    value = torch.cat([with_it.gradients[name].flatten() for name in names])
    truth = torch.cat([without.gradients[name].flatten() for name in names])
    nonfinite = int((~torch.isfinite(value)).sum())
    share = float((value - truth).norm() / truth.norm())
    theta = float("inf") if nonfinite else share / (ROUNDINGS[dtype] * UNIT_ROUNDOFF[dtype])
    return {"theta": theta, "rho": 0.0, "nonfinite": nonfinite, "error_share": share}


def _backward(setting: Setting) -> Backward:
    """One forward and backward pass of a fresh model."""
    import torch

    weights = setting.recipe.weights if setting.recipe.autocast else setting.dtype
    model = instance(setting.built, weights, _attention(setting)).to(setting.device)
    if setting.reentrant is not None:
        _switch_on(model, setting)
    if setting.recipe.lora is not None and setting.frozen:
        model = apply(setting.recipe, model, setting.built.seed)
    if setting.frozen:
        model.get_input_embeddings().weight.requires_grad_(False)
    if setting.frozen and setting.inputs_require_grads:
        model.enable_input_require_grads()
    model.train()
    torch.manual_seed(setting.built.seed)
    with _Counted(model) as counted, computing(setting.recipe, setting.device):
        loss = model(**setting.batch).loss
    if loss.requires_grad:
        loss.backward()
    trained = [(name, value.grad) for name, value in model.named_parameters() if value.requires_grad]
    return Backward(
        counted.size, {name: None if grad is None else grad.detach().double().cpu() for name, grad in trained}
    )


def _attention(setting: Setting) -> Optional[str]:
    asked = setting.recipe.attention
    return asked if asked in setting.built.attentions else None


def _switch_on(model: Module, setting: Setting) -> None:
    """As the Trainer does, or each layer of the longest list of layers by hand."""
    if setting.by_hand:
        _wrap_layers(model)
    elif "gradient_checkpointing_kwargs" in inspect.signature(model.gradient_checkpointing_enable).parameters:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": setting.reentrant})
    else:
        model.gradient_checkpointing_enable()


def _wrap_layers(model: Module) -> None:
    import torch
    from torch.utils.checkpoint import checkpoint

    def wrapped(forward: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *args, **kwargs: checkpoint(forward, *args, use_reentrant=False, **kwargs)

    lists = [module for module in model.modules() if isinstance(module, torch.nn.ModuleList)]
    for layer in max(lists, key=lambda layers: sum(value.numel() for value in layers.parameters())):
        layer.forward = wrapped(layer.forward)


class _Counted:
    """Counts the bytes of distinct storages that autograd keeps inside it, but those of parameters and buffers."""

    def __init__(self, model: Module) -> None:
        self.own = {value.data_ptr() for value in (*model.parameters(), *model.buffers())}
        self.seen: Dict[int, Any] = {}
        self.size = 0

    def __enter__(self) -> _Counted:
        import torch

        self.hooks = torch.autograd.graph.saved_tensors_hooks(self._pack, lambda value: value)
        self.hooks.__enter__()
        return self

    def __exit__(self, *raised: Any) -> None:
        self.hooks.__exit__(*raised)
        self.seen.clear()

    def _pack(self, value: Tensor) -> Tensor:
        storage = value.untyped_storage() if hasattr(value, "untyped_storage") else value.storage()
        place = storage.data_ptr()
        if place not in self.own and place not in self.seen:
            self.seen[place] = storage
            self.size += storage.nbytes()
        return value
