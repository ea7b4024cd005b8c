"""DeepSpeed's JSON configuration, with DeepSpeed's own defaults where every release shares them.

Defaults: ``runtime/zero/config.py`` and ``runtime/constants.py`` of DeepSpeed 0.5 to 0.19.8. What ``"auto"`` becomes:
``HfTrainerDeepSpeedConfig`` in ``transformers/integrations/deepspeed.py``, and ``set_mixed_precision`` in
``accelerate/utils/dataclasses.py`` for a precision the file does not speak of.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compatcheck.environment import Environment, Unknown, vocabulary
from compatcheck.environment.vocabulary import Fact
from compatcheck.language import marked
from compatcheck.project.python_values import Open
from compatcheck.project.training._contradiction import FACT as CONTRADICTIONS
from compatcheck.project.training._contradiction import spell
from compatcheck.project.training._rows import is_left_open
from compatcheck.project.training._sheet import Sheet
from compatcheck.project.training._trainer_match import contradictions
from compatcheck.project.training._values import FLAG, NUMBER, WHOLE, Kind, is_auto, parse_flag
from compatcheck.project.training.document import Configuration, Document

TITLE = "a DeepSpeed JSON"
SUFFIXES = (".json",)
ROLE = "deepspeed"
MARKS = (
    "zero_optimization",
    "train_micro_batch_size_per_gpu",
    "zero_allow_untested_optimizer",
    "zero_force_ds_cpu_optimizer",
    "wall_clock_breakdown",
    "steps_per_print",
)
NAMED_AS = ("ds_", "deepspeed", "zero")

_PREFIX = "training.deepspeed."
_MAY_ADD = marked("the file does not set the value, and accelerate turns on the precision passed to it")
_CHECK_CHANGED = marked(
    "the file does not set the value, and DeepSpeed's default changed in 0.19.3 (from false to true)"
)
_CLIPPING_CHANGED = marked(
    "the file does not set the value, and DeepSpeed's default changed in 0.19.3 (from 0, which means off, to 1)"
)
_NOTHING = Environment({})
_OTHER_FRAMEWORKS = ("xtuner", "nemo", "torchtune")


_READ_APART = tuple(f"{_PREFIX}{name}" for name in ("offload_optimizer_device", "offload_param_device", "compile"))
_FACTS = tuple(fact for fact in vocabulary.in_deepspeed_file() if fact.path not in _READ_APART)
_UNDECIDED = {
    "training.deepspeed.fp16.enabled": _MAY_ADD,
    "training.deepspeed.bf16.enabled": _MAY_ADD,
    "training.deepspeed.bf16.check_grad_overflow": _CHECK_CHANGED,
    "training.deepspeed.gradient_clipping": _CLIPPING_CHANGED,
}
_KINDS: dict[str, Kind[Any]] = {"boolean": FLAG, "integer": WHOLE, "number": NUMBER}
_FROM_TRAINER = {
    "training.deepspeed.gradient_clipping": "training.max_grad_norm",
    "training.gradient_accumulation_steps": "training.gradient_accumulation_steps",
    "training.per_device_train_batch_size": "training.per_device_train_batch_size",
}
_LEAVES = ("zero_optimization", "leaf_module")
_BY_HIDDEN_SIZE = ("reduce_bucket_size", "stage3_prefetch_bucket_size", "stage3_param_persistence_threshold")
_COMPILES = (("compile", "enabled"), ("compile", "deepcompile"))
_OLD_NAMES = {
    ("zero_optimization", "stage3_gather_16bit_weights_on_model_save"): "stage3_gather_fp16_weights_on_model_save",
    ("bf16",): "bfloat16",
}
_OFFLOADS = (
    ("optimizer", "offload_optimizer", "cpu_offload"),
    ("param", "offload_param", "cpu_offload_params"),
)


def recognises(document: Document) -> bool:
    """Whether a JSON object looks like a DeepSpeed configuration."""
    value = document.value
    return isinstance(value, dict) and "compute_environment" not in value and any(mark in value for mark in MARKS)


def read(document: Document, trainer: Environment = _NOTHING) -> Configuration:
    """``training.deepspeed``, and what else of the training the file decides.

    ``"auto"`` takes the value of the trainer, as transformers fills it in; where the trainer says nothing either, the
    fact is unknown. A value that contradicts the trainer's is unknown, for transformers refuses to start.
    """
    sheet = Sheet(document._replace(value=_with_present_names(document.value)))
    for fact in _FACTS:
        _read_fact(sheet, fact)
    _overlap_comm(sheet)
    if sheet.get(*_LEAVES) and not isinstance(sheet.get(*_LEAVES), Open):
        sheet.state(_PREFIX + "leaf_modules", True, _LEAVES)
    _offload(sheet)
    _compile(sheet)
    for section in ("optimizer", "scheduler"):
        _section_type(sheet, section)
    if trainer.get("training.framework") not in _OTHER_FRAMEWORKS:
        _apply_trainer(sheet, trainer)
    else:
        _apply_xtuner(sheet, trainer)
    _dtype(sheet, trainer)
    if refused := [*_contradictions_so_far(trainer), *contradictions(sheet, trainer)]:
        sheet.state(CONTRADICTIONS, refused)
    return sheet.configuration()


def _contradictions_so_far(trainer: Environment) -> list[Any]:
    known = trainer.get(CONTRADICTIONS)
    return [] if isinstance(known, Unknown) else list(known or ())


def _with_present_names(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values with the present names of keys that older releases called otherwise."""
    result = dict(values)
    for (*sections, name), old in _OLD_NAMES.items():
        section = result
        if sections and isinstance(result.get(sections[0]), dict):
            section = result[sections[0]] = dict(result[sections[0]])
        if name not in section and old in section:
            section[name] = section[old]
    return result


