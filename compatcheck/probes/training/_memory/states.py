"""Parameters, gradients, optimiser states and master weights of one process, in closed form.

Mixed-precision Adam holds 2 + 2 + 12 bytes a parameter (16-bit weight and gradient; 32-bit master weight and two
moments), of which ZeRO-1 shares the 12, ZeRO-2 the 14 and ZeRO-3 the 16 among N processes (Rajbhandari et al., ZeRO,
section 3 and figure 1, https://arxiv.org/abs/1910.02054). Without DeepSpeed the optimiser works on the weights as they
are held, with moments of their dtype. 4-bit weights take half a byte and, for each block of 64, four bytes of scale,
or one and 4/256 with double quantisation (Dettmers et al., QLoRA, section 3, https://arxiv.org/abs/2305.14314).
"""

from __future__ import annotations

from typing import Dict, NamedTuple, Tuple

from compatcheck.probes.training._memory.setup import WIDTH, Setup

Range = Tuple[float, float]

BLOCK_4BIT, BLOCK_8BIT = 64, 256
EIGHT_BIT = 1 + 4 / BLOCK_8BIT
DEFAULT_BUCKET = 5e8
LIVE_PARAMETERS = 1e9
UNKNOWN_OPTIMIZER = (0.5, 8.0)
OPTIMIZERS: Tuple[Tuple[str, Range], ...] = (
    ("galore", UNKNOWN_OPTIMIZER),
    ("apollo", UNKNOWN_OPTIMIZER),
    ("lomo", (0.0, 0.1)),
    ("lion_8bit", (EIGHT_BIT, EIGHT_BIT)),
    ("lion", (4.0, 4.0)),
    ("4bit", (1.0, 1.3)),
    ("8bit", (2 * EIGHT_BIT, 2 * EIGHT_BIT)),
    ("adamw_mini", (4.0, 4.2)),
    ("adam", (8.0, 8.0)),
    ("adafactor", (0.0, 0.1)),
    ("adagrad", (4.0, 4.0)),
    ("rmsprop", (4.0, 8.0)),
    ("muon", (4.0, 8.0)),
    ("sgd", (0.0, 4.0)),
)


class Counts(NamedTuple):
    """Parameters of a model: all, those quantised where weights are, those of a layer, of the output, of adapters.

    ``adapters`` counts what LoRA adds and the modules trained whole beside it.
    """

    total: int
    quantizable: int
    layer: int
    head: int
    vocabulary: int
    layers: int
    adapters: int = 0


def states(setup: Setup, counts: Counts) -> Dict[str, Range]:
    """Bytes of each kind, low and high: parameters, gradients, optimizer, masters, buffers, step."""
    trained = counts.total if setup.rank is None else counts.adapters
    shared = {stage: setup.world if setup.engine and setup.stage >= stage else 1 for stage in (1, 2, 3)}
    mixed = setup.engine == "deepspeed" and WIDTH[setup.compute] == 2
    width = _trained_width(setup)
    gradients = 0.0 if setup.offload_optimizer and setup.stage >= 1 else width * trained / shared[2]
    low, high = _optimizer(setup, width, mixed)
    masters = 4 * trained / shared[1] if mixed or setup.engine == "deepspeed" and setup.stage >= 1 else 0.0
    resident = 0.0 if setup.offload_optimizer else 1.0
    step = 4 * trained / shared[1] if mixed else width * trained / shared[1] if _uses_foreach(setup) else 0.0
    return {
        "parameters": tuple(each / shared[3] for each in _parameters(setup, counts)),  # type: ignore[dict-item]
        "gradients": (gradients, gradients),
        "optimizer": (resident * low * trained / shared[1], resident * high * trained / shared[1]),
        "masters": (resident * masters, resident * masters),
        "buffers": _buffers(setup, counts, trained, width),
        "step": (
            resident * step if setup.optimizer in ("adamw_torch", "adamw_hf") and not mixed else 0.0,
            resident * step,
        ),
    }


def _trained_width(setup: Setup) -> int:
    """Bytes of a trained weight. peft holds adapters over a 16-bit base in float32 unless DeepSpeed casts them."""
    if setup.rank is not None and setup.engine != "deepspeed":
        return 4
    return WIDTH[setup.weights]


def _parameters(setup: Setup, counts: Counts) -> Range:
    width = WIDTH[setup.weights]
    extra = counts.adapters * _trained_width(setup) if setup.rank is not None else 0
    if setup.offload_params:
        return 0.0, float(extra)
    if not setup.bits:
        return (counts.total * width + extra,) * 2
    scales = (1 + 4 / 256) / BLOCK_4BIT if setup.double_quant else 4 / BLOCK_4BIT
    packed = counts.quantizable * (0.5 + scales if setup.bits == 4 else 1.0)
    rest = counts.total - counts.quantizable
    low = 4 if setup.kbit_prepared else min(width, WIDTH[setup.compute])
    high = min(width, WIDTH[setup.compute]) if setup.kbit_prepared is False else 4
    return packed + rest * low + extra, packed + rest * high + extra


def _optimizer(setup: Setup, width: int, mixed: bool) -> Range:
    """Bytes a trained parameter; paged states may leave the GPU."""
    low, high = next((size for name, size in OPTIMIZERS if name in setup.optimizer), UNKNOWN_OPTIMIZER)
    by_bitsandbytes = "bit" in setup.optimizer or "bnb" in setup.optimizer or "paged" in setup.optimizer
    if width == 2 and not mixed and not by_bitsandbytes:
        low, high = low / 2, high / 2
    return (0.0 if "paged" in setup.optimizer else low), high


def _uses_foreach(setup: Setup) -> bool:
    """Whether the step makes a copy of the second moments, as torch's multi-tensor Adam does."""
    return setup.optimizer.startswith("adam") and not any(
        word in setup.optimizer for word in ("fused", "bit", "bnb", "mini", "apex")
    )


def _buffers(setup: Setup, counts: Counts, trained: int, width: int) -> Range:
    """What sharding and reducing need beside the states."""
    if setup.engine and setup.stage == 3:
        live = 2.0 * counts.layer * WIDTH[setup.compute]
        most = LIVE_PARAMETERS if setup.engine == "deepspeed" else 4.0 * counts.layer
        return live, live + min(most, counts.total) * WIDTH[setup.compute]
    if setup.engine == "deepspeed" and setup.stage >= 1:
        bucket = min(setup.bucket if setup.bucket is not None else DEFAULT_BUCKET, trained) * width
        return bucket, bucket * (1.0 if setup.overlap is False else 2.0) + min(DEFAULT_BUCKET, trained) * width
    if setup.world > 1:
        return trained * width, trained * width
    return 0.0, 0.0
