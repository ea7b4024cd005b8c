"""The arguments of the transformers Trainer as they are given, whatever a DeepSpeed JSON or accelerate makes of them.

Fields and defaults: ``training_args.py`` of transformers 4.30 to 5.24, the same in each.
"""

from __future__ import annotations

from compatcheck.project.python_values import Open
from compatcheck.project.training._rows import read_rows, rows
from compatcheck.project.training._sheet import Sheet
from compatcheck.project.training._values import FLAG, NUMBER, TEXT, parse_flag
from compatcheck.project.training.document import Keys

_PREFIX = "training.arguments."
_NUMBERS = ("weight_decay", "adam_beta1", "adam_beta2", "adam_epsilon", "eval_steps", "save_steps")
_PRECISIONS = {"fp16": "bf16", "bf16": "fp16"}
_SWITCHES = ("auto_find_batch_size", "load_best_model_at_end", "fp16_full_eval", "bf16_full_eval", *_PRECISIONS)
_DEFAULTS: dict[str, object] = {
    "weight_decay": 0,
    "adam_beta1": 0.9,
    "adam_beta2": 0.999,
    "adam_epsilon": 1e-8,
    "eval_strategy": "no",
    "save_strategy": "steps",
    "save_steps": 500,
    **dict.fromkeys(_SWITCHES, False),
}
_OTHERWISE_IN_TRL = ("bf16",)
_EVALUATION = f"{_PREFIX}eval_steps"
_BACKENDS = ("fp16_backend", "half_precision_backend")


def read_arguments(sheet: Sheet, sections: Keys = (), *, complete: bool) -> None:
    """State the arguments that are given, and the defaults of the others where these are known to be all."""
    read_rows(sheet, rows(_PREFIX, NUMBER, *_NUMBERS, below=sections))
    read_rows(sheet, rows(_PREFIX, FLAG, *_SWITCHES, below=sections))
    strategies = ("eval_strategy=evaluation_strategy", "eval_strategy", "save_strategy")
    read_rows(sheet, rows(_PREFIX, TEXT, *strategies, below=sections))
    for name, other in _PRECISIONS.items():
        if not sheet.is_decided(f"{_PREFIX}{name}") and parse_flag(sheet.get(*sections, other)):
            sheet.state(f"{_PREFIX}{name}", False, (*sections, other))
    if any(isinstance(each, Open) or each == "apex" for each in (sheet.get(*sections, key) for key in _BACKENDS)):
        sheet.unknown(f"{_PREFIX}fp16", "apex may enable float16 instead of the Trainer")
    if complete:
        _defaults(sheet, sections)


def _defaults(sheet: Sheet, sections: Keys) -> None:
    is_trl = sheet.fact("training.framework") == "trl"
    sheet.state(f"{_PREFIX}complete", True)
    for name, value in _DEFAULTS.items():
        if not (is_trl and name in _OTHERWISE_IN_TRL):
            sheet.default(f"{_PREFIX}{name}", value)
    if sheet.fact(f"{_PREFIX}eval_strategy") != "steps":
        return
    if sheet.has(*sections, "logging_steps"):
        if not sheet.is_decided(_EVALUATION):
            sheet.read(NUMBER, _EVALUATION, *sections, "logging_steps")
    elif not is_trl:
        sheet.default(_EVALUATION, 500)
