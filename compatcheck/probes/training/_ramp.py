"""The models compared in micro-training, and what each makes of batches that grow.

*Suspect*: as the user trains. Beside it the same attention in float32, and eager attention at either precision,
which are the baselines and the controls. All hold the suspect's weights, as does the float64 model.
"""

from __future__ import annotations

import contextlib
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from compatcheck.probes._criterion import Module, Request, Row, Stage, Tensor, verdict
from compatcheck.probes.training._batches import on, padded, sequences, singles
from compatcheck.probes.training._exact import float64_everywhere
from compatcheck.probes.training._model import BUILD_ERRORS, Built, Unbuildable, build, exact_instance, instance, load
from compatcheck.probes.training._passes import Pass, compared, run, sums
from compatcheck.probes.training._recipe import Recipe, apply, dense, recipe_of, trainable
from compatcheck.probes.training._steps import WRITTEN_OUT, Descent, WrittenOut, descend, scored
from compatcheck.probes.training._unreached import unreached

SIDES = ("right", "left")
SLOW_SIZES = (1, 2)
EXACT_AGREEMENT = 1e-9
MAGNIFYING = ("A_log", "linear_attn", "mamba", "conv1d", "rg_lru", "_a_proj")
DEAD_ROWS = (
    "this case needs padding on the left and a label on the first token, and the request or "
    "the training file rules that out"
)
BY_DESIGN = "this model counts token positions from the padding"
LEFT_LEAK = "the fault appears only with left padding, and the training file does not say that you use left padding"


class Variant(NamedTuple):
    """One implementation under trial; ``baseline`` names the variant to measure it by."""

    name: str
    recipe: Recipe
    model: Module
    baseline: str
    control: bool


class Trial(NamedTuple):
    """All models of one request, and the sequences they see."""

    built: Built
    recipe: Recipe
    variants: Tuple[Variant, ...]
    exact: Tensor
    samples: List[Tensor]
    weights: Mapping[str, Tensor]
    device: str
    attention: str
    replaced: List[str]
    not_run: List[str]

    @property
    def magnifying(self) -> bool:
        """Whether the architecture has a recurrence (linear attention, a state space) or latent projections (MLA)."""
        return any(part in name for name in self.built.weights for part in MAGNIFYING)

    def facts(self) -> Row:
        """What was measured, in words and numbers."""
        return {
            "model": self.built.facts,
            "recipe": self.recipe.describe(),
            "attention": self.attention,
            "variants": [variant.name for variant in self.variants],
            "replaced": self.replaced,
            "not_run": self.not_run,
        }


def prepare(request: Request, device: str) -> Trial:
    """Build every model. Raises Unbuildable where the architecture or the recipe cannot be had here."""
    built, recipe = build(request), recipe_of(request)
    seed = int(request.get("seed", 0))
    attention, replaced = _attention(built, recipe, device)
    suspect = apply(recipe, instance(built, recipe.weights, attention).to(device), seed)
    weights = dense(suspect)
    with float64_everywhere():
        exact = apply(recipe.plain(), exact_instance(built), seed)
        load(exact, weights)

    def plain(dtype_recipe: Recipe, chosen: str) -> Module:
        model = apply(dtype_recipe, instance(built, dtype_recipe.weights, chosen).to(device), seed)
        load(model, weights)
        return model

    wide = recipe.plain()._replace(dtype="float32", weights="float32", autocast=False)
    used = attention or str(getattr(suspect.config, "_attn_implementation", None) or "eager")
    names = {"narrow": f"{used} {recipe.dtype}", "wide": f"{used} float32"}
    variants = [Variant(names["narrow"], recipe, suspect, f"eager {recipe.dtype}", False)]
    if recipe.dtype != "float32":
        variants.append(Variant(names["wide"], wide, plain(wide, used), "eager float32", False))
    if used != "eager" and "eager" in built.attentions:
        kept = [recipe.plain(), wide] if recipe.dtype != "float32" else [recipe.plain()]
        stated = recipe.attention is not None
        variants += [Variant(f"eager {each.dtype}", each, plain(each, "eager"), "", stated) for each in kept]
    elif "sdpa" in built.attentions:
        variants.append(Variant(f"sdpa {recipe.dtype}", recipe.plain(), plain(recipe.plain(), "sdpa"), "", True))
    samples = sequences(built.vocabulary, built.special_ids, seed)
    return Trial(built, recipe, tuple(variants), exact, samples, weights, device, used, replaced, [])


