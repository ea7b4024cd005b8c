"""The user's training step, repeated and compared bit by bit: same weights, seed and device.

The user's architecture in miniature takes two optimizer steps in the user's precision, attention, adapters and
optimizer, three times from the same weights, batch and seed. The output of every module, every gradient in the order
in which it arrives, the loss and every weight after each step are compared with the first run, bit by bit.

Bound: every bit. `torch.use_deterministic_algorithms` lists the kernels that add in no fixed order. If the runs
differ, they are repeated in this mode. If they then agree, or if torch warns of an operation without a deterministic
implementation, the difference comes from the setting, and the outcome is a watch and not a failure. If they still
differ, the probe fails and names the first module or gradient that differs: memory that was read before it was
written, a race, a generator that the seed does not reach, state that a library keeps from step to step, or failing
hardware. The same runs in float64 on the CPU are the control. torchtitan requires the same of its own steps
(https://github.com/pytorch/torchtitan/blob/main/docs/debugging.md).

Request: seed, device, dtype, config, training, replays (default 3).
"""

from __future__ import annotations

import contextlib
import hashlib
import warnings
from typing import Any, Dict, Iterator, List, NamedTuple, Tuple

from compatcheck.probes._criterion import Measuring, Module, Request, Row, Stage, Tensor, Tensors
from compatcheck.probes._criterion import judge as judge
from compatcheck.probes._device import NO_DEVICE, device_of
from compatcheck.probes.training._batches import on, padded, sequences
from compatcheck.probes.training._exact import float64_everywhere
from compatcheck.probes.training._logits import attempted
from compatcheck.probes.training._model import Built, Unbuildable, build, exact_instance, instance
from compatcheck.probes.training._recipe import Recipe, apply, computing, optimizer_of, recipe_of, trainable

NEEDS: Dict[str, str] = {"torch": ">=1.13", "transformers": ">=4.31"}
TIMEOUT: float = 180.0
PROFILE: str = "deep"
SECONDS: float = 3.0
ASKED_BY: Tuple[str, ...] = ("training.deterministic",)

STEPS, REPLAYS, COUNT = 2, 3, 4
SETTING = "torch.use_deterministic_algorithms(False)"

Record = List[Tuple[str, str, float]]
"""What was computed, in the order of the step: its name, a digest of its bits, and the sum of its magnitudes."""


class Trial(NamedTuple):
    """What is replayed: the model, how it is trained, and on which batch."""

    built: Built
    recipe: Recipe
    device: str
    batch: Tensors


def measure(request: Request, stage: Stage) -> Measuring:
    """A row of the control, of the step as it is trained, and, where that differs, in deterministic mode."""
    device = device_of(request)
    if device is None:
        return {"unsupported": NO_DEVICE}
    stage("model")
    try:
        built = build(request)
        recipe = recipe_of(request)
        if recipe.dtype == "float16" and device == "cpu":
            recipe = recipe._replace(dtype="float32", weights="float32", autocast=False)
        chosen = sequences(built.vocabulary, built.special_ids, int(request.get("seed", 0)))[:COUNT]
        trial = Trial(built, recipe, device, padded(chosen, recipe.padding_side or "right", built.pad_id))
        _model(trial)
    except Unbuildable as reason:
        return {"unsupported": str(reason)}
    replays = max(2, int(request.get("replays") or REPLAYS))
    row = {"case": "%d steps, %d times" % (STEPS, replays), "dtype": recipe.dtype, "rho": 0.0, "nonfinite": 0}
    stage("float64 on the CPU")
    yield {**row, "variant": "float64 on the CPU", "control": True, **_compared([_exactly(trial) for _ in range(2)])}
    stage("the training as configured")
    first = attempted(
        {**row, "variant": recipe.describe()}, lambda: _compared([_replay(trial) for _ in range(replays)])
    )
    if first.get("theta") == 0.0 or "error" in first:
        yield first
        return {"device": device, "model": built.facts}
    stage("deterministic algorithms")
    with _deterministic() as told:
        again = attempted(
            {**row, "variant": "deterministic"}, lambda: _compared([_replay(trial) for _ in range(replays)])
        )
    operations = sorted({str(each.message).partition(" does not have")[0] for each in told if _names(each)})
    if again.get("theta") == 0.0 or operations:
        first["policy"] = SETTING
    yield first
    if "error" not in again:
        yield {**again, **({"recorded": "no deterministic " + operations[0]} if operations else {})}
    return {"device": device, "model": built.facts, "not_deterministic": operations}


