"""Unsloth's ``FastLanguageModel`` and ``FastModel``: https://github.com/unslothai/unsloth/blob/main/unsloth/models/loader.py"""

from __future__ import annotations

from compatcheck.project.script_calls.calls import Call
from compatcheck.project.scripts._program import CALL, FAST_MODEL, NOTHING, Program, document, read_each
from compatcheck.project.training._rows import is_left_open, read_model, read_rows, rows
from compatcheck.project.training._sheet import Sheet
from compatcheck.project.training._values import DTYPE, FLAG, LABELS, NUMBER, parse_flag
from compatcheck.project.training.document import Configuration

LAYER = 2
_ADAPTS = r"unsloth\.(?:[\w.]+\.)?Fast\w*Model\.get_peft_model"
_LORA = (
    *rows("training.lora.", NUMBER, "r", "lora_alpha"),
    *rows("training.lora.", LABELS, "target_modules", "modules_to_save"),
    *rows("training.lora.", FLAG, "use_rslora"),
)
_FOUR_BITS = {"bits": 4, "method": "bitsandbytes", "type": "nf4", "double_quant": True}
_DEFAULTS = {"r": 16, "lora_alpha": 16}


def read(program: Program) -> Configuration:
    """What its loads and adapters say; that it is in use at all changes the Trainer."""
    loads = program.calls(FAST_MODEL.pattern)
    adapters = program.calls(_ADAPTS)
    if not loads and not adapters:
        return _absent(program)
    return read_each(loads, _read_load, needed=True).overlay(read_each(adapters, _read_adapter))


def _absent(program: Program) -> Configuration:
    """A script that makes its Trainer and never imports Unsloth runs without it."""
    if not program.trainers or program.imports("unsloth", "unsloth_zoo"):
        return NOTHING
    sheet = Sheet(document(program.trainers[0]))
    sheet.state("training.unsloth", False, CALL)
    return sheet.configuration()


def _read_load(call: Call) -> Configuration:
    """Unsloth loads in four bits by default: NF4 with double quantization."""
    sheet = Sheet(document(call, "model_name", "max_seq_length", "dtype", "load_in_4bit"))
    sheet.state("training.unsloth", True, CALL)
    read_model(sheet, "model_name")
    sheet.read(NUMBER, "training.max_length", "max_seq_length")
    sheet.read(DTYPE, "training.load_dtype", "dtype")
    others = ("load_in_8bit", "load_in_16bit", "load_in_fp8", "full_finetuning")
    if is_left_open(sheet, ("training.quantization",), "load_in_4bit", *others, kind=FLAG):
        return sheet.configuration()
    prefix = "training.quantization."
    if parse_flag(sheet.get("load_in_8bit")):
        sheet.state(f"{prefix}bits", 8, ("load_in_8bit",))
        sheet.state(f"{prefix}method", "bitsandbytes", ("load_in_8bit",))
    elif parse_flag(sheet.get("load_in_4bit")):
        for fact, value in _FOUR_BITS.items():
            sheet.state(f"{prefix}{fact}", value, ("load_in_4bit",))
    elif not sheet.has("load_in_4bit") and not any(sheet.get(name) for name in others):
        for fact, value in _FOUR_BITS.items():
            sheet.default(f"{prefix}{fact}", value, CALL)
    return sheet.configuration()


def _read_adapter(call: Call) -> Configuration:
    sheet = Sheet(document(call, "model", "r", "target_modules", "lora_alpha"))
    sheet.state("training.kbit_prepared", True, CALL)
    read_rows(sheet, _LORA)
    for fact, default in _DEFAULTS.items():
        sheet.default(f"training.lora.{fact}", default, CALL)
    if not sheet.get("modules_to_save"):
        sheet.default("training.lora.modules_to_save", None)
    checkpointing = sheet.get("use_gradient_checkpointing")
    if checkpointing in ("unsloth", True):
        sheet.state("training.gradient_checkpointing", True, ("use_gradient_checkpointing",))
    elif checkpointing is None:
        sheet.default("training.gradient_checkpointing", True, CALL)
    return sheet.configuration()
