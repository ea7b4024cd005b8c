"""``Accelerator`` with its plugins: ``accelerate/accelerator.py`` of 0.20 to 1.12.

https://github.com/huggingface/accelerate/blob/v1.12.0/src/accelerate/accelerator.py
"""

from __future__ import annotations

from compatcheck.project.script_calls.calls import Call
from compatcheck.project.scripts._program import CALL, NOTHING, Program, document, library, read_each
from compatcheck.project.training._parallel import read_fsdp_section
from compatcheck.project.training._sheet import Sheet
from compatcheck.project.training._values import FLAG, WHOLE, choice
from compatcheck.project.training.document import Configuration

LAYER = 0
_CLASS = r"accelerate\.(?:[\w.]+\.)?Accelerator"
_PRECISION = choice({"no": "no", "fp16": "fp16", "bf16": "bf16"})
_DTYPES = {"fp16": "float16", "bf16": "bfloat16"}
LAUNCHER_MAY_SET = "the Accelerator sets no value, but its launcher may"


def read(program: Program) -> Configuration:
    """What the Accelerator of a loop of one's own says."""
    if program.trainers or program.lightning:
        return NOTHING
    return read_each(program.calls(_CLASS), _read, needed=True)


def _read(call: Call) -> Configuration:
    sheet = Sheet(document(call, "device_placement", "split_batches", "mixed_precision", "gradient_accumulation_steps"))
    sheet.state("training.framework", library(call), CALL)
    sheet.read(WHOLE, "training.gradient_accumulation_steps", "gradient_accumulation_steps")
    if sheet.get("gradient_accumulation_steps") is None:
        sheet.unknown("training.gradient_accumulation_steps", LAUNCHER_MAY_SET)
    precision = sheet.read(_PRECISION, "training.mixed_precision", "mixed_precision")
    if precision in _DTYPES:
        sheet.state("training.dtype", _DTYPES[precision], ("mixed_precision",))
    elif sheet.get("mixed_precision") is None:
        sheet.unknown("training.mixed_precision", LAUNCHER_MAY_SET)
    _plugins(sheet)
    return sheet.configuration()


def _plugins(sheet: Sheet) -> None:
    deepspeed, fsdp = sheet.get("deepspeed_plugin"), sheet.get("fsdp_plugin")
    if isinstance(deepspeed, Call):
        _deepspeed(sheet, deepspeed)
    elif deepspeed is not None:
        sheet.leave_open("training.deepspeed", ("deepspeed_plugin",), "which is not read")
    if isinstance(fsdp, Call):
        _fsdp(sheet, fsdp)
    elif fsdp is not None:
        sheet.leave_open("training.fsdp", ("fsdp_plugin",), "which is not read")


def _deepspeed(sheet: Sheet, plugin: Call) -> None:
    """A file or mapping that is given, else what the plugin makes of its own few settings: stage 2 by default."""
    config = plugin.keywords.get("hf_ds_config", plugin.positional[0] if plugin.positional else None)
    if isinstance(config, str):
        sheet.name("deepspeed", config, ("deepspeed_plugin",))
    elif isinstance(config, dict):
        sheet.inline("deepspeed", ("deepspeed_plugin",), config)
    elif config is None and not plugin.gap:
        keys = ("gradient_clipping", "gradient_accumulation_steps")
        zero: dict[str, object] = {"stage": plugin.keywords.get("zero_stage", 2)}
        for name in ("optimizer", "param"):
            zero[f"offload_{name}"] = {"device": plugin.keywords.get(f"offload_{name}_device")}
        value = {"zero_optimization": zero, **{key: plugin.keywords.get(key, "auto") for key in keys}}
        sheet.inline("deepspeed", ("deepspeed_plugin",), value)
        sheet.place_inlined("deepspeed", {("deepspeed_plugin",): plugin.at})
    else:
        sheet.unknown("training.deepspeed", plugin.gap or "the settings are computed", ("deepspeed_plugin",))


def _fsdp(sheet: Sheet, plugin: Call) -> None:
    inner = Sheet(document(plugin))
    strategy = getattr(plugin.keywords.get("sharding_strategy"), "name", plugin.keywords.get("sharding_strategy"))
    inner.state("training.fsdp", {}, CALL)
    inner.read(FLAG, "training.fsdp.offload", "cpu_offload")
    inner.default("training.fsdp.offload", False, CALL)
    read_fsdp_section(inner, ())
    if isinstance(strategy, str):
        inner.state("training.fsdp.sharding_strategy", strategy.rpartition(".")[2], CALL)
    sheet.include(inner)
