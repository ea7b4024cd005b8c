"""The most memory that a step takes, from states and activations, and the settings that lower it."""

from __future__ import annotations

from typing import Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from compatcheck.probes._criterion import Row
from compatcheck.probes.training._memory.measured import Activations
from compatcheck.probes.training._memory.setup import WIDTH, Setup
from compatcheck.probes.training._memory.states import Counts, Range, states

GIB = 2.0**30
CONTEXT = (1 * GIB, 2 * GIB)
FRAGMENTATION = (1.05, 1.10)
LOGITS_16 = (2 + 4 + 4, 2 + 4 + 4 + 4 + 4)
LOGITS_32 = (4 + 4 + 4, 4 + 4 + 4 + 4)
BACKWARD_OF_A_LAYER = (0.3, 1.0)
LORA_RANK = 16

Move = Tuple[str, Callable[[Setup], Optional[Setup]]]


class Estimate(NamedTuple):
    """Bytes on one GPU, low and high, and the parts of it. ``tensors`` is what the allocator is asked for."""

    total: Range
    tensors: Range
    parts: Dict[str, Range]


class Model(NamedTuple):
    """What is known of a model: its counts, and the activations of one setup, whose batch and length are in it."""

    counts: Counts
    setup: Setup
    activations: Activations


def estimate(setup: Setup, model: Model) -> Estimate:
    """The peak over the end of the forward pass, the backward pass and the optimizer's step.

    Activations are scaled from the batch and length that were measured: both directions linear.
    """
    counts = _counted(model.counts, setup, model.setup)
    held = states(setup, counts)
    scale = setup.batch * setup.length / (model.setup.batch * model.setup.length)
    layer, residual = model.activations.layer * scale, model.activations.residual * scale
    kept = (residual if setup.checkpointing else layer) * counts.layers + model.activations.outside * scale
    logits = tuple(setup.batch * setup.length * counts.vocabulary * width for width in _logit_widths(setup))
    totals = []
    for side in (0, 1):
        resting = held["parameters"][side] + held["optimizer"][side] + held["masters"][side] + held["buffers"][side]
        gradients = held["gradients"][side]
        forward = kept + logits[side] + (gradients if setup.accumulates else 0.0)
        extra = layer * (BACKWARD_OF_A_LAYER[side] + (1.0 if setup.checkpointing else 0.0))
        early = kept + extra + (gradients if setup.accumulates else 0.0)
        late = gradients + extra + (residual if setup.checkpointing else layer)
        totals.append(resting + max(forward, early, late, gradients + held["step"][side]))
    tensors = (totals[0], totals[1])
    parts = {name: size for name, size in held.items() if size[1]}
    parts["activations"] = (kept, kept + layer) if setup.checkpointing else (kept, kept)
    parts["logits"] = (logits[0], logits[1])
    parts["context"] = CONTEXT
    return Estimate(_with_overhead(tensors), tensors, parts)


def tokens_that_fit(setup: Setup, model: Model, memory: float) -> int:
    """Tokens in one micro-batch at which the high estimate meets the memory; 0 where the states alone do not fit."""
    at = [estimate(setup._replace(batch=1, length=tokens), model).total[1] for tokens in (1024, 2048)]
    per_token = (at[1] - at[0]) / 1024
    if at[0] - 1024 * per_token > memory or per_token <= 0:
        return 0
    return int((memory - at[0]) / per_token) + 1024


def remedies(setup: Setup, model: Model, memory: float) -> Iterator[Tuple[Tuple[str, ...], Estimate]]:
    """Settings and what each leaves: every single one, then the shortest run of them that fits, without idle ones."""
    singles = [(name, move(setup)) for name, move in MOVES]
    possible = [(name, changed) for name, changed in singles if changed is not None]
    fits = False
    for name, changed in possible:
        found = estimate(changed, model)
        fits = fits or found.total[1] <= memory
        yield (name,), found
    if fits:
        return
    chosen = _together(setup, model, memory)
    if chosen:
        yield tuple(chosen), estimate(_applied(setup, chosen), model)