def _names(warning: warnings.WarningMessage) -> bool:
    return "does not have a deterministic implementation" in str(warning.message)


@contextlib.contextmanager
def _deterministic() -> Iterator[List[warnings.WarningMessage]]:
    """In torch's deterministic mode, with the warnings of what has no place in it."""
    import torch

    before = torch.are_deterministic_algorithms_enabled()
    warn_only = torch.is_deterministic_algorithms_warn_only_enabled()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        torch.use_deterministic_algorithms(True, warn_only=True)
        try:
            yield told
        finally:
            torch.use_deterministic_algorithms(before, warn_only=warn_only)


def _model(trial: Trial) -> Module:
    """A fresh model from the same weights; raises Unbuildable where the recipe cannot be set up here."""
    attention = trial.recipe.attention if trial.recipe.attention in trial.built.attentions else None
    model = instance(trial.built, trial.recipe.weights, attention or trial.built.attentions[-1])
    return apply(trial.recipe, model.to(trial.device), trial.built.seed).to(trial.device)


def _replay(trial: Trial) -> Record:
    model = _model(trial)
    optimizer, _ = optimizer_of(trial.recipe, list(trainable(model).values()))
    return _recorded(model, optimizer, trial, trial.device)


def _exactly(trial: Trial) -> Record:
    import torch

    model = exact_instance(trial.built)
    with float64_everywhere():
        optimizer = torch.optim.AdamW(model.parameters(), lr=trial.recipe.learning_rate)
        return _recorded(model, optimizer, trial._replace(recipe=Recipe("float64", "float64")), "cpu")


def _recorded(model: Module, optimizer: Any, trial: Trial, device: str) -> Record:
    """The steps, with all that they compute, in the order in which it comes."""
    import torch

    record: Record = []
    place = ["step 1"]
    _note_modules(model, record, place)
    _note_gradients(model, record, place)
    torch.manual_seed(trial.built.seed)
    for number in range(STEPS):
        place[0] = "step %d" % (number + 1)
        optimizer.zero_grad()
        with computing(trial.recipe, device):
            loss = model(**on(trial.batch, device)).loss
        _note(record, "the loss, " + place[0], loss)
        loss.backward()
        optimizer.step()
        for name, parameter in trainable(model).items():
            _note(record, "%s after %s" % (name, place[0]), parameter)
    return record


def _note_modules(model: Module, record: Record, place: List[str]) -> None:
    def hook(name: str) -> Any:
        def note(module: Module, given: Any, found: Any) -> None:
            for value in found if isinstance(found, tuple) else (found,):
                if hasattr(value, "is_floating_point") and value.is_floating_point():
                    _note(record, "output of %s, %s" % (name, place[0]), value)

        return note

    for name, module in model.named_modules():
        if name:
            module.register_forward_hook(hook(name))


def _note_gradients(model: Module, record: Record, place: List[str]) -> None:
    def hook(name: str) -> Any:
        return lambda gradient: _note(record, "gradient of %s, %s" % (name, place[0]), gradient)

    for name, parameter in trainable(model).items():
        parameter.register_hook(hook(name))


def _note(record: Record, name: str, value: Tensor) -> None:
    import torch

    kept = value.detach().cpu().contiguous()
    digest = hashlib.sha256(kept.reshape(-1).view(torch.uint8).numpy().tobytes()).hexdigest()
    record.append((name, digest, float(kept.double().abs().sum())))


def _compared(records: List[Record]) -> Row:
    """theta 0 where all are the same, infinite where one is not, with the first that differs from the first replay."""
    first = records[0]
    row: Row = {"tensor": "every output, gradient and weight", "theta": 0.0, "compared": len(first)}
    for other in records[1:]:
        if [name for name, _, _ in other] != [name for name, _, _ in first]:
            return {
                **row,
                "theta": float("inf"),
                "says": "the replays compute different operations, or the same operations in another order",
            }
        differing = [number for number, pair in enumerate(zip(first, other)) if pair[0][1] != pair[1][1]]
        if differing:
            name, _, size = first[differing[0]]
            changed = abs(other[differing[0]][2] - size) / size if size else float("inf")
            says = (
                "the %s is the first value that differs between two replays (its sum changes by %.2g of "
                "its size); %d of %d others also differ"
            )
            told = says % (name, changed, len(differing) - 1, len(first) - 1)
            return {**row, "theta": float("inf"), "tensor": name, "says": told.replace("the the", "the")}
    return {**row, "says": "%d outputs, gradients and weights are bit-identical" % len(first)}
