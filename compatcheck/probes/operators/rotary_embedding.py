"""Rotary position embedding at the last position.

The RoPE module of the installed transformers, for the family of the user's config.json (default Llama), gives cos and
sin at positions from 0 to the last position (default 4095 and 131071). They are compared with float64 values, computed
from the frequencies that the module has when it is built in float32. These frequencies are compared with base ** (-2 i
/ dim) if config.json sets no scaling. The module is built as `from_pretrained` builds it, with the user's dtype as
torch's default. It also runs under autocast, as in mixed precision training.

Bound: u |y| for the rounding of the output, 2 a for cos and sin, and 2 a times the angle, for the rounding of its
product and of its reduction modulo 2 pi. The error of a frequency is at most a (4 + ln base) of itself. Baseline: the
same in float32, rounded. Control: the module built and called in float32, rounded once. A failure means angles in 16
bits: bfloat16 can represent 769 of 4096 positions, and the last one is off by radians. transformers 4.38.0 and 4.38.1
compute such angles under autocast for Llama and Gemma; 4.37.2 and 4.38.2 are right (measured with this probe;
huggingface/transformers#29285).

Casting the whole built module (`model.to(torch.bfloat16)`) rounds the frequencies of Llama (in every tested release
from 4.38.0 to 5.23.0; the cached tables of 4.37.2 are not affected). This shifts every later position. It is recorded,
and judged only if the request sets cast.

Request: seed, device, dtype, config, families (instead of the family of config), cast.
"""

from __future__ import annotations

import importlib
import inspect
import math
from typing import Any, Dict, Iterator, List, NamedTuple, Optional

from compatcheck.probes._criterion import (
    UNIT_ROUNDOFF,
    Measuring,
    Module,
    Request,
    Row,
    Settings,
    Stage,
    Tensor,
    Tensors,
)
from compatcheck.probes._criterion import judge as judge
from compatcheck.probes._device import NO_DEVICE, device_of
from compatcheck.probes.operators._operator import Problem, dtypes_of, rounded, trial

NEEDS: Dict[str, str] = {"torch": ">=1.13", "transformers": ">=4.31"}
TIMEOUT: float = 90.0
PROFILE: str = "quick"
SECONDS: float = 1.0

A = UNIT_ROUNDOFF["float32"]
FAMILY, LENGTHS = "llama", (4096, 131072)
MIXED = (("cpu", "bfloat16"), ("cuda", "bfloat16"), ("cuda", "float16"))
CAST = "only some trainers cast the whole module; judged only if the request sets cast"


class Rotary(NamedTuple):
    """How to build and call a family's module; ``layer_type`` where it keeps frequencies for several."""

    family: str
    module: Module
    config: Any
    length: int
    layer_type: str
    device: str


def measure(request: Request, stage: Stage) -> Measuring:
    """Rows of one family, length, dtype and way to build it each."""
    device = device_of(request)
    if device is None:
        return {"unsupported": NO_DEVICE}
    given = request.get("config") or {}
    families = request.get("families") or [given.get("model_type") or FAMILY]
    not_run: Dict[str, str] = {}
    for family in families:
        stage(f"{family}")
        try:
            kinds = list(_kinds(str(family), given if family == given.get("model_type") else {}, device))
        except (ImportError, AttributeError, TypeError, ValueError, KeyError) as error:
            not_run[family] = f"the RoPE module of this model cannot be built alone: {type(error).__name__}: {error}"[
                :200
            ]
            continue
        for kind in kinds:
            yield from _rows(kind, request, not_run)
    if len(not_run) == len(families):
        return {"unsupported": "; ".join(f"{family}: {why}" for family, why in not_run.items())}
    return {"device": device, "not_run": not_run}


def _kinds(family: str, given: Settings, device: str) -> Iterator[Rotary]:
    """Every length and layer type of a family, of the user's configuration or the family's own with longer texts."""
    from transformers import AutoConfig

    for length in [None] if given.get("max_position_embeddings") else LENGTHS:
        config = AutoConfig.for_model(family, **{key: value for key, value in given.items() if key != "model_type"})
        if hasattr(config, "get_text_config"):
            config = config.get_text_config()
        module = _module(type(config).__module__.replace(".configuration_", ".modeling_"))
        if length is not None:
            config.max_position_embeddings = length
        types: List[str] = [""]
        if "layer_type" in inspect.signature(module.forward).parameters:
            types = sorted(set(config.layer_types))
        for layer_type in types:
            kind = Rotary(family, module, config, int(config.max_position_embeddings), layer_type, device)
            _build(kind, "float32")
            yield kind


def _module(modeling: str) -> Module:
    """The class named after the rotary embedding; scaled and vision ones have longer names."""
    found = importlib.import_module(modeling)
    names = [name for name in vars(found) if name.endswith("RotaryEmbedding")]
    if not names:
        raise AttributeError(f"{modeling} has none")
    return getattr(found, min(names, key=len))


def _build(kind: Rotary, dtype: str) -> Module:
    """The module, built while ``dtype`` is torch's default, as from_pretrained does."""
    import torch

    known = inspect.signature(kind.module.__init__).parameters
    before = torch.get_default_dtype()
    torch.set_default_dtype(getattr(torch, dtype))
    try:
        if "config" in known:
            built = kind.module(config=kind.config)
        else:
            config = kind.config
            dim = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
            built = kind.module(dim, max_position_embeddings=kind.length, base=config.rope_theta)
    finally:
        torch.set_default_dtype(before)
    return built.to(kind.device)


