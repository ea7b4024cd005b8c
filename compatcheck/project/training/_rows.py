"""Tables of what a format calls a fact: read a row, and refuse a value the framework itself could not take."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, NamedTuple

from compatcheck.errors import InputError
from compatcheck.project.training._document import Document, Keys
from compatcheck.project.training._python_value import Open, Reference
from compatcheck.project.training._readings import Sheet, attention_name, dtype_name, flag_of, number_of

Kind = Literal["flag", "number", "whole", "text", "side", "dtype", "attention", "labels"]

_LARGEST = 10**18

_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")
_QUANTIZED_NAME = re.compile(
    r"gptq|awq|aqlm|hqq|eetq|bnb|bitsandbytes|fp8|mxfp4|nf4|gpt-oss|int-?[48]|[48]-?bit|quanti[sz]ed|w4a16|w8a8",
    re.IGNORECASE,
)


class Row(NamedTuple):
    """A fact, where the file gives it, and what it must be there."""

    fact: str
    keys: Keys
    kind: Kind


def rows(prefix: str, kind: Kind, *names: str, below: Keys = ()) -> tuple[Row, ...]:
    """Rows for facts that the file calls by the same name, or by another as ``fact=name``."""
    pairs = (name.partition("=") for name in names)
    return tuple(Row(f"{prefix}{fact}", (*below, *(given or fact).split(".")), kind) for fact, _, given in pairs)


def fill(sheet: Sheet, table: Iterable[Row], title: str) -> None:
    """State the fact of each row that the file gives; ``null`` says nothing and ``auto`` leaves it to the run.

    Raises `InputError` where a value has a type that the framework cannot take.
    """
    for row in table:
        value = sheet.given(*row.keys)
        if value is None:
            continue
        if isinstance(value, Open):
            sheet.unknown(row.fact, value.why, row.keys)
        elif isinstance(value, str) and value.lower() == "auto":
            sheet.unknown(row.fact, "auto: it is decided when the run starts", row.keys)
        else:
            _take(sheet, row, value, title)


def _take(sheet: Sheet, row: Row, value: Any, title: str) -> None:
    if row.kind in ("dtype", "attention"):
        name = value.name if isinstance(value, Reference) else value
        known = dtype_name(name) if row.kind == "dtype" else attention_name(name)
        if known is None and isinstance(name, str):
            sheet.leave(row.fact, row.keys, f"which is no {row.kind} known here")
            return
    elif isinstance(value, Reference):
        sheet.unknown(row.fact, f"it is {value.name}, which is not read", row.keys)
        return
    else:
        known = _UNDERSTOOD[row.kind](value)
    if known is None:
        raise refused(sheet.document, row.keys, value, _WANTED[row.kind], title)
    sheet.state(row.fact, known, row.keys)


def refused(document: Document, keys: Keys, value: Any, wanted: str, title: str) -> InputError:
    """The error for a value that is not what it must be."""
    line = document.place(keys).line
    at = f"line {line}: " if line else ""
    shown = "a mapping" if isinstance(value, Mapping) else f"{value!r:.40}"
    return InputError(
        f"reading {title}", document.path, f"{at}{'.'.join(map(str, keys))} is {shown}", f"it must be {wanted}"
    )


def left_open(sheet: Sheet, facts: Iterable[str], *keys: str) -> bool:
    """Whether one of these keys has a value that is not given literally; the facts are then unknown for that reason."""
    for key in keys:
        value = sheet.given(key)
        if isinstance(value, Open):
            for fact in facts:
                sheet.unknown(fact, value.why, (key,))
            return True
    return False


def word(sheet: Sheet, key: str, title: str) -> str | None:
    """The word at a key, where there is one; raises `InputError` for anything else but ``null``."""
    value = sheet.given(key)
    if value is not None and not isinstance(value, str):
        raise refused(sheet.document, (key,), value, "a word", title)
    return value


def model_named(sheet: Sheet, *keys: str | int) -> str | None:
    """The model at these keys: a folder or hub id to look for, and `model.name` where it reads as an id."""
    value = sheet.given(*keys)
    if not isinstance(value, str) or not value.strip():
        return None
    sheet.name("model", value)
    beside = os.path.join(os.path.dirname(sheet.document.path), value)
    if _HUB_ID.fullmatch(value) and not os.path.isdir(value) and not os.path.isdir(beside):
        sheet.state("model.name", value, keys)
    return value


def unquantized(sheet: Sheet, model: Any) -> None:
    """State that nothing quantizes the weights, unless the name of the model says that they are so already."""
    if isinstance(model, str) and _QUANTIZED_NAME.search(model):
        sheet.unknown("training.quantization", f"{model:.80} may be quantized as it is stored")
    else:
        sheet.state("training.quantization", None)


def _number(value: Any) -> int | float | None:
    number = number_of(value)
    return number if number is not None and abs(number) <= _LARGEST else None


def _whole(value: Any) -> int | None:
    number = _number(value)
    return int(number) if number is not None and float(number).is_integer() else None


def _side(value: Any) -> str | None:
    return value if value in ("left", "right") else None


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _labels(value: Any) -> list[str] | None:
    if isinstance(value, str):
        return [each for each in (part.strip() for part in value.split(",")) if each]
    words = isinstance(value, list) and all(isinstance(each, str) for each in value)
    return list(value) if words else None


_UNDERSTOOD: dict[Kind, Callable[[Any], Any]] = {
    "flag": flag_of,
    "number": _number,
    "whole": _whole,
    "text": _text,
    "side": _side,
    "labels": _labels,
}
_WANTED: dict[Kind, str] = {
    "flag": "true or false",
    "number": "a number",
    "whole": "a whole number",
    "text": "a word",
    "side": "left or right",
    "labels": "a list of words",
    "dtype": "a dtype such as bfloat16",
    "attention": "an attention such as sdpa",
}