def _keys(fact: Fact) -> tuple[str, ...]:
    return tuple(fact.deepspeed.split("."))


def _read_fact(sheet: Sheet, fact: Fact) -> None:
    keys = _keys(fact)
    value = sheet.get(*keys)
    if value is None:
        if fact.path in _UNDECIDED:
            sheet.unknown(fact.path, _UNDECIDED[fact.path])
        elif fact.default is not None:
            sheet.state(fact.path, fact.default)
    elif is_auto(value):
        whose = "the model's hidden size" if keys[-1] in _BY_HIDDEN_SIZE else "the trainer"
        sheet.unknown(fact.path, f"auto in {sheet.document.path}: {whose} decides")
    else:
        sheet.read(_KINDS[fact.type.schema["type"]], fact.path, *keys)


def _overlap_comm(sheet: Sheet) -> None:
    """Not given, it is on for stage 3 alone (``DeepSpeedZeroConfig.overlap_comm_valid``)."""
    fact = _PREFIX + "overlap_comm"
    if sheet.get("zero_optimization", "overlap_comm") is not None:
        return
    if sheet.is_stated(_PREFIX + "zero_stage"):
        sheet.state(fact, sheet.fact(_PREFIX + "zero_stage") == 3)
    else:
        sheet.unknown(fact, "the default depends on the ZeRO stage, which is unknown")


def _offload(sheet: Sheet) -> None:
    fact, found, place = _PREFIX + "offload", [], None
    for name, section, legacy in _OFFLOADS:
        where: tuple[str, ...] = ("zero_optimization", section, "device")
        device = sheet.get(*where)
        if is_auto(device):
            sheet.unknown(fact, f"auto in {sheet.document.path}: the trainer decides")
            return
        if not isinstance(device, (str, type(None))):
            sheet.leave_open(fact, where, "not the name of a device")
            return
        if device is None and sheet.get("zero_optimization", legacy) is True:
            device, where = "cpu", ("zero_optimization", legacy)
        if device not in (None, "none"):
            found.append(name)
            place = place or where
            sheet.state(f"{_PREFIX}offload_{name}_device", device, where)
    sheet.state(fact, "+".join(found) or None, place)


def _compile(sheet: Sheet) -> None:
    if not is_left_open(sheet, [_PREFIX + "compile"], *_COMPILES, kind=FLAG):
        on = any(parse_flag(sheet.get(*keys)) for keys in _COMPILES)
        sheet.state(_PREFIX + "compile", on, ("compile",) if on else None)


