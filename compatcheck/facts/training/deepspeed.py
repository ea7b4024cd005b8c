"""DeepSpeed's JSON configuration, with DeepSpeed's own defaults where every release shares them.

Defaults: ``runtime/zero/config.py`` and ``runtime/constants.py`` of DeepSpeed 0.5 to 0.19.8.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from compatcheck.errors import InputError
from compatcheck.facts._text import json_object, line_of, read_text
from compatcheck.model import Facts, Location

_PREFIX = "training.deepspeed."
_MARKS = (
    "zero_optimization",
    "train_micro_batch_size_per_gpu",
    "zero_allow_untested_optimizer",
    "zero_force_ds_cpu_optimizer",
    "wall_clock_breakdown",
    "steps_per_print",
)
_CHANGED = "the file does not say, and DeepSpeed's default changed in 0.19.3 (from {} to {})"
_MAY_ADD = "the file does not say, and accelerate turns on the precision it is told to"


class _Key(NamedTuple):
    """A fact below ``training.deepspeed``, where the file gives it, and its default or why there is none."""

    fact: str
    given_as: tuple[str, ...]
    type: type
    default: Any = None
    undecided: str = ""


_KEYS = (
    _Key("zero_stage", ("zero_optimization", "stage"), int, 0),
    _Key("overlap_comm", ("zero_optimization", "overlap_comm"), bool),
    _Key("contiguous_gradients", ("zero_optimization", "contiguous_gradients"), bool, True),
    _Key("reduce_scatter", ("zero_optimization", "reduce_scatter"), bool, True),
    _Key("reduce_bucket_size", ("zero_optimization", "reduce_bucket_size"), int, 500_000_000),
    _Key("allgather_bucket_size", ("zero_optimization", "allgather_bucket_size"), int, 500_000_000),
    _Key(
        "use_multi_rank_bucket_allreduce",
        ("zero_optimization", "use_multi_rank_bucket_allreduce"),
        bool,
        True,
    ),
    _Key("fp16.enabled", ("fp16", "enabled"), bool, None, _MAY_ADD),
    _Key("bf16.enabled", ("bf16", "enabled"), bool, None, _MAY_ADD),
    _Key(
        "bf16.check_grad_overflow",
        ("bf16", "check_grad_overflow"),
        bool,
        None,
        _CHANGED.format("false", "true"),
    ),
    _Key("gradient_clipping", ("gradient_clipping",), float, None, _CHANGED.format("0, off", "1")),
)
_OF_THE_TRAINING = (
    _Key("training.gradient_accumulation_steps", ("gradient_accumulation_steps",), int),
    _Key("training.per_device_train_batch_size", ("train_micro_batch_size_per_gpu",), int),
)
_OFFLOADS = (
    ("optimizer", "offload_optimizer", "cpu_offload"),
    ("param", "offload_param", "cpu_offload_params"),
)


class _Document(NamedTuple):
    """The file, and what has been read from it so far."""

    path: str
    text: str
    values: Mapping[str, Any]
    known: dict[str, Any]
    reasons: dict[str, str]
    locations: dict[str, Location]


def recognises(document: object) -> bool:
    """Whether a JSON value looks like a DeepSpeed configuration."""
    return isinstance(document, dict) and any(mark in document for mark in _MARKS)


def read(path: str) -> Facts:
    """``training.deepspeed``, and what else of the training the file decides.

    ``"auto"`` leaves a fact unknown. Raises `InputError` where the file is no strict JSON, or a value
    has a type that DeepSpeed refuses.
    """
    text = read_text(path)
    values = json_object(text, path)
    if "bf16" not in values and "bfloat16" in values:
        values["bf16"] = values["bfloat16"]
    document = _Document(path, text, values, {}, {}, {})
    for key in _KEYS:
        _read_key(document, key._replace(fact=_PREFIX + key.fact))
    for key in _OF_THE_TRAINING:
        if _given(document, key.given_as) is not None:
            _read_key(document, key)
    for decide in (_overlap_comm, _offload, _compile, _dtype):
        decide(document)
    return Facts(_nested(document.known), document.reasons, document.locations)


def _given(document: _Document, keys: tuple[str, ...]) -> Any:
    """What the file gives at nested keys, or ``None``; a section that is no object is refused."""
    value: Any = document.values
    for depth, key in enumerate(keys):
        if not isinstance(value, Mapping):
            raise _refused(document, keys[:depth], value, "an object")
        value = value.get(key)
        if value is None:
            return None
    return value


def _read_key(document: _Document, key: _Key) -> None:
    value = _given(document, key.given_as)
    if value is None:
        if key.undecided:
            document.reasons[key.fact] = key.undecided
        elif key.default is not None:
            document.known[key.fact] = key.default
    elif value == "auto":
        document.reasons[key.fact] = f"auto in {document.path}: the trainer decides"
    else:
        document.known[key.fact] = _typed(document, key, value)
        _locate(document, key.fact, key.given_as)


def _typed(document: _Document, key: _Key, value: Any) -> Any:
    """Numbers may be written as 5e8; a truth value is no number."""
    if key.type is bool and isinstance(value, bool):
        return value
    if key.type is not bool and isinstance(value, (int, float)) and not isinstance(value, bool):
        if key.type is float:
            return value
        if isinstance(value, int) or value.is_integer():
            return int(value)
    wanted = {bool: "true or false", int: "a whole number", float: "a number"}[key.type]
    raise _refused(document, key.given_as, value, wanted)


def _overlap_comm(document: _Document) -> None:
    """Not given, it is on for stage 3 alone (``DeepSpeedZeroConfig.overlap_comm_valid``)."""
    fact = _PREFIX + "overlap_comm"
    stage = document.known.get(_PREFIX + "zero_stage")
    if fact in document.known or fact in document.reasons:
        return
    if stage is None:
        document.reasons[fact] = "its default depends on the ZeRO stage, which is not known"
    else:
        document.known[fact] = stage == 3


def _offload(document: _Document) -> None:
    found = [name for name, section, legacy in _OFFLOADS if _offloaded(document, section, legacy)]
    document.known[_PREFIX + "offload"] = "+".join(found) or None


def _offloaded(document: _Document, section: str, legacy: str) -> bool:
    device = _given(document, ("zero_optimization", section, "device"))
    if device not in (None, "none"):
        _locate(document, _PREFIX + "offload", ("zero_optimization", section, "device"))
        return True
    return device is None and _given(document, ("zero_optimization", legacy)) is True


def _compile(document: _Document) -> None:
    switches = [_given(document, ("compile", name)) for name in ("enabled", "deepcompile")]
    document.known[_PREFIX + "compile"] = True in switches
    if True in switches:
        _locate(document, _PREFIX + "compile", ("compile",))


def _dtype(document: _Document) -> None:
    """DeepSpeed casts the model to the one that is on, and with both off refuses all but float32."""
    fact = "training.dtype"
    switches = {name: document.known.get(f"{_PREFIX}{name}.enabled") for name in ("bf16", "fp16")}
    for name, dtype in (("bf16", "bfloat16"), ("fp16", "float16")):
        if switches[name]:
            document.known[fact] = dtype
            _locate(document, fact, (name, "enabled"))
            return
    if all(value is False for value in switches.values()):
        document.known[fact] = "float32"
    else:
        undecided = (document.reasons.get(f"{_PREFIX}{name}.enabled") for name in switches)
        document.reasons[fact] = next(filter(None, undecided))


def _locate(document: _Document, fact: str, keys: tuple[str, ...]) -> None:
    document.locations[fact] = Location(document.path, line_of(document.text, keys))


def _refused(document: _Document, keys: tuple[str, ...], value: Any, wanted: str) -> InputError:
    line = line_of(document.text, keys)
    seen = f"line {line}: {'.'.join(keys)} is {value!r:.40}"
    return InputError("reading the DeepSpeed configuration", document.path, seen, f"it must be {wanted}")


def _nested(flat: Mapping[str, Any]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for path, value in flat.items():
        *parents, last = path.split(".")
        section = result
        for parent in parents:
            section = section.setdefault(parent, {})
        section[last] = value
    return result
