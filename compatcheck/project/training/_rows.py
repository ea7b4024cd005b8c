"""Tables of what a format calls a fact, and what several formats read alike."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable
from typing import Any, NamedTuple

from compatcheck.files.secrets import excerpt
from compatcheck.project.python_values import Open
from compatcheck.project.training._sheet import Sheet
from compatcheck.project.training._values import Kind
from compatcheck.project.training.document import Keys

OPTIMIZERS = {
    "torch.optim.AdamW": "adamw_torch",
    "torch.optim.SGD": "sgd",
    "bitsandbytes.optim.AdamW8bit": "adamw_bnb_8bit",
    "bitsandbytes.optim.PagedAdamW": "paged_adamw_32bit",
    "bitsandbytes.optim.PagedAdamW32bit": "paged_adamw_32bit",
    "bitsandbytes.optim.PagedAdamW8bit": "paged_adamw_8bit",
}
"""What transformers calls the classes of optimizers."""

_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")
_QUANTIZED_NAME = re.compile(
    r"gptq|awq|aqlm|hqq|eetq|bnb|bitsandbytes|fp8|mxfp4|nf4|gpt-oss|int-?[48]|[48]-?bit|quanti[sz]ed|w4a16|w8a8",
    re.IGNORECASE,
)


class Row(NamedTuple):
    """A fact, where the file gives it, and of what kind it is there."""

    fact: str
    keys: Keys
    kind: Kind[Any]


def rows(prefix: str, kind: Kind[Any], *names: str, below: Keys = ()) -> tuple[Row, ...]:
    """Rows for facts that the file calls by the same name, or by another as ``fact=name``."""
    pairs = (name.partition("=") for name in names)
    return tuple(Row(f"{prefix}{fact}", (*below, *(given or fact).split(".")), kind) for fact, _, given in pairs)


def read_rows(sheet: Sheet, table: Iterable[Row]) -> None:
    """State the fact of each row that the file gives; a value that cannot be read leaves it unknown."""
    for row in table:
        sheet.read(row.kind, row.fact, *row.keys)


def is_left_open(
    sheet: Sheet,
    facts: Iterable[str],
    *keys: str | Keys,
    kind: Kind[Any] | None = None,
    words: Collection[str] = (),
) -> bool:
    """Whether one of these keys has a value that is not given, or neither of this kind nor one of these words.

    The facts are then unknown for that reason.
    """
    for each in keys:
        path = (each,) if isinstance(each, str) else each
        value = sheet.get(*path)
        other = kind is not None and value is not None and value not in words and kind.parse(value) is None
        if isinstance(value, Open) or other:
            for fact in facts:
                sheet.leave_open(fact, path, kind.mismatch if kind else "")
            return True
    return False


def read_model(sheet: Sheet, *keys: str | int) -> str | None:
    """The model at these keys: a folder or hub id to look for, and `model.name` where it reads as an id."""
    value = sheet.get(*keys)
    if not isinstance(value, str) or not value.strip():
        return None
    sheet.name("model", value)
    beside = os.path.join(os.path.dirname(sheet.document.path), value)
    if _HUB_ID.fullmatch(value) and not os.path.isdir(value) and not os.path.isdir(beside):
        sheet.state("model.name", value, keys)
    return value


def state_unquantized(sheet: Sheet, model: object) -> None:
    """State that nothing quantizes the weights, unless the name of the model says that they are so already."""
    if isinstance(model, str) and _QUANTIZED_NAME.search(model):
        sheet.unknown("training.quantization", f"the weights of {excerpt(model, 80)} may be stored quantized")
    else:
        sheet.state("training.quantization", None)