def _section_type(sheet: Sheet, section: str) -> None:
    """Which optimizer or scheduler DeepSpeed makes, in lower case as it compares them; absent where it makes none.

    An Adam that is to be torch's own and not DeepSpeed's fused one is called ``torch_adam``.
    """
    fact, kind = _PREFIX + section, sheet.get(section, "type")
    if kind is None:
        sheet.state(fact, None)
    elif isinstance(kind, str):
        is_torch = "adam" in kind.lower() and sheet.get(section, "params", "torch_adam") is True
        sheet.state(fact, "torch_adam" if is_torch else kind.lower(), (section, "type"))
    else:
        sheet.leave_open(fact, (section, "type"), "not a name")


def _is_auto(sheet: Sheet, keys: tuple[str, ...]) -> bool:
    return bool(sheet.get(*keys) == "auto")


def _apply_trainer(sheet: Sheet, trainer: Environment) -> None:
    """Every ``auto`` for which the trainer has a value, and every value that contradicts the trainer's."""
    for fact in _FACTS:
        if fact.path in _FROM_TRAINER:
            name = _FROM_TRAINER[fact.path]
            _match(sheet, _keys(fact), fact.path, trainer.get(name), name)
    precision = _precision(trainer)
    for name in ("fp16", "bf16"):
        switch = precision if isinstance(precision, Unknown) else precision == name
        path = f"{_PREFIX}{name}.enabled"
        if sheet.get(name, "enabled") is None and not isinstance(switch, Unknown):
            sheet.state(path, switch)
        _match(sheet, (name, "enabled"), path, switch, "training.mixed_precision")


def _precision(trainer: Environment) -> str | Unknown:
    """The trainer's mixed precision in the words of accelerate."""
    stated = trainer.get("training.mixed_precision")
    if isinstance(stated, str):
        return stated
    dtype = trainer.get("training.dtype")
    return {"bfloat16": "bf16", "float16": "fp16", "float32": "no"}.get(str(dtype)) or Unknown()


def _match(sheet: Sheet, keys: tuple[str, ...], fact: str, ours: object, name: str) -> None:
    if isinstance(ours, Unknown) or ours is None:
        return
    if _is_auto(sheet, keys):
        sheet.state(fact, ours, keys)
    elif sheet.is_stated(fact) and sheet.fact(fact) != ours and sheet.get(*keys) is not None:
        theirs = f"{'.'.join(keys)} is {spell(sheet.fact(fact))}"
        why = f"{theirs}, but the trainer's {name.partition('.')[2]} is {spell(ours)}"
        sheet.unknown(fact, why, keys)


def _apply_xtuner(sheet: Sheet, trainer: Environment) -> None:
    """XTuner lets its own configuration rule over the numbers of the DeepSpeed JSON.

    https://github.com/InternLM/xtuner/blob/v0.1.23/xtuner/tools/train.py
    """
    for fact, name in _FROM_TRAINER.items():
        ours = trainer.get(name)
        if not isinstance(ours, Unknown) and ours is not None:
            sheet.state(fact, ours)


def _dtype(sheet: Sheet, trainer: Environment) -> None:
    """DeepSpeed casts the model to the one that is on, and with both off refuses all but float32."""
    fact = "training.dtype"
    autos = [name for name in ("bf16", "fp16") if _is_auto(sheet, (name, "enabled"))]
    if autos and trainer.get("training.framework") == "xtuner":
        _xtuner_dtype(sheet, autos)
        return
    switches = {name: sheet.fact(f"{_PREFIX}{name}.enabled") for name in ("bf16", "fp16")}
    for name, dtype in (("bf16", "bfloat16"), ("fp16", "float16")):
        if switches[name]:
            sheet.state(fact, dtype, (name, "enabled") if sheet.get(name, "enabled") is not None else None)
            return
    if all(value is False for value in switches.values()):
        sheet.state(fact, "float32")
    else:
        undecided = [sheet.reason(f"{_PREFIX}{name}.enabled") for name in switches]
        sheet.unknown(fact, next(filter(None, undecided), _MAY_ADD))


def _xtuner_dtype(sheet: Sheet, autos: list[str]) -> None:
    """XTuner turns on bf16 where every GPU can, and leaves fp16 for the others."""
    if "bf16" not in autos:
        sheet.state("training.dtype", "float16", ("fp16", "enabled"))
        return
    sheet.state("training.dtype_rule", "bfloat16-if-supported", ("bf16", "enabled"))
    sheet.unknown("training.dtype", "XTuner uses bfloat16 if the GPUs support it, else float16")
