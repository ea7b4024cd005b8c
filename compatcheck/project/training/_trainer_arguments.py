"""The arguments of the transformers Trainer as they are given, whatever a DeepSpeed JSON or accelerate makes of them.

Fields and defaults: ``training_args.py`` of transformers 4.30 to 5.24, the same in each.
"""

from __future__ import annotations

from compatcheck.project.training._python_value import Open
from compatcheck.project.training._rows import read_rows, rows
from compatcheck.project.training._sheet import Sheet
from compatcheck.project.training._values import FLAG, NUMBER, parse_flag
from compatcheck.project.training.document import Keys

_PREFIX = "training.arguments."
_OTHERS = {"fp16": "bf16", "bf16": "fp16"}
_DEFAULTS: dict[str, object] = {
    "weight_decay": 0,
    "adam_beta1": 0.9,
    "adam_beta2": 0.999,
    "adam_epsilon": 1e-8,
    "auto_find_batch_size": False,
    "fp16": False,
    "bf16": False,
}
_ON_BY_DEFAULT_IN_TRL = ("bf16",)
_BACKENDS = ("fp16_backend", "half_precision_backend")


def read_arguments(sheet: Sheet, sections: Keys = (), *, complete: bool) -> None:
    """State the arguments that are given, and the defaults of the others where these are known to be all."""
    read_rows(sheet, rows(_PREFIX, NUMBER, "weight_decay", "adam_beta1", "adam_beta2", "adam_epsilon", below=sections))
    read_rows(sheet, rows(_PREFIX, FLAG, "auto_find_batch_size", below=sections))
    for name in _OTHERS:
        _precision(sheet, sections, name)
    if not complete:
        return
    sheet.state(f"{_PREFIX}complete", True)
    is_trl = sheet.fact("training.framework") == "trl"
    for name, value in _DEFAULTS.items():
        if not (is_trl and name in _ON_BY_DEFAULT_IN_TRL):
            sheet.default(f"{_PREFIX}{name}", value)


def _precision(sheet: Sheet, sections: Keys, name: str) -> None:
    """Whether fp16 or bf16 is on for training or evaluation; the Trainer refuses to have both on."""
    fact = f"{_PREFIX}{name}"
    for key in (f"{name}_full_eval", name):
        value = sheet.get(*sections, key)
        if value is not None and parse_flag(value) is None:
            sheet.leave_open(fact, (*sections, key), FLAG.mismatch)
            return
        if value is not None and (parse_flag(value) or not sheet.fact(fact)):
            sheet.state(fact, parse_flag(value), (*sections, key))
    if not sheet.is_decided(fact) and parse_flag(sheet.get(*sections, _OTHERS[name])):
        sheet.state(fact, False, (*sections, _OTHERS[name]))
    backends = [sheet.get(*sections, key) for key in _BACKENDS]
    if name == "fp16" and any(isinstance(each, Open) or each == "apex" for each in backends):
        sheet.unknown(fact, "apex, not the Trainer, may bring float16")
