"""Optimizer and scheduler state across save and resume: a resumed run equals an uninterrupted one.

A small network takes eight optimizer steps without a break. Then it takes four steps and saves its weights and the
state of the optimizer, the scheduler and the random generators. A fresh network with a fresh optimizer loads them and
takes the last four steps. These are tested: torch's AdamW (foreach, one parameter at a time, fused, AMSGrad), Adam,
SGD with momentum, Adagrad, RMSprop, NAdam, Adafactor of transformers, and the 8-bit and paged optimizers of
bitsandbytes, each with a learning rate that changes in every step; the schedulers of torch and transformers; and, with
dropout so that random numbers must continue as well, `save_state` and `load_state` of accelerate and the Trainer of
transformers. For these two, the break is in the middle of an epoch of rows of unequal length (`_resumed.py`). The same
eight steps taken twice are the control.

Bound: the same kernels on the same numbers give the same bits, so the distance is 0. If a bit differs, the distance
between both results, relative to the length of the last four steps, is at most 64 u in float32 and 16 u in 16 bits,
with u the unit roundoff of the dtype. A lost moment, step count, learning rate or random state gives 10^3 and more. A
failure means that a training resumed from a checkpoint differs from the uninterrupted training, with or without a jump
of the loss.

Request: seed, device, dtype (tested in addition to float32).
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import tempfile
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Tuple

from compatcheck.probes._criterion import UNIT_ROUNDOFF, Measuring, Module, Request, Row, Stage, Tensor
from compatcheck.probes._criterion import judge as judge
from compatcheck.probes._device import NO_DEVICE, device_of
from compatcheck.probes.operators._operator import LACKING
from compatcheck.probes.training._logits import ROUNDINGS, attempted
from compatcheck.probes.training._model import BUILD_ERRORS
from compatcheck.probes.training._resumed import BREAK, STEPS, End, trained

NEEDS: Dict[str, str] = {"torch": ">=1.13"}
TIMEOUT: float = 180.0
PROFILE: str = "deep"
SECONDS: float = 3.0
ASKED_BY: Tuple[str, ...] = ("training.resume_from_checkpoint",)

WIDTH, ROWS = 80, 8
"""80 squared is more than the 4096 elements from which bitsandbytes keeps its state in 8 bits."""
RATE, DECAY, DROPOUT = 1e-2, 0.1, 0.2
CONTROL, STATES = "without a break, again", "state_dict, load_state_dict"

Make = Callable[[List[Tensor]], Any]


class Run(NamedTuple):
    """A network, its optimizer and its scheduler, and the learning rate of each step so far."""

    model: Module
    optimizer: Any
    scheduler: Any
    rates: List[float]


class Trial(NamedTuple):
    """What is trained, and how: ``make`` an optimizer of parameters, ``schedule`` a scheduler of that."""

    case: str
    dtype: str
    device: str
    seed: int
    make: Make
    schedule: Callable[[Any], Any]
    dropout: float = 0.0


def measure(request: Request, stage: Stage) -> Measuring:
    """Rows of each optimizer and dtype, each scheduler, and accelerate, beside their controls."""
    device = device_of(request)
    if device is None:
        return {"unsupported": NO_DEVICE}
    seed = int(request.get("seed", 0))
    asked = str(request.get("dtype") or "bfloat16")
    narrow = asked in ("bfloat16", "float16") and (asked, device) != ("float16", "cpu")
    dtypes = ["float32", asked] if narrow else ["float32"]
    skipped: Dict[str, str] = {}
    for name, make in _optimizers().items():
        for dtype in dtypes:
            stage("%s %s" % (name, dtype))
            trial = Trial(name, dtype, device, seed, make, _falling)
            reason, raised = _refusal(trial)
            if reason:
                skipped[name] = reason
                break
            if raised:
                yield {"case": name, "variant": "first step", "dtype": dtype, "error": raised}
                yield {"case": name, "variant": "step by hand", "dtype": dtype, "control": True, **_by_hand(trial)}
                continue
            yield from _rows(trial, STATES, _through_files)
    for name, schedule in _schedules().items():
        stage(name)
        yield from _rows(Trial(name, "float32", device, seed, _adamw, schedule), STATES, _through_files)
    if importlib.util.find_spec("accelerate") is None:
        skipped["accelerate"] = "accelerate is not installed"
    else:
        stage("accelerate")
        trial = Trial("AdamW with dropout", "float32", device, seed, _adamw, _falling, DROPOUT)
        yield from _rows(trial, "accelerate save_state, load_state", _through_accelerate)
        if importlib.util.find_spec("transformers") is not None:
            stage("Trainer")
            yield from _trainer_rows(seed, device)
    return {"device": device, "skipped": skipped}


def _rows(trial: Trial, variant: str, resumed: Callable[[Trial], Run]) -> Iterator[Row]:
    row = {"case": trial.case, "dtype": trial.dtype}
    whole = _without_break(trial)
    yield {**row, "variant": CONTROL, "control": True, **_compared(_without_break(trial), whole, trial.dtype)}

    def measured() -> Row:
        run = resumed(trial)
        middle = _weights(run.model)
        _take(run, trial, BREAK, STEPS)
        return _compared(End(middle, _weights(run.model), run.rates), whole, trial.dtype)

    yield attempted({**row, "variant": variant}, measured)


def _trainer_rows(seed: int, device: str) -> Iterator[Row]:
    """The Trainer's eight steps, taken without a break, again, and from the checkpoint of the fourth."""
    row = {"case": "Trainer of transformers", "dtype": "float32"}
    with tempfile.TemporaryDirectory() as folder:
        found: List[End] = []

        def whole() -> Row:
            found.append(trained(seed, device, folder))
            again = trained(seed, device, os.path.join(folder, "again"))
            return _compared(again, found[0], "float32")

        def resumed() -> Row:
            return _compared(trained(seed, device, folder, resume=True), found[0], "float32")

        control = attempted({**row, "variant": CONTROL, "control": True}, whole)
        yield control
        if found:
            yield attempted({**row, "variant": "resume_from_checkpoint"}, resumed)
        else:
            yield {**row, "variant": "Trainer", "error": control["error"]}


