"""The transformers Trainer on two processes, compared with one step on the whole batch.

Two ranks take one SGD step of a tiny random model with DistributedDataParallel. The step is compared with the same step
in plain torch on all sequences of both ranks: the gradient of the mean over all predicted tokens. The sequences have
equal or unequal label counts, and each rank takes them in one batch or in two micro-batches. The Trainer weights the
ranks by its default, or by their tokens (`average_tokens_across_devices`). The models are an unchanged Llama and one
whose forward takes no token count; the user's architecture replaces both if a config is given.

Bound: that of [gradient_accumulation](../training/gradient_accumulation.py). The probe also fails if the parameters
of the ranks differ in a bit after the step. The control is the same step in one process of plain torch.
Differs by design: unless it weights by tokens, the Trainer documents the mean of the ranks' means. For models that take
no token count, it documents the mean of the means of all micro-batches. If the update is this mean, the probe reports
the size of the difference.

The probe runs over gloo on the CPU, and over NCCL if two GPUs are free.

Request: seed, device, config, training (skipped if its world_size is 1).
"""

from __future__ import annotations

import hashlib
import inspect
from typing import TYPE_CHECKING, Any, Dict, List, Tuple

from compatcheck.probes._criterion import Case, Measuring, Request, Row, Settings, Stage, verdict
from compatcheck.probes.distributed import _ranks
from compatcheck.probes.distributed._ranks import judge as judge
from compatcheck.probes.training import _trainer_step
from compatcheck.probes.training._trainer_step import Trained, Trial

if TYPE_CHECKING:
    from compatcheck.probes.distributed._ranks._rank import Rank

NEEDS: Dict[str, str] = {"torch": ">=1.13", "transformers": ">=4.31", "accelerate": ">=0.20"}
TIMEOUT: float = 240.0
PROFILE: str = "deep"
SECONDS: float = 15.0
ASKED_BY: Tuple[str, ...] = ("training.world_size",)
FRESH = True
RANKS = "few"

SEQUENCES = 4
OPTION = "average_tokens_across_devices"
EQUAL_RANKS = "the Trainer gives all ranks equal weight in the average unless average_tokens_across_devices is set"
EQUAL_BATCHES = "the Trainer gives all batches equal weight in the average for models that do not accept a token count"


def measure(request: Request, stage: Stage) -> Measuring:
    """A row for each way of taking the step, and for each control; raises Unusable where there is no Trainer."""
    _trainer_step.trainer()
    return _ranks.measure(__file__, request, stage, _cases, several=True)


def work(case: Case, rank: Rank) -> Row:
    """In each rank: the step, and how far its update is off."""
    import torch

    make = _trainer_step.models(case["request"])[case["model"]]
    samples = _trainer_step.samples(case["lengths"], SEQUENCES, case["request"]["seed"])
    trial = Trial(make, case["model"], case["lengths"], samples, "cpu")
    exact = _trainer_step.plain_update(trial, [_trainer_step.pad(samples)], [1.0])
    control = _trainer_step.compare(_trainer_step.plain_update(trial, *_trainer_step.micro_batches(samples)), exact)
    options = _options(case["weighing"], rank)
    if options is None:
        recorded = "this release has no average_tokens_across_devices"
        return {"measured": {**control, "recorded": recorded}, "control": control, "digest": ""}
    steps = case["steps"]
    trained = _trainer_step.trained(
        trial._replace(device=rank.device), SEQUENCES // rank.world // steps, steps, **options
    )
    taken: List[Any] = [None] * rank.world
    torch.distributed.all_gather_object(taken, trained.taken)
    found = _trainer_step.compare(trained.update, exact)
    if verdict(found["theta"]) != "pass":
        found.update(_by_design(trial, trained, taken, case, found))
    digest = hashlib.sha256(trained.update.after.numpy().tobytes()).hexdigest()
    return {
        "measured": _trainer_step.told({"tensor": "update", **found}, _what(case)),
        "control": control,
        "digest": digest,
    }


def _by_design(trial: Trial, trained: Trained, taken: List[List[List[Any]]], case: Case, found: Row) -> Row:
    """What the Trainer documents instead of the exact update, where that is what it did."""
    meanings = {}
    if trained.averages:
        meanings[EQUAL_BATCHES] = [batch for batches in taken for batch in batches]
    if case["weighing"] is None:
        meanings[EQUAL_RANKS] = [sum(batches, []) for batches in taken]
    for words, groups in meanings.items():
        shares = [1 / len(groups)] * len(groups)
        means = _trainer_step.plain_update(trial, [_trainer_step.pad(group) for group in groups], shares)
        if verdict(_trainer_step.compare(trained.update, means)["theta"]) == "pass":
            return {"by_design": words, "difference": found["distance"]}
    return {}


def _what(case: Case) -> str:
    return f"one step of two ranks with {_batches(case['steps'])} each"


def _batches(steps: int) -> str:
    return "one batch" if steps == 1 else f"{steps} micro-batches"


def _options(weighing: Any, rank: Rank) -> "Settings | None":
    """The TrainingArguments for the ranks, None where the release cannot weigh as asked."""
    from transformers import TrainingArguments

    known = inspect.signature(TrainingArguments.__init__).parameters
    options: Row = {"ddp_backend": rank.backend} if "ddp_backend" in known else {}
    if weighing is None:
        return options
    return {**options, OPTION: weighing} if OPTION in known else None


def _cases(request: Request, device: str) -> List[Row]:
    kept = {key: request[key] for key in ("config", "dtype") if key in request}
    asked = {**kept, "seed": int(request["seed"])}
    models = ("own",) if request.get("config") else _trainer_step.MODELS
    return [
        {
            "case": f"{_trainer_step.case(model, lengths)}, {_batches(steps)}",
            "variant": "Trainer" if weighing is None else f"Trainer, {OPTION}={weighing}",
            "dtype": "float32",
            "model": model,
            "lengths": lengths,
            "steps": steps,
            "weighing": weighing,
            "request": asked,
        }
        for model in models
        for lengths in ("equal", "unequal")
        for steps in (1, 2)
        for weighing in (None, True)
    ]
