"""Switches of torch that any script may set, and what a loop of one's own makes of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from compatcheck.project.python_values import Reference
from compatcheck.project.script_calls.calls import Call
from compatcheck.project.scripts._program import CALL, NOTHING, Program, argument, document, read_each
from compatcheck.project.training._parallel import read_fsdp_section
from compatcheck.project.training._rows import OPTIMIZERS
from compatcheck.project.training._sheet import Sheet
from compatcheck.project.training._values import DTYPE, FLAG, NUMBER, TEXT, Kind
from compatcheck.project.training.document import Configuration

LAYER = 0
_SWITCHES: dict[str, tuple[str, str, Kind[Any]]] = {
    r"torch\.backends\.cuda\.enable_cudnn_sdp": ("training.cudnn_sdp", "enabled", FLAG),
    r"torch\.use_deterministic_algorithms": ("training.deterministic", "mode", FLAG),
    r"torch\.set_float32_matmul_precision": ("training.tf32", "precision", TEXT),
}
_ASSIGNED = {"fill_uninitialized_memory": "training.fill_uninitialized_memory", "allow_tf32": "training.tf32"}
_AUTOCAST = r"torch\.(?:cuda\.amp\.|amp\.)?autocast"
_DDP = r"torch\.nn\.parallel\.(?:distributed\.)?DistributedDataParallel"
_FSDP = r"torch\.distributed\.fsdp\.(?:[\w.]+\.)?FullyShardedDataParallel"
_FULLY_SHARD = r"torch\.distributed\.(?:fsdp\.|_composable\.)(?:[\w.]+\.)?fully_shard"
_CLIPS = r"torch\.nn\.utils\.(?:clip_grad\.)?clip_grad_norm_"


def read(program: Program) -> Configuration:
    """The switches; of a script without a Trainer also its autocast, its parallelism and its optimizer."""
    result = NOTHING
    for pattern, (fact, name, kind) in _SWITCHES.items():
        result = result.overlay(read_each(program.calls(pattern)[-1:], _reader(fact, name, kind)))
    for name, fact in _ASSIGNED.items():
        result = result.overlay(read_each(program.last_assignment(name), _reader(fact, name, FLAG)))
    if program.trainers or program.lightning:
        return result
    return result.overlay(_loop(program))


def _reader(fact: str, name: str, kind: Kind[Any]) -> Callable[[Call], Configuration]:
    def read_switch(call: Call) -> Configuration:
        sheet = Sheet(document(call, name))
        value = sheet.read(kind, fact, name)
        if name == "precision" and value is not None:
            sheet.state(fact, value != "highest", (name,))
        return sheet.configuration()

    return read_switch


def _loop(program: Program) -> Configuration:
    result = NOTHING
    for calls, reader in (
        (program.calls(_AUTOCAST), _autocast),
        (program.calls(_DDP), _ddp),
        (program.calls(_FSDP), _fsdp),
        (program.calls(_FULLY_SHARD)[:1], _fully_shard),
        (program.calls(_CLIPS), _clip),
        (program.methods("clip_grad_norm_"), _clip),
        (program.calls("|".join(name.replace(".", r"\.") for name in OPTIMIZERS)), _optimizer),
        ((*program.calls(r"torch\.compile"), *program.methods("compile")), _compile),
    ):
        result = result.overlay(read_each(calls, reader))
    return result


def _autocast(call: Call) -> Configuration:
    """Autocast on CUDA uses float16 by default."""
    sheet = Sheet(document(call, *(() if ".cuda." in call.callee else ("device_type", "dtype"))))
    if sheet.get("enabled") is False:
        return NOTHING
    dtype = sheet.read(DTYPE, "training.dtype", "dtype")
    if sheet.get("dtype") is None and (".cuda." in call.callee or sheet.get("device_type") == "cuda"):
        sheet.default("training.dtype", "float16", CALL)
        dtype = sheet.fact("training.dtype")
    mixed = {"float16": "fp16", "bfloat16": "bf16"}.get(dtype or "")
    if mixed:
        sheet.state("training.mixed_precision", mixed, ("dtype",) if sheet.has("dtype") else CALL)
    return sheet.configuration()


def _ddp(call: Call) -> Configuration:
    sheet = Sheet(document(call, "module"))
    sheet.read(FLAG, "training.ddp_find_unused_parameters", "find_unused_parameters")
    sheet.default("training.ddp_find_unused_parameters", False, CALL)
    sheet.default("training.fsdp", None, CALL)
    return sheet.configuration()


def _fsdp(call: Call) -> Configuration:
    sheet = Sheet(document(call, "module"))
    sheet.state("training.fsdp.version", 1, CALL)
    read_fsdp_section(sheet, ())
    strategy = call.keywords.get("sharding_strategy")
    if isinstance(strategy, Reference):
        sheet.state("training.fsdp.sharding_strategy", strategy.name.rpartition(".")[2], CALL)
    sheet.default("training.fsdp.sharding_strategy", "FULL_SHARD", CALL)
    sheet.default("training.fsdp.use_orig_params", False, CALL)
    return sheet.configuration()


def _fully_shard(call: Call) -> Configuration:
    sheet = Sheet(document(call, "module"))
    sheet.state("training.fsdp.version", 2, CALL)
    sheet.read(FLAG, "training.fsdp.reshard_after_forward", "reshard_after_forward")
    return sheet.configuration()


def _clip(call: Call) -> Configuration:
    sheet = Sheet(document(call, "parameters", "max_norm"))
    sheet.read(NUMBER, "training.max_grad_norm", "max_norm")
    return sheet.configuration()


def _optimizer(call: Call) -> Configuration:
    sheet = Sheet(document(call))
    sheet.state("training.optimizer", OPTIMIZERS[call.callee], CALL)
    learning_rate = argument(call, "lr", 1)
    if isinstance(learning_rate, (int, float)):
        sheet.read(NUMBER, "training.learning_rate", "lr")
    return sheet.configuration()


def _compile(call: Call) -> Configuration:
    sheet = Sheet(document(call))
    sheet.state("training.torch_compile", True, CALL)
    return sheet.configuration()