def _together(setup: Setup, model: Model, memory: float) -> List[str]:
    """The settings that fit together, the first ones first; none where all of them do not."""
    chosen: List[str] = []
    for name, _ in MOVES:
        if _applied(setup, [*chosen, name]) == _applied(setup, chosen):
            continue
        chosen.append(name)
        if estimate(_applied(setup, chosen), model).total[1] <= memory:
            break
    else:
        return []
    for name in list(chosen):
        fewer = [other for other in chosen if other != name]
        if estimate(_applied(setup, fewer), model).total[1] <= memory:
            chosen = fewer
    return chosen


def _applied(setup: Setup, names: Sequence[str]) -> Setup:
    for name, move in MOVES:
        if name in names:
            setup = move(setup) or setup
    return setup


def _counted(counts: Counts, setup: Setup, measured: Setup) -> Counts:
    """The counts with the adapters of a rank: known for the rank measured, else two percent of a layer's width."""
    if setup.rank is None or measured.rank is not None or counts.adapters:
        return counts
    return counts._replace(adapters=int(0.005 * counts.quantizable * setup.rank / LORA_RANK))


def _logit_widths(setup: Setup) -> Tuple[float, float]:
    """Bytes a logit: as computed, upcast, log-softmax or its gradient; in the high case both, and a shifted copy."""
    low, high = LOGITS_16 if WIDTH[setup.compute] == 2 else LOGITS_32
    return (0.0, 2.0) if setup.fused_loss else (float(low), float(high))


def _with_overhead(tensors: Range) -> Range:
    low, high = (size * factor + context for size, factor, context in zip(tensors, FRAGMENTATION, CONTEXT))
    return low, high


def _checkpointing(setup: Setup) -> Optional[Setup]:
    return None if setup.checkpointing else setup._replace(checkpointing=True)


def _single(setup: Setup) -> Optional[Setup]:
    return setup._replace(batch=1, accumulates=True) if setup.batch > 1 else None


def _shorter(setup: Setup) -> Optional[Setup]:
    return setup._replace(length=setup.length // 2) if setup.length >= 1024 else None


def _zero(stage: int) -> Callable[[Setup], Optional[Setup]]:
    def move(setup: Setup) -> Optional[Setup]:
        if setup.world < 2 or setup.stage >= stage and setup.engine:
            return None
        return setup._replace(engine=setup.engine or "deepspeed", stage=stage, weights=setup.compute)

    return move


def _small_optimizer(setup: Setup) -> Optional[Setup]:
    if setup.engine == "deepspeed" or "bit" in setup.optimizer or not setup.optimizer.startswith("adam"):
        return None
    return setup._replace(optimizer="adamw_8bit")


def _lora(setup: Setup) -> Optional[Setup]:
    return setup._replace(rank=LORA_RANK, weights=setup.compute) if setup.rank is None else None


def _qlora(setup: Setup) -> Optional[Setup]:
    if setup.bits or setup.stage == 3:
        return None
    return setup._replace(rank=setup.rank or LORA_RANK, weights=setup.compute, bits=4, double_quant=True)


def _offload(setup: Setup) -> Optional[Setup]:
    if setup.offload_optimizer or setup.engine == "fsdp":
        return None
    stage = max(setup.stage, 2)
    return setup._replace(engine="deepspeed", stage=stage, offload_optimizer=True, weights=setup.compute)


MOVES: Tuple[Move, ...] = (
    ("gradient checkpointing", _checkpointing),
    ("batch size 1 with accumulation", _single),
    ("half the max_length", _shorter),
    ("ZeRO-2", _zero(2)),
    ("ZeRO-3", _zero(3)),
    ("an 8-bit optimizer", _small_optimizer),
    ("LoRA", _lora),
    ("4-bit QLoRA", _qlora),
    ("the optimizer offloaded to the CPU", _offload),
)


def plain(estimated: Estimate) -> Row:
    """The estimate in GiB for a report."""
    parts = {name: [round(size / GIB, 2) for size in sizes] for name, sizes in estimated.parts.items()}
    return {"low": round(estimated.total[0] / GIB, 2), "high": round(estimated.total[1] / GIB, 2), "parts": parts}