def _compared(found: End, whole: End, dtype: str) -> Row:
    """theta of the worst: the weights when resumed, the learning rates and the weights at the end."""
    import torch

    row: Row = {"rho": 0.0, "nonfinite": int((~torch.isfinite(found.end)).sum()), "rates": found.rates}
    rate = max(abs(one - other) / abs(other) for one, other in zip(found.rates[BREAK:], whole.rates[BREAK:]))
    if rate > 2.0**-40:
        says = "the learning rate of step %d is %.3g, but %.3g in the uninterrupted run"
        number = next(i for i in range(BREAK, STEPS) if found.rates[i] != whole.rates[i])
        told = says % (number + 1, found.rates[number], whole.rates[number])
        return {**row, "tensor": "learning rate", "theta": float("inf"), "says": told}
    if not torch.equal(found.middle, whole.middle):
        return {**row, "tensor": "weights", "theta": float("inf"), "says": "the weights come back changed"}
    error, way = float((found.end - whole.end).norm()), float((whole.end - whole.middle).norm())
    share = error / way if way else float("inf")
    row.update(tensor="path of the parameters after the break", theta=share / (ROUNDINGS[dtype] * UNIT_ROUNDOFF[dtype]))
    if share == 0:
        row["says"] = "bit for bit the same as the uninterrupted run"
    elif row["theta"] > 4:
        row["says"] = "the steps after the resume diverge: they are off by %.2g of their length" % share
    return row


def _begun(trial: Trial) -> Run:
    """A fresh run before its first step."""
    import torch

    torch.manual_seed(trial.seed)
    model = torch.nn.Sequential(
        torch.nn.Linear(WIDTH, WIDTH),
        torch.nn.Tanh(),
        torch.nn.Dropout(trial.dropout),
        torch.nn.LayerNorm(WIDTH),
        torch.nn.Linear(WIDTH, WIDTH),
    )
    model = model.to(trial.device, getattr(torch, trial.dtype)).train()
    optimizer = trial.make(list(model.parameters()))
    return Run(model, optimizer, trial.schedule(optimizer), [])


def _take(run: Run, trial: Trial, first: int, last: int, backward: Optional[Callable[[Tensor], Any]] = None) -> None:
    """Steps ``first`` to ``last``, each on data of its own."""
    import torch

    narrow = getattr(torch, trial.dtype)
    for number in range(first, last):
        generator = torch.Generator().manual_seed(1000 * trial.seed + number)
        inputs, targets = torch.randn(2, ROWS, WIDTH, generator=generator, dtype=torch.float64).to(trial.device)
        loss = (run.model(inputs.to(narrow)).float() - targets.float()).pow(2).mean()
        (backward or torch.Tensor.backward)(loss)
        run.rates.append(float(run.optimizer.param_groups[0]["lr"]))
        run.optimizer.step()
        run.scheduler.step()
        run.optimizer.zero_grad()


def _without_break(trial: Trial) -> End:
    run = _begun(trial)
    _take(run, trial, 0, BREAK)
    middle = _weights(run.model)
    _take(run, trial, BREAK, STEPS)
    return End(middle, _weights(run.model), run.rates)


def _weights(model: Module) -> Tensor:
    import torch

    return torch.cat([value.detach().double().cpu().flatten() for value in model.parameters()])


def _through_files(trial: Trial) -> Run:
    """A fresh run that loads what another saved after the first steps."""
    import torch

    before = _begun(trial)
    _take(before, trial, 0, BREAK)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "checkpoint.pt")
        states = {name: getattr(before, name).state_dict() for name in ("model", "optimizer", "scheduler")}
        torch.save(states, path)
        loaded = torch.load(path, map_location=trial.device)
    after = _begun(trial._replace(seed=trial.seed + 1))
    for name, state in loaded.items():
        getattr(after, name).load_state_dict(state)
    return after._replace(rates=list(before.rates))