def batches(trial: Trial, sizes: Sequence[int], request: Request, stage: Stage) -> Iterator[Row]:
    """A row for each batch size, side of padding and variant."""
    if trial.device == "cpu" and trial.recipe.dtype == "float16":
        sizes = [size for size in sizes if size in SLOW_SIZES]
    stage("exact")
    with float64_everywhere():
        exact = sums(trial.exact, singles(trial.samples[: max(sizes)]), sizes)
        pair = exact.get(2) or sums(trial.exact, singles(trial.samples[:2]), (2,))[2]
    yield from unreached(trial.exact, exact[max(sizes)], singles(trial.samples[:1]), trial.built.seed)
    agreeing = {}
    for side in SIDES:
        row = _formula(trial, side, pair)
        agreeing[side] = row["theta"] <= 1
        yield row
        if not agreeing[side]:
            yield {**row, "variant": "one by one, float64", "control": True, "theta": 0.0, "rho": 0.0}
    for size in sizes:
        for side in SIDES if size > 1 else SIDES[:1]:
            case = f"batch {size}, padded on the {side}" if size > 1 else "batch 1"
            stage(case)
            batch = padded(trial.samples[:size], side, trial.built.pad_id)
            reference = exact[size] if agreeing[side] else _exactly(trial, batch)
            for row in _rows(trial, batch, reference, size if agreeing[side] else 1):
                yield {"case": case, "batch": size, "side": side, **row}
    if trial.attention == "sdpa":
        stage("label on the first token")
        yield from _dead_rows(trial, bool(request.get("label_first_token", trial.recipe.padding_side != "right")))


def steps(trial: Trial) -> Iterator[Row]:
    """A row of the suspect's optimiser steps and one of its control's: eager float32, plain AdamW or SGD."""
    suspect = trial.variants[0]
    data = [padded(trial.samples[number : number + 2], "right", trial.built.pad_id) for number in (0, 2, 4, 6)]
    case = f"{3 * len(data)} optimiser steps"
    row: Row = {"case": case, "variant": "eager float32", "dtype": "float32", "control": True}
    control = _plain_steps(trial, data)
    yield {**row, **scored(control, control)}
    if scored(control, control)["theta"] > 0:
        control = _plain_steps(trial, data, written_out=True)
        yield {**row, "variant": f"eager float32, {WRITTEN_OUT}", **scored(control, control)}
    row = {"case": case, "variant": suspect.name, "dtype": suspect.recipe.dtype}
    if suspect.recipe.weights == "float16" and not suspect.recipe.lora:
        row["policy"] = "float16 weights"
    try:
        found = scored(descend(suspect.model, suspect.recipe, data, trial.device), control)
    except Unbuildable as error:
        trial.not_run.append(str(error))
        return
    except BUILD_ERRORS as error:
        found = {"error": _raised(error)}
    yield {**row, **found}


def _plain_steps(trial: Trial, data: Sequence[Mapping[str, Tensor]], written_out: bool = False) -> Descent:
    """The control's steps on the CPU."""
    wide = trial.recipe.plain()._replace(
        dtype="float32", weights="float32", autocast=False, optimizer=_plain_optimizer(trial.recipe.optimizer)
    )
    model = apply(wide, instance(trial.built, "float32", "eager"), trial.built.seed)
    load(model, trial.weights)
    own = WrittenOut(list(trainable(model).values()), wide.learning_rate) if written_out else None
    return descend(model, wide, data, optimizer=own)


def _attention(built: Built, recipe: Recipe, device: str) -> Tuple[Optional[str], List[str]]:
    """The attention to use, None for the class's own choice, and why the stated one is not."""
    stated = recipe.attention
    if stated is None or stated in built.attentions:
        return stated, []
    if device == "cuda" and stated.startswith("flash"):
        with contextlib.suppress(Unbuildable, *BUILD_ERRORS):
            instance(built, recipe.dtype, stated)
            return stated, []
    return None, [f"{stated} attention cannot run here; another implementation was measured instead"]


def _plain_optimizer(name: str) -> str:
    return name if name in ("sgd", "adafactor", "adagrad") else "adamw_torch"


def _rows(trial: Trial, batch: Mapping[str, Tensor], exact: Pass, size: int) -> List[Row]:
    """A row per variant, each measured by its baseline.

    Where all of them fail they share a fault, and last controls take the probe's own loss for the model's, and the
    first ``size`` sequences one by one for the batch.
    """
    passes: Dict[str, Pass] = {}
    rows = []
    for variant in reversed(trial.variants):
        row: Row = {"variant": variant.name, "dtype": variant.recipe.dtype}
        if variant.control:
            row["control"] = True
        if _uses_tf32(variant, trial.device):
            row["policy"] = "allow_tf32"
        try:
            passes[variant.name] = run(variant.model, variant.recipe, [batch], trial.device)
        except BUILD_ERRORS as error:
            rows.append({**row, "error": _raised(error)})
            continue
        baseline = passes.get(variant.baseline or variant.name)
        found = compared(passes[variant.name], exact, baseline, variant.recipe.dtype, trial.magnifying)
        rows.append({**row, **found})
    if all("error" in row or verdict(row["theta"], row["rho"]) == "fail" for row in rows):
        rows[:0] = [*_own_loss(trial, batch, exact), *_one_by_one(trial, exact, size)]
    return rows[::-1]


