"""What one reader has read so far: facts with their places, what stays open and why, and the files it names."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from compatcheck.environment import Facts, Location
from compatcheck.project.training._document import Document, Keys, Said
from compatcheck.project.training._python_value import Open

_Value = TypeVar("_Value")

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


def dtype_name(value: Any) -> str | None:
    """The dtype that a word such as ``bf16`` or ``torch.bfloat16`` names, else ``None``."""
    return _DTYPES.get(value.removeprefix("torch.").lower()) if isinstance(value, str) else None


def attention_name(value: Any) -> str | None:
    """The attention implementation in the words of transformers, else ``None``."""
    return _ATTENTIONS.get(value.lower()) if isinstance(value, str) else None


def flag_of(value: Any) -> bool | None:
    """The truth value of a setting, also where it is written as a word; ``None`` where it is none."""
    if isinstance(value, bool):
        return value
    if isinstance(value, int) and value in (0, 1):
        return bool(value)
    return _WORDS.get(value.lower()) if isinstance(value, str) else None


def number_of(value: Any) -> int | float | None:
    """The number of a setting, also where YAML left ``2e-5`` a word; ``None`` where it is no finite number."""
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        try:
            value = float(value) if len(value) < 40 else None
        except ValueError:
            return None
        if value is not None and value.is_integer() and abs(value) < 1e15:
            return int(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if isinstance(value, int) else None


class Sheet:
    """The facts of one document; paths of facts are whole, as ``training.dtype``, and keys are those of the file."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self._known: dict[str, Any] = {}
        self._reasons: dict[str, str] = {}
        self._locations: dict[str, Location] = {}
        self._names: dict[str, str] = {}
        self._inlined: dict[str, Document] = {}
        self._places: dict[str, Location] = {}

    def given(self, *keys: str | int) -> Any:
        """What the file gives at nested keys, or ``None``."""
        value: Any = self.document.value
        for key in keys:
            if isinstance(value, Mapping):
                value = value.get(key)
            elif isinstance(value, list) and isinstance(key, int) and -len(value) <= key < len(value):
                value = value[key]
            else:
                return None
        return value

    def has(self, *keys: str | int) -> bool:
        """Whether the file names the key at all, were it only to give null."""
        parent = self.given(*keys[:-1]) if len(keys) > 1 else self.document.value
        return isinstance(parent, Mapping) and keys[-1] in parent

    def state(self, fact: str, value: Any, keys: Keys | None = None) -> None:
        """A fact, read at these keys of the file; without keys it follows from what the file does not say."""
        self._known[fact] = value
        self._reasons.pop(fact, None)
        self._locations.pop(fact, None)
        if keys is not None:
            self._locations[fact] = self.document.place(keys)

    def unknown(self, fact: str, why: str, keys: Keys | None = None) -> None:
        """A fact that the file leaves open, with the reason in words; keys give the place of what leaves it so."""
        self._known.pop(fact, None)
        self._locations.pop(fact, None)
        if keys is not None:
            place = self.document.place(keys)
            at = f":{place.line}" if place.line else ""
            why = f"{why} ({os.path.basename(place.file)}{at})"
        self._reasons[fact] = why

    def known(self, fact: str) -> Any:
        """The value stated for a fact so far, or ``None``."""
        return self._known.get(fact)

    def is_stated(self, fact: str) -> bool:
        """Whether a fact has been stated so far, were it only to be absent."""
        return fact in self._known

    def reason(self, fact: str) -> str | None:
        """Why a fact has been left open so far."""
        return self._reasons.get(fact)

    def flag(self, fact: str, *keys: str | int) -> bool | None:
        """State the truth value at nested keys, where there is one; returns it."""
        return self._taken(fact, keys, flag_of, "no truth value")

    def number(self, fact: str, *keys: str | int) -> int | float | None:
        """State the number at nested keys, where there is one; returns it."""
        return self._taken(fact, keys, number_of, "no number")

    def text(self, fact: str, *keys: str | int) -> str | None:
        """State the word at nested keys, where there is one; returns it."""
        return self._taken(fact, keys, _text_of, "no word")

    def dtype(self, fact: str, *keys: str | int) -> str | None:
        """State the dtype named at nested keys, where there is one; returns it."""
        return self._taken(fact, keys, dtype_name, "no dtype known here")

    def attention(self, fact: str, *keys: str | int) -> str | None:
        """State the attention implementation named at nested keys, where there is one; returns it."""
        return self._taken(fact, keys, attention_name, "no attention implementation known here")

    def labels(self, fact: str, *keys: str | int, separator: str = ",") -> list[str] | None:
        """State the list of words at nested keys, also where one word holds them all; returns it."""

        def listed(value: Any) -> list[str] | None:
            if isinstance(value, str):
                return [each for each in (part.strip() for part in value.split(separator)) if each]
            words = isinstance(value, (list, tuple)) and all(isinstance(each, str) for each in value)
            return list(value) if words else None

        return self._taken(fact, keys, listed, "no list of words")

    def leave(self, fact: str, keys: Keys, what: str) -> None:
        """Leave a fact open because of the value at these keys, which is ``what``."""
        self.unknown(fact, f"{'.'.join(map(str, keys))} is {self.given(*keys)!r:.60}, {what}", keys)

    def name(self, kind: str, path: Any, keys: Keys | None = None) -> None:
        """Another file, folder or hub id that this one names, as it is written there; by default under its kind."""
        if isinstance(path, str) and path.strip():
            self._names[kind] = path
            self._places[kind] = self.document.place(keys or (kind,))

    def inline(self, kind: str, keys: Keys, value: Mapping[str, Any]) -> None:
        """A file of another kind that is written out at these keys."""
        self._inlined[kind] = self.document.section(keys, value)

    def place_inlined(self, kind: str, places: Mapping[Keys, Location]) -> None:
        """Where the values of a file that is written out here really stand."""
        self._inlined[kind] = self._inlined[kind]._replace(origins=places)

    def facts(self) -> Facts:
        """The facts in the nested form of the snapshot."""
        return Facts(nested(self._known), dict(self._reasons), dict(self._locations))

    def said(self) -> Said:
        """The facts with the other files that are named."""
        return Said(self.facts(), dict(self._names), dict(self._inlined), dict(self._places))

    def _taken(self, fact: str, keys: Keys, understood: Callable[[Any], _Value | None], fault: str) -> _Value | None:
        value = self.given(*keys)
        if value is None:
            return None
        if isinstance(value, Open):
            self.unknown(fact, value.why, keys)
            return None
        if isinstance(value, str) and value.lower() == "auto":
            self.unknown(fact, f"auto in {self.document.path}")
            return None
        result = understood(value)
        if result is None:
            self.leave(fact, keys, f"which is {fault}")
        else:
            self.state(fact, result, keys)
        return result


def nested(flat: Mapping[str, Any]) -> dict[str, Any]:
    """Facts by dotted path as the snapshot nests them; a parent that is known to be absent gives way to its parts."""
    result: dict[str, Any] = {}
    for path in sorted(flat, key=lambda path: path.count(".")):
        *parents, last = path.split(".")
        section = result
        for parent in parents:
            inner = section.get(parent)
            section[parent] = inner = inner if isinstance(inner, dict) else {}
            section = inner
        section[last] = flat[path]
    return result


def _text_of(value: Any) -> str | None:
    return value if isinstance(value, str) else None
