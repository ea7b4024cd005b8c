"""PEFT's ``adapter_config.json``: how an adapter was made, in no particular order of its modules.

Source: ``src/peft/config.py`` and ``tuners/lora/config.py`` of 0.2 to 0.20, https://github.com/huggingface/peft.
Whether the base was quantized, and in which dtype the adapter was trained, is not in it.
"""

from __future__ import annotations

from compatcheck.project.training._rows import Row, is_left_open, read_model, read_rows, rows
from compatcheck.project.training._sheet import Sheet
from compatcheck.project.training._values import FLAG, LABELS, NUMBER, TEXT, parse_flag
from compatcheck.project.training.document import Configuration, Document

TITLE = "a PEFT adapter_config.json"
SUFFIXES = (".json",)
ROLE = "adapter"
MARKS = ("peft_type",)
NAMED_AS = ("adapter_config",)

_WITH = ("base_model_name_or_path", "r", "task_type", "target_modules", "inference_mode")


def recognises(document: Document) -> bool:
    """Whether a JSON object is the configuration of an adapter."""
    value = document.value
    return isinstance(value, dict) and isinstance(value.get("peft_type"), str) and any(each in value for each in _WITH)


def read(document: Document) -> Configuration:
    """``training.lora`` and the base."""
    sheet = Sheet(document)
    if read_model(sheet, "base_model_name_or_path"):
        sheet.name("base", sheet.get("base_model_name_or_path"))
    if is_left_open(sheet, ["training.method"], "peft_type"):
        return sheet.configuration()
    kind = sheet.get("peft_type").lower()
    if kind != "lora":
        sheet.state("training.method", kind, ("peft_type",))
        return sheet.configuration()
    if parse_flag(sheet.get("use_dora")):
        sheet.state("training.method", "dora", ("use_dora",))
    else:
        why = "an adapter's configuration does not show whether its base was quantized"
        sheet.unknown("training.method", why, ("peft_type",))
    read_rows(sheet, rows("training.lora.", NUMBER, "r", "lora_alpha"))
    read_rows(sheet, rows("training.lora.", FLAG, "use_dora", "use_rslora"))
    read_rows(sheet, rows("training.lora.", TEXT, "bias"))
    _modules(sheet)
    _init_weights(sheet)
    return sheet.configuration()


def _modules(sheet: Sheet) -> None:
    """A list, whose order is that of a set, the word all-linear, or a regular expression over all names."""
    value, fact = sheet.get("target_modules"), "training.lora.target_modules"
    if value == "all-linear":
        sheet.state(fact, ["all-linear"], ("target_modules",))
    elif isinstance(value, str):
        sheet.unknown(fact, "the value is a regular expression over the names of the model", ("target_modules",))
    elif value is None:
        sheet.unknown(fact, "PEFT uses its default modules for the model")
    else:
        _sorted_labels(sheet, fact, "target_modules")
    saved = "training.lora.modules_to_save"
    if sheet.get("modules_to_save"):
        _sorted_labels(sheet, saved, "modules_to_save")
    else:
        sheet.state(saved, None, ("modules_to_save",) if sheet.has("modules_to_save") else None)


def _sorted_labels(sheet: Sheet, fact: str, name: str) -> None:
    read_rows(sheet, [Row(fact, (name,), LABELS)])
    if sheet.is_stated(fact):
        sheet.state(fact, sorted(sheet.fact(fact)), (name,))


def _init_weights(sheet: Sheet) -> None:
    value, key = sheet.get("init_lora_weights"), ("init_lora_weights",)
    if isinstance(value, (bool, str)):
        sheet.state("training.lora.init_lora_weights", value, key)
    elif value is not None:
        sheet.leave_open("training.lora.init_lora_weights", key, "not true, false or a word")
