"""Gradient accumulation of the transformers Trainer.

One SGD step of a tiny random model at learning rate 1, without clipping and decay, is compared with the same step in
plain torch on the whole batch. The reference is the gradient of the mean over all predicted tokens. The Trainer takes
the step twice: from one batch, and from as many micro-batches of one sequence, with equal and with unequal label
counts. Losses that are summed but not divided, divided twice, or averaged per micro-batch give a different update.

A failure means that the relative distance of the two updates is above 4 times its bound of 64 u (1 + |p| / |update|),
with u = 2^-24 for float32: 64 roundings of each gradient, and the rounding of the stored parameters, from which the
updates are read. Healthy stacks give 2e-7 with a bound of 4e-5; faults give 3, 0.75 or 0.2. The control is a loop in
plain torch over the same micro-batches, each weighted by its tokens. If the control differs from the reference too,
the Trainer is not the cause.
Known: every release before 4.46 takes the mean of the micro-batches' means, so a token of a short answer has more
weight (huggingface/transformers#34191). The update is multiplied by the number of micro-batches for models without
`**kwargs` from 4.46.0 to 4.47.1, and for Llama itself in 4.47.0 and 4.48.0 (#34263, #35207, #35438). It is divided by
this number once too often from 5.2.0 to 5.5.3 (#45349).

Models: loss_kwargs is LlamaForCausalLM, unchanged. no_kwargs is a wrapper whose forward takes no `**kwargs`, like
ChatGLM and other remote code. own is the user's architecture in miniature; it replaces these two if a config is given.
ignored_kwargs takes `**kwargs` and ignores them. Its update is multiplied too (in every tested release from 4.46.0 to
5.23.0). This is a property of the model, so it runs only if the request names it.
Differs by design: from 4.46 on, the Trainer determines which models accept the number of tokens
(`model_accepts_loss_kwargs`). For other models it documents the mean of means. If the update is this mean, the probe
reports the size of the difference.

Request: seed, device, config, models (default loss_kwargs and no_kwargs, or own), gradient_accumulation_steps (default
4, at most 8).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Dict, Iterator, Tuple

from compatcheck.probes._criterion import Measured, Measuring, Request, Row, Stage, judge_rows, verdict
from compatcheck.probes._device import NO_DEVICE, device_of
from compatcheck.probes.training import _trainer_step
from compatcheck.probes.training._model import Unbuildable
from compatcheck.probes.training._trainer_step import MODELS, Trial

if TYPE_CHECKING:
    from compatcheck.results.findings import Outcome

NEEDS: Dict[str, str] = {"torch": ">=1.13", "transformers": ">=4.31", "accelerate": ">=0.20"}
TIMEOUT: float = 180.0
PROFILE = "deep"
SECONDS: float = 6.0
ASKED_BY: Tuple[str, ...] = ("training.gradient_accumulation_steps",)

MEAN_OF_MEANS = (
    "the Trainer gives all micro-batches equal weight in the average for models that do not accept a token count"
)


def measure(request: Request, stage: Stage) -> Measuring:
    """A row for each update: its ratio to the exact one, and their relative distance over its bound."""
    device = device_of(request)
    if device is None:
        return {"unsupported": NO_DEVICE}
    if (request.get("training") or {}).get("gradient_accumulation_steps") == 1 and not request.get("models"):
        return {"unsupported": "the training file does not accumulate gradients"}
    steps = min(max(int(request.get("gradient_accumulation_steps") or 4), 2), 8)
    seed = int(request["seed"])
    stage("models")
    try:
        models = _trainer_step.models(request)
    except Unbuildable as reason:
        return {"unsupported": str(reason)}
    for name in request.get("models") or (("own",) if "own" in models else MODELS):
        for lengths in ("equal", "unequal"):
            stage(f"{name} {lengths}")
            yield from _rows(Trial(models[name], name, lengths, _trainer_step.samples(lengths, steps, seed), device))
    return {"device": device}


def judge(measured: Measured) -> Tuple[Outcome, str]:
    """The judged row furthest above its bound decides, and fails only where plain torch meets the reference."""
    if "unsupported" in measured:
        return "skip", str(measured["unsupported"])
    return judge_rows(measured["rows"])


def _rows(trial: Trial) -> Iterator[Row]:
    """The control's row, and those of the Trainer with one batch and with micro-batches."""
    steps = len(trial.samples)
    batches, shares = _trainer_step.micro_batches(trial.samples)
    exact = _trainer_step.plain_update(trial, [_trainer_step.pad(trial.samples)], [1.0])
    row: Row = {
        "case": _trainer_step.case(trial.name, trial.lengths),
        "dtype": "float32",
        "tensor": "update",
        "model": trial.name,
    }
    plain = _trainer_step.plain_update(trial, batches, shares)
    yield {**row, "variant": "plain torch loop", "control": True, **_trainer_step.compare(plain, exact)}
    single = _trainer_step.trained(trial, steps, 1)
    compared = _trainer_step.compare(single.update, exact)
    yield {**row, "variant": "Trainer, one batch", **_trainer_step.told(compared, "one batch")}
    accumulated = _trainer_step.trained(trial, 1, steps)
    found = {**row, "variant": "Trainer, micro-batches", **_trainer_step.compare(accumulated.update, exact)}
    if accumulated.averages and verdict(found["theta"]) != "pass":
        means = _trainer_step.plain_update(trial, batches, [1 / steps] * steps)
        if verdict(_trainer_step.compare(accumulated.update, means)["theta"]) == "pass":
            found.update(by_design=MEAN_OF_MEANS, difference=found["distance"])
    yield _trainer_step.told(found, f"accumulating {steps} micro-batches")