def _one_by_one(trial: Trial, exact: Pass, size: int) -> List[Row]:
    """The control that pads nothing, for a batch of several sequences."""
    suspect = trial.variants[0]
    if size == 1:
        return []
    row = {"variant": f"{suspect.name}, one by one", "dtype": suspect.recipe.dtype, "control": True}
    try:
        found = run(suspect.model, suspect.recipe, singles(trial.samples[:size]), trial.device)
    except BUILD_ERRORS as error:
        return [{**row, "error": _raised(error)}]
    return [{**row, **compared(found, exact, None, suspect.recipe.dtype, trial.magnifying)}]


def _own_loss(trial: Trial, batch: Mapping[str, Tensor], exact: Pass) -> List[Row]:
    """The control whose loss is computed here; none where no variant is float32 throughout."""
    wide = next((each for each in trial.variants if each.recipe.dtype == "float32"), None)
    if wide is None:
        return []
    row = {"variant": f"{wide.name}, loss by the probe", "dtype": "float32", "control": True}
    try:
        found = sums(wide.model, [on(dict(batch), trial.device)], (1,))[1]
    except BUILD_ERRORS as error:
        return [{**row, "error": _raised(error)}]
    own = Pass(found.loss, {name: value.double().cpu() for name, value in found.gradients.items()})
    return [{**row, **compared(own, exact, None, "float32", trial.magnifying)}]


def _formula(trial: Trial, side: str, alone: Pass) -> Row:
    """Whether the architecture in float64 gives a padded batch of two what it gives its sequences one by one."""
    together = _exactly(trial, padded(trial.samples[:2], side, trial.built.pad_id))
    total = sum(float(value.norm()) ** 2 for value in alone.gradients.values()) ** 0.5
    worst, error = "loss", abs(together.loss - alone.loss)
    for name, value in alone.gradients.items():
        found = float((together.gradients[name] - value).norm()) / (total or 1.0)
        if not found <= error:
            worst, error = f"gradient of {name}", found
    row: Row = {"case": f"formula, batch 2, padded on the {side}", "variant": "padded, float64"}
    row.update(dtype="float64", tensor=worst, theta=error / EXACT_AGREEMENT, rho=0.0, nonfinite=int(error != error))
    if row["theta"] > 1 and side == "left":
        if _learned_positions(trial.exact):
            row["recorded"] = BY_DESIGN
        elif trial.recipe.padding_side != "left":
            row["recorded"] = LEFT_LEAK
    return row


def _exactly(trial: Trial, batch: Mapping[str, Tensor]) -> Pass:
    """The padded batch in float64, with the loss the probe's own."""
    with float64_everywhere():
        tokens = sums(trial.exact, [batch], (1,))
    return tokens[1]


def _dead_rows(trial: Trial, judged: bool) -> Iterator[Row]:
    """Sequences padded on the left whose first token has a label; the math kernel is the control."""
    batch = padded(trial.samples[:2], "left", trial.built.pad_id, label_first=True)
    try:
        with float64_everywhere():
            model = apply(trial.recipe.plain(), exact_instance(trial.built, "sdpa"), trial.built.seed)
            load(model, trial.weights)
            with _math_kernel():
                exact = sums(model, [batch], (1,))[1]
    except (Unbuildable, *BUILD_ERRORS):
        return
    suspect = trial.variants[0]
    with _math_kernel():
        plain = run(suspect.model, suspect.recipe, [batch], trial.device)
    found = run(suspect.model, suspect.recipe, [batch], trial.device)
    row: Row = {"case": "batch 2, padded on the left, first token labelled", "dtype": suspect.recipe.dtype}
    if not judged:
        row["recorded"] = DEAD_ROWS
    for name, each, control in ((suspect.name, found, False), (f"{suspect.name}, math kernel", plain, True)):
        measured = compared(each, exact, plain, suspect.recipe.dtype)
        if not measured["nonfinite"] and verdict(measured["theta"], measured["rho"]) == "fail":
            measured["says"] = f"the gradient norm is {each.norm:.3g}, the exact one {exact.norm:.3g}"
        yield {**row, "variant": name, "control": control, **measured}


def _math_kernel() -> Any:
    """Plain attention only; torch before 2.3 spells it differently."""
    import torch

    if hasattr(torch.nn, "attention") and hasattr(torch.nn.attention, "sdpa_kernel"):
        return torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH)
    return torch.backends.cuda.sdp_kernel(enable_flash=False, enable_mem_efficient=False, enable_math=True)


def _learned_positions(model: Module) -> bool:
    return any("pos" in name or "wpe" in name for name, _ in model.named_parameters())


def _uses_tf32(variant: Variant, device: str) -> bool:
    import torch

    return device != "cpu" and variant.recipe.dtype == "float32" and bool(torch.backends.cuda.matmul.allow_tf32)


def _raised(error: BaseException) -> str:
    """The error in one line; those of the device itself are passed on."""
    lines = str(error).strip().splitlines()
    message = lines[0][:200] if lines else ""
    if "CUDA error" in message or "out of memory" in message:
        raise error
    return f"{type(error).__name__}: {message}"
