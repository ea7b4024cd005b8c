"""The kinds of values that configurations hold, read alike in every format.

A kind never refuses a value: what it cannot read is ``None``, and its fact is then unknown with a reason.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from compatcheck.files import limits
from compatcheck.files.secrets import excerpt
from compatcheck.project.python_values import Open, Reference
from compatcheck.project.script_calls.calls import Call

Value = TypeVar("Value")

_DTYPES = {
    "bfloat16": "bfloat16",
    "bf16": "bfloat16",
    "float16": "float16",
    "fp16": "float16",
    "half": "float16",
    "float32": "float32",
    "fp32": "float32",
    "float": "float32",
    "float64": "float64",
    "double": "float64",
}
_ATTENTIONS = {
    "eager": "eager",
    "sdpa": "sdpa",
    "flash_attention_2": "flash_attention_2",
    "flash_attention_3": "flash_attention_3",
    "flex_attention": "flex_attention",
    "xformers": "xformers",
    "fa2": "flash_attention_2",
    "flash_attn": "flash_attention_2",
    "flash_attention": "flash_attention_2",
}
_WORDS = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}
_PLACEHOLDER = re.compile(r".*\$\{|\$[A-Za-z_]\w*$|\{\{.*\}\}$", re.DOTALL)


@dataclass(frozen=True)
class Kind(Generic[Value]):
    """How a value of this kind is read, and the words for one that is not of it."""

    parse: Callable[[object], Value | None]
    mismatch: str


def dtype_name(value: object) -> str | None:
    """The dtype that a word such as ``bf16`` or ``torch.bfloat16`` names, else ``None``."""
    name = value.name if isinstance(value, Reference) else value
    return _DTYPES.get(name.removeprefix("torch.").lower()) if isinstance(name, str) else None


def attention_name(value: object) -> str | None:
    """The attention implementation in the words of transformers, else ``None``."""
    name = value.name if isinstance(value, Reference) else value
    return _ATTENTIONS.get(name.lower()) if isinstance(name, str) else None


def parse_flag(value: object) -> bool | None:
    """The truth value of a setting, also where it is written as a word; ``None`` where it is none."""
    if isinstance(value, bool):
        return value
    if isinstance(value, int) and value in (0, 1):
        return bool(value)
    return _WORDS.get(value.lower()) if isinstance(value, str) else None


def parse_number(value: object) -> int | float | None:
    """The number of a setting, also where YAML left ``2e-5`` a word; ``None`` for infinite and huge ones."""
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        try:
            value = float(value) if len(value) < 40 else None
        except ValueError:
            return None
        if value is not None and value.is_integer() and abs(value) < 1e15:
            return int(value)
    if not isinstance(value, (int, float)) or not math.isfinite(min(abs(value), 2 * limits.NUMBER)):
        return None
    return value if abs(value) <= limits.NUMBER else None


def parse_whole(value: object) -> int | None:
    """The whole number of a setting, also where it is written as ``5e8``."""
    number = parse_number(value)
    return int(number) if number is not None and float(number).is_integer() else None


def parse_labels(value: object) -> list[str] | None:
    """A list of words, also where one word holds them all, separated by commas."""
    if isinstance(value, str):
        return [each for each in (part.strip() for part in value.split(",")) if each]
    words = isinstance(value, (list, tuple)) and all(isinstance(each, str) for each in value)
    return list(value) if words else None  # type: ignore[call-overload]


def parse_loggers(value: object) -> list[str] | None:
    """The loggers of the Trainer: words, ``all`` or ``none``; an empty list is ``none``."""
    loggers = parse_labels(value)
    return loggers or ["none"] if loggers is not None else None


def parse_resume(value: object) -> bool | None:
    """Whether a run resumes from a checkpoint: a truth value, or the folder to resume from."""
    if isinstance(value, str):
        return value.strip().lower() not in ("", "false", "none", "null")
    return value if isinstance(value, bool) else None


def explain_mismatch(path: str, value: object, mismatch: str) -> str:
    """Why a value at this path of a file leaves its fact unknown."""
    if isinstance(value, Open):
        return value.why
    if isinstance(value, Reference):
        return f"the value is {value.name}, which is not read"
    if isinstance(value, Call):
        return f"set by {value.callee.lstrip('.')}(), which is not run"
    if is_auto(value):
        return "auto: the value is decided when the run starts"
    return (
        f"{path} is a mapping, {mismatch}"
        if isinstance(value, dict)
        else f"{path} is {excerpt(repr(value), 60)}, {mismatch}"
    )


def is_auto(value: object) -> bool:
    """Whether the run decides."""
    return isinstance(value, str) and value.lower() == "auto"


def is_placeholder(value: object) -> bool:
    """Whether a word such as ``${BATCH}`` stands for a value that something else fills in."""
    if isinstance(value, list):
        return any(is_placeholder(each) for each in value)
    return isinstance(value, str) and _PLACEHOLDER.match(value.strip()) is not None


def choice(words: Mapping[object, Value]) -> Kind[Value]:
    """One of these words, each with the value that it means."""
    *others, last = map(str, words)
    mismatch = f"not {', '.join(others)} or {last}"
    return Kind(lambda value: next((meaning for word, meaning in words.items() if word == value), None), mismatch)


FLAG = Kind(parse_flag, "not true or false")
NUMBER = Kind(parse_number, "not a number")
WHOLE = Kind(parse_whole, "not a whole number")
TEXT = Kind(lambda value: value if isinstance(value, str) else None, "not a word")
RESUME = Kind(parse_resume, "not true, false or a checkpoint")
SIDE = choice({"left": "left", "right": "right"})
DTYPE = Kind(dtype_name, "not a known dtype")
ATTENTION = Kind(attention_name, "not a known attention implementation")
LABELS = Kind(parse_labels, "not a list of words")
LOGGERS = Kind(parse_loggers, "not a list of words")
