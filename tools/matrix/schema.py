"""The form of an entry as JSON Schema, made from the model, so that an editor completes and checks while one writes."""

from __future__ import annotations

from typing import Any

from pydantic.json_schema import models_json_schema

from compatcheck.environment.vocabulary import Kind, keys
from compatcheck.matrix.entry import Entry, WithdrawnEntry

DIALECT = "https://json-schema.org/draft/2020-12/schema"

_RANGE = r"^\s*(>=|<=|==|>|<)\s*[^\s,+]+(\s*,\s*(>=|<=|==|>|<)\s*[^\s,+]+)*\s*$"
_PRESENCE: dict[str, Any] = {"enum": ["present", "absent"]}
_COMPARED: dict[Kind, tuple[str, list[dict[str, Any]]]] = {
    "version": ("a range of versions such as '>=2.5.0,<2.5.1'", [{"type": "string", "pattern": _RANGE}]),
    "number": (
        "a number, a range such as '>=2', or a list of numbers",
        [
            {"type": "number"},
            {"type": "string", "pattern": _RANGE},
            {"type": "array", "items": {"anyOf": [{"type": "number"}, {"type": "string", "pattern": _RANGE}]}},
        ],
    ),
    "text": ("a word, or a list of those it may be", [{"type": "string"}, {"$ref": "#/$defs/words"}]),
    "flag": ("true or false", [{"type": "boolean"}]),
    "labels": (
        "a label that must be there, or a list of labels, one of which must",
        [{"type": "string"}, {"$ref": "#/$defs/words"}],
    ),
}


def schema() -> dict[str, Any]:
    """The JSON Schema (2020-12) of an entry's file. What only the linter sees, such as idle keys, is not in it."""
    forms = (Entry, WithdrawnEntry)
    made: dict[str, Any] = models_json_schema([(form, "validation") for form in forms])[1]
    made["oneOf"] = [{"$ref": f"#/$defs/{form.__name__}"} for form in forms]
    made["$defs"]["words"] = {"type": "array", "items": {"type": "string"}}
    made["$defs"] |= {kind: _compared(kind) for kind in _COMPARED}
    made["$defs"]["conditions"] = _conditions()
    made["$defs"]["Entry"]["properties"]["affected"]["items"] = {"$ref": "#/$defs/conditions"}
    return {"$schema": DIALECT, **_without_titles(made), "title": "An entry of the compatcheck matrix"}


def _without_titles(part: Any) -> Any:
    """The schema without the titles that pydantic makes of names: an editor shows the names themselves."""
    if isinstance(part, dict):
        kept = {key: each for key, each in part.items() if not (key == "title" and isinstance(each, str))}
        return {key: _without_titles(each) for key, each in kept.items()}
    return [_without_titles(each) for each in part] if isinstance(part, list) else part


def _conditions() -> dict[str, Any]:
    """The nested tables that the dotted keys of a condition make."""
    root = _table("facts that must all hold; keys are paths of the snapshot that `compatcheck env` prints")
    root["minProperties"] = 1
    for path, kind in sorted(keys().items()):
        schema: dict[str, Any] = {"$ref": f"#/$defs/{kind}"}
        if path.endswith("."):
            schema = {"type": "object", "additionalProperties": schema}
        _place(root, path.rstrip(".").split("."), schema)
    return root


def _place(root: dict[str, Any], path: list[str], schema: dict[str, Any]) -> None:
    """Put the key where its path leads; a section that can be compared itself is either that or a table."""
    table = root
    for part in path[:-1]:
        inner = table["properties"].setdefault(part, _table())
        if "$ref" in inner:
            inner = table["properties"][part] = {"anyOf": [inner, _table()]}
        table = inner["anyOf"][-1] if "anyOf" in inner else inner
    table["properties"][path[-1]] = schema


def _table(description: str | None = None) -> dict[str, Any]:
    told = {"description": description} if description else {}
    return {**told, "type": "object", "properties": {}, "additionalProperties": False}


def _compared(kind: Kind) -> dict[str, Any]:
    told, shapes = _COMPARED[kind]
    return {"description": f"{told}; or 'present', 'absent'", "anyOf": [_PRESENCE, *shapes]}