def _through_accelerate(trial: Trial) -> Run:
    before = _accelerated(trial)
    _take(before[0], trial, 0, BREAK, before[1].backward)
    with tempfile.TemporaryDirectory() as folder:
        before[1].save_state(folder)
        after = _accelerated(trial._replace(seed=trial.seed + 1))
        after[1].load_state(folder)
    return after[0]._replace(rates=list(before[0].rates))


def _accelerated(trial: Trial) -> Tuple[Run, Any]:
    from accelerate import Accelerator
    from accelerate.state import AcceleratorState, PartialState

    for state in (AcceleratorState, PartialState):
        with contextlib.suppress(AttributeError):
            state._reset_state()
    accelerator = Accelerator(cpu=trial.device == "cpu")
    run = _begun(trial)
    model, optimizer, scheduler = accelerator.prepare(run.model, run.optimizer, run.scheduler)
    return Run(model, optimizer, scheduler, []), accelerator


def _refusal(trial: Trial) -> Tuple[str, str]:
    """Why the optimizer is not to be had here, or what it raises though it should be; both empty where it steps.

    A package that is not installed, an option that this torch lacks, and 8-bit optimizers on a CPU, which older
    releases of bitsandbytes refuse, are no faults.
    """
    try:
        _take(_begun(trial), trial, 0, 1)
    except BUILD_ERRORS as error:
        told = "%s: %s" % (type(error).__name__, str(error).strip().split("\n")[0][:160])
        lacks = isinstance(error, ModuleNotFoundError) or any(word in str(error) for word in (*LACKING, "fused"))
        on_cpu = trial.device == "cpu" and "bit" in trial.case
        return (told, "") if lacks or on_cpu else ("", told)
    return "", ""


def _by_hand(trial: Trial) -> Row:
    """The same network and data with plain gradient steps: whether its weights stay finite."""
    import torch

    run = _begun(trial._replace(make=lambda parameters: torch.optim.SGD(parameters, lr=RATE)))
    _take(run, trial, 0, 1)
    lost = int((~torch.isfinite(_weights(run.model))).sum())
    return {"tensor": "weights", "theta": float("inf") if lost else 0.0, "rho": 0.0, "nonfinite": lost}


def _adamw(parameters: List[Tensor]) -> Any:
    import torch

    return torch.optim.AdamW(parameters, lr=RATE, weight_decay=DECAY)


def _optimizers() -> Dict[str, Make]:
    def of_torch(name: str, **options: Any) -> Make:
        def make(parameters: List[Tensor]) -> Any:
            import torch

            return getattr(torch.optim, name)(parameters, lr=RATE, **options)

        return make

    def of_bitsandbytes(name: str) -> Make:
        def make(parameters: List[Tensor]) -> Any:
            import bitsandbytes

            return getattr(bitsandbytes.optim, name)(parameters, lr=RATE)

        return make

    def adafactor(parameters: List[Tensor]) -> Any:
        from transformers.optimization import Adafactor

        return Adafactor(parameters, lr=RATE, scale_parameter=False, relative_step=False)

    return {
        "AdamW": _adamw,
        "AdamW, one parameter at a time": of_torch("AdamW", foreach=False, weight_decay=DECAY),
        "AdamW fused": of_torch("AdamW", fused=True, weight_decay=DECAY),
        "AdamW AMSGrad": of_torch("AdamW", amsgrad=True, weight_decay=DECAY),
        "Adam": of_torch("Adam"),
        "SGD with momentum": of_torch("SGD", momentum=0.9, nesterov=True),
        "Adagrad": of_torch("Adagrad"),
        "RMSprop": of_torch("RMSprop", momentum=0.9),
        "NAdam": of_torch("NAdam"),
        "Adafactor": adafactor,
        **{name: of_bitsandbytes(name) for name in ("AdamW8bit", "PagedAdamW8bit", "PagedAdamW32bit", "Lion8bit")},
    }


def _falling(optimizer: Any) -> Any:
    import torch

    return torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1.0 / (1.0 + 0.1 * step))


def _schedules() -> Dict[str, Callable[[Any], Any]]:
    def of_torch(name: str, **options: Any) -> Callable[[Any], Any]:
        def make(optimizer: Any) -> Any:
            import torch

            return getattr(torch.optim.lr_scheduler, name)(optimizer, **options)

        return make

    def of_transformers(optimizer: Any) -> Any:
        from transformers import get_cosine_schedule_with_warmup

        return get_cosine_schedule_with_warmup(optimizer, 2, 2 * STEPS)

    schedules = {
        "CosineAnnealingLR": of_torch("CosineAnnealingLR", T_max=STEPS + 2),
        "LinearLR": of_torch("LinearLR", total_iters=STEPS + 2),
        "OneCycleLR": of_torch("OneCycleLR", max_lr=RATE, total_steps=STEPS + 2),
        "ExponentialLR": of_torch("ExponentialLR", gamma=0.9),
    }
    if importlib.util.find_spec("transformers") is not None:
        schedules["cosine schedule of transformers"] = of_transformers
    return schedules
