"""The JSON Schema of a snapshot, made from the vocabulary, and what in a document does not keep to it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import date
from typing import Any

from compatcheck.environment import vocabulary
from compatcheck.environment.vocabulary import SECTION, TEXT, WHOLE, Fact
from compatcheck.files.secrets import excerpt, without_secrets

_ABOUT_FACTS = (
    Fact("target.prefix", TEXT, required=True),
    Fact("target.selected_by", TEXT, required=True),
    Fact("target.executable", TEXT),
    Fact("unknown.*", TEXT, required=True),
    Fact("locations.*.file", TEXT, required=True),
    Fact("locations.*.line", WHOLE),
)
_NEVER_NULL = ("distribution_problems", "unknown", "locations")
_PYTHON_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
    "array": (list,),
    "object": (Mapping,),
    "null": (type(None),),
}


def schema() -> dict[str, Any]:
    """The JSON Schema (2020-12) of a snapshot. Keys that it does not name are let through."""
    root: dict[str, Any] = {"type": "object", "description": SECTION.words}
    for fact in (*vocabulary.FACTS, *_ABOUT_FACTS):
        _place(root, fact)
    for name in _NEVER_NULL:
        root["properties"][name]["type"].remove("null")
    return root


def _place(root: dict[str, Any], fact: Fact) -> None:
    """Put a fact where its path leads; each section on the way may be null."""
    section = root
    *parents, last = fact.path.replace("[]", ".[]").split(".")
    for parent in parents:
        section = _section(section, parent)
    if last == "*":
        section["additionalProperties"] = _shape(fact)
        return
    section.setdefault("properties", {}).setdefault(last, {}).update(_shape(fact))
    if fact.required and section is not root:
        section.setdefault("required", []).append(last)


def _section(above: dict[str, Any], name: str) -> dict[str, Any]:
    inner = {"type": ["object", "null"], "description": SECTION.words}
    if name == "[]":
        above.update(type=["array", "null"], description="a list")
        section: dict[str, Any] = above.setdefault("items", {**inner, "type": ["object"]})
    elif name == "*":
        section = above.setdefault("additionalProperties", {**inner, "type": ["object"]})
    else:
        section = above.setdefault("properties", {}).setdefault(name, inner)
    return section


def _shape(fact: Fact) -> dict[str, object]:
    shape = {**fact.type.schema, "description": fact.type.words}
    if fact.required:
        return shape
    if "enum" in shape:
        return {**shape, "enum": [*shape["enum"], None]}
    types = shape["type"] if isinstance(shape["type"], list) else [shape["type"]]
    return {**shape, "type": [*types, "null"]}


def faults(value: Any, shape: Mapping[str, Any], path: str = "") -> Iterator[str]:
    """What does not keep to a schema that `schema` makes: the path, what must stand there, and what does."""
    if not _fits(value, shape):
        stated = excerpt(repr(without_secrets(value, path.rpartition(".")[2])), 60)
        yield f"{path}: must be {shape['description']}, not {stated}"
    elif isinstance(value, Mapping):
        yield from (f"{_below(path, name)}: is missing" for name in shape.get("required", ()) if name not in value)
        for name, each in value.items():
            inner = shape.get("properties", {}).get(name) or shape.get("additionalProperties")
            if inner:
                yield from faults(each, inner, _below(path, name))
    elif isinstance(value, list) and "items" in shape:
        for number, each in enumerate(value):
            yield from faults(each, shape["items"], f"{path}.{number}")


def _below(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _fits(value: Any, shape: Mapping[str, Any]) -> bool:
    if "enum" in shape:
        return value in shape["enum"]
    types = [shape["type"]] if isinstance(shape["type"], str) else shape["type"]
    if isinstance(value, bool):
        return "boolean" in types
    if isinstance(value, float) and value.is_integer() and "integer" in types:
        return True
    if not any(isinstance(value, _PYTHON_TYPES[each]) for each in types):
        return False
    if not isinstance(value, str):
        return True
    return re.search(shape.get("pattern", ""), value) is not None and (shape.get("format") != "date" or _is_day(value))


def _is_day(text: str) -> bool:
    try:
        return bool(date.fromisoformat(text))
    except ValueError:
        return False