def _rows(kind: Rotary, request: Request, not_run: Dict[str, str]) -> Iterator[Row]:
    import torch

    last = kind.length - 1
    positions = sorted({0, 1, min(255, last), min(257, last), last // 2 + 1, last})
    reference = _build(kind, "float32")
    tables = _tables(reference, kind, positions, "float32")
    frequencies = _frequencies(reference, kind)
    if frequencies is None or not tables:
        not_run[kind.family] = "the RoPE module of this model has a form that this probe does not support"
        return
    case = f"{kind.family} {kind.layer_type}, {kind.length} positions".replace(" ,", ",")
    yield from _frequency_rows(case, kind, frequencies, request)
    for dtype in dtypes_of(request, kind.device):
        problem = _problem(case, dtype, positions, frequencies, tables)
        asked = kind, positions, dtype
        yield trial(problem, "in float32, rounded", _rounded, tables, dtype, control=True)
        yield trial(problem, "built in float32", _called, reference, *asked)
        if dtype != "float32":
            yield trial(problem, f"built in {dtype}", _called, _build(kind, dtype), *asked)
        if (kind.device, dtype) in MIXED:
            with torch.autocast(kind.device, dtype=getattr(torch, dtype)):
                mixed = trial(problem, f"under autocast to {dtype}", _called, reference, *asked)
            yield mixed
        if dtype != "float32":
            cast = trial(problem, f"cast to {dtype}", _called, _cast(kind, dtype), *asked)
            yield cast if request.get("cast") else {"recorded": CAST, **cast}


def _cast(kind: Rotary, dtype: str) -> Module:
    import torch

    return _build(kind, "float32").to(getattr(torch, dtype))


def _frequencies(module: Module, kind: Rotary) -> Optional[Tensor]:
    """The inverse frequencies the module holds, float64 on the CPU."""
    name = f"{kind.layer_type}_inv_freq" if kind.layer_type else "inv_freq"
    held = getattr(module, name, None)
    return None if held is None else held.detach().double().cpu()


def _tables(module: Module, kind: Rotary, positions: List[int], dtype: str) -> Tensors:
    """cos and sin at the positions, one row each; empty where the module gives something else."""
    import torch

    rows = torch.tensor(positions, device=kind.device)
    x = torch.zeros(1, 1, len(positions), 2, dtype=getattr(torch, dtype), device=kind.device)
    if "position_ids" not in inspect.signature(module.forward).parameters:
        found = [table.reshape(-1, table.shape[-1])[rows] for table in module(x, seq_len=kind.length)]
    elif kind.layer_type:
        found = list(module(x, rows[None], kind.layer_type))
    else:
        found = list(module(x, rows[None]))
    if len(found) != 2 or any(table.is_complex() or table.numel() % len(positions) for table in found):
        return {}
    return {name: table.detach().reshape(len(positions), -1) for name, table in zip(("cos", "sin"), found)}


def _called(_: Problem, module: Module, kind: Rotary, positions: List[int], dtype: str) -> Tensors:
    return _tables(module, kind, positions, dtype)


def _rounded(_: Problem, tables: Tensors, dtype: str) -> Tensors:
    return rounded(tables, dtype)


def _problem(case: str, dtype: str, positions: List[int], frequencies: Tensor, tables: Tensors) -> Problem:
    """Exact tables in the layout and scale of those of the module in float32."""
    import torch

    angles = torch.tensor(positions, dtype=torch.float64)[:, None] * frequencies
    width = tables["cos"].shape[-1]
    if width == 2 * len(frequencies):
        halves = torch.cat((angles, angles), -1)
        pairs = angles.repeat_interleave(2, -1)
        sine = tables["sin"].double().cpu()
        angles = min(halves, pairs, key=lambda layout: float((layout.sin() - sine).norm()))
    scale = float(tables["cos"][0, 0])
    u, exact = UNIT_ROUNDOFF[dtype], {"cos": scale * angles.cos(), "sin": scale * angles.sin()}
    error = scale * (2 * A + (2 * A * angles).clamp(max=2.0))
    budget = {name: 2 * u * value.abs() + error for name, value in exact.items()}
    baseline = rounded({"cos": scale * angles.float().cos(), "sin": scale * angles.float().sin()}, dtype)
    return Problem(case, dtype, {}, exact, budget, baseline)


def _frequency_rows(case: str, kind: Rotary, frequencies: Tensor, request: Request) -> Iterator[Row]:
    """The frequencies against the formula, where the configuration asks for no scaling and names the base."""
    import torch

    base = _base(request.get("config") or {}, kind)
    if base is None:
        return
    exponents = torch.arange(len(frequencies), dtype=torch.float64) / len(frequencies)
    exact = base**-exponents
    budget = exact * A * (4 + math.log(base))
    problem = Problem(f"{case}, base {base:g}", "float32", {}, {"inv_freq": exact}, {"inv_freq": budget}, {})
    baseline = {"inv_freq": exact + budget / 2}
    yield trial(problem, "formula", _held, exact.float(), baseline=baseline, control=True)
    yield trial(problem, "built in float32", _held, frequencies, baseline=baseline)


def _held(_: Problem, frequencies: Tensor) -> Tensors:
    return {"inv_freq": frequencies}


def _base(given: Settings, kind: Rotary) -> Optional[float]:
    """rope_theta of config.json, or of the default Llama."""
    scaling = given.get("rope_scaling") or given.get("rope_parameters") or {}
    if kind.layer_type or scaling.get("rope_type", scaling.get("type", "default")) != "default":
        return None
    if not given and kind.family == FAMILY:
        return 10000.0
    theta = scaling.get("rope_theta", given.get("rope_theta"))
    return float(theta) if isinstance(theta, (int, float)) else None
