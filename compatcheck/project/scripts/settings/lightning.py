"""Lightning's ``Trainer``: https://github.com/Lightning-AI/pytorch-lightning/tree/2.5.0/src/lightning/pytorch/trainer"""

from __future__ import annotations

import re

from compatcheck.project.python_values import Open
from compatcheck.project.script_calls.calls import Call
from compatcheck.project.scripts._program import CALL, Program, document, last_name, read_each
from compatcheck.project.training._parallel import read_deepspeed
from compatcheck.project.training._rows import read_rows, rows
from compatcheck.project.training._sheet import Sheet
from compatcheck.project.training._values import FLAG, NUMBER, WHOLE
from compatcheck.project.training.document import Configuration

_ROWS = (
    *rows("training.", WHOLE, "gradient_accumulation_steps=accumulate_grad_batches"),
    *rows("training.", NUMBER, "max_grad_norm=gradient_clip_val", "num_train_epochs=max_epochs", "max_steps"),
    *rows("training.", FLAG, "deterministic"),
)
_PRECISIONS = {
    "bf16-mixed": ("bf16", "bfloat16"),
    "bf16": ("bf16", "bfloat16"),
    "16-mixed": ("fp16", "float16"),
    "16": ("fp16", "float16"),
    "32-true": ("no", "float32"),
    "32": ("no", "float32"),
    "bf16-true": ("no", "bfloat16"),
    "16-true": ("no", "float16"),
    "64-true": ("no", "float64"),
    "64": ("no", "float64"),
}
_STAGE = re.compile(r"deepspeed(?:_stage_(\d))?(_offload)?(?:_nvme)?")
_FALLBACK = "strategy is not read"


def read(program: Program) -> Configuration:
    """What the Trainer is given."""
    return read_each(program.lightning, _read, needed=True)


def _read(call: Call) -> Configuration:
    sheet = Sheet(document(call))
    sheet.state("training.framework", "lightning", CALL)
    read_rows(sheet, _ROWS)
    sheet.default("training.gradient_accumulation_steps", 1)
    _precision(sheet)
    _ranks(sheet)
    _strategy(sheet)
    return sheet.configuration()


def _precision(sheet: Sheet) -> None:
    value = sheet.get("precision")
    if value is None:
        mixed, dtype = _PRECISIONS["32"]
        if not sheet.has("plugins"):
            sheet.default("training.mixed_precision", mixed)
            sheet.default("training.dtype", dtype)
        return
    known = _PRECISIONS.get(str(value)) if isinstance(value, (str, int)) else None
    for fact, meaning in zip(("training.mixed_precision", "training.dtype"), known or ()):
        sheet.state(fact, meaning, ("precision",))
    if known is None:
        sheet.leave_open("training.dtype", ("precision",), "not a known precision")


def _ranks(sheet: Sheet) -> None:
    """Lightning starts its processes itself; a list of devices is one for each."""
    devices, nodes = sheet.get("devices"), sheet.get("num_nodes")
    count = len(devices) if isinstance(devices, list) else devices
    if type(count) is int and count > 0 and (nodes is None or type(nodes) is int):
        sheet.state("training.world_size", count * (nodes or 1), ("devices",))
    elif devices is not None:
        sheet.leave_open("training.world_size", ("devices",), "not a number of devices")


def _strategy(sheet: Sheet) -> None:
    value = sheet.get("strategy")
    keys = ("strategy",)
    if value is None or value == "auto":
        sheet.default("training.deepspeed", None)
        sheet.default("training.fsdp", None)
    elif isinstance(value, Call):
        _strategy_object(sheet, value)
    elif isinstance(value, str):
        stage = _STAGE.fullmatch(value)
        if stage:
            zero = {"stage": int(stage[1] or 1), **({"offload_optimizer": {"device": "cpu"}} if stage[2] else {})}
            sheet.inline("deepspeed", keys, {"zero_optimization": zero})
        else:
            sheet.state("training.deepspeed", None, keys)
        if value.startswith("fsdp"):
            sheet.state("training.fsdp", {}, keys)
        else:
            sheet.state("training.fsdp", None, keys)
        if value.startswith("ddp"):
            sheet.state("training.ddp_find_unused_parameters", value.endswith("find_unused_parameters_true"), keys)
    else:
        for fact in ("training.deepspeed", "training.fsdp"):
            sheet.leave_open(fact, keys, _FALLBACK)


def _strategy_object(sheet: Sheet, strategy: Call) -> None:
    keys, name = ("strategy",), last_name(strategy)
    if name == "DeepSpeedStrategy":
        inner = Sheet(document(strategy))
        if read_deepspeed(inner, ("config",)):
            sheet.include(inner)
        elif strategy.gap or isinstance(strategy.keywords.get("stage"), Open):
            sheet.unknown("training.deepspeed", strategy.gap or "the ZeRO stage is computed by the script", keys)
        else:
            sheet.inline("deepspeed", keys, {"zero_optimization": {"stage": strategy.keywords.get("stage", 2)}})
    else:
        sheet.state("training.deepspeed", None, keys)
    if name == "FSDPStrategy":
        shards = strategy.keywords.get("sharding_strategy")
        sheet.state("training.fsdp", {}, keys)
        if isinstance(shards, str):
            sheet.state("training.fsdp.sharding_strategy", shards, keys)
    elif name != "ModelParallelStrategy":
        sheet.state("training.fsdp", None, keys)
    if name == "DDPStrategy" and isinstance(strategy.keywords.get("find_unused_parameters", False), bool):
        unused = strategy.keywords.get("find_unused_parameters", False)
        sheet.state("training.ddp_find_unused_parameters", unused, keys)
