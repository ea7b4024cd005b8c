"""JSON with the place of what is wrong in it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

from compatcheck.errors import InputError
from compatcheck.files import limits
from compatcheck.files.reading import OversizeError as OversizeError
from compatcheck.files.reading import read_text as read_text

_UNSEEN = re.compile("[\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]")
"""What JSON does not escape by itself of the characters that steer a terminal or turn its text round."""


def parse_json(text: str, source: str) -> object:
    """The JSON value; raises `InputError` with line and column where it is not strict JSON."""
    try:
        value: object = json.loads(text, object_pairs_hook=_without_repeats)
        if _is_deep(value):
            raise RecursionError
        return value
    except json.JSONDecodeError as error:
        seen = f"line {error.lineno}, column {error.colno}: {_explained(error)}"
        raise InputError("reading JSON from", source, seen, "correct it there") from None
    except RecursionError:
        raise OversizeError(
            "reading JSON from", source, "the content is nested too deeply", "pass an ordinary file"
        ) from None
    except ValueError as error:
        seen = "a number with thousands of digits" if "digits" in str(error) else str(error)
        raise InputError("reading JSON from", source, seen, "correct it") from None


def written_json(value: object) -> str:
    """JSON for people and programs, in which nothing would steer a terminal that shows it."""
    return without_unseen(json.dumps(value, indent=2, ensure_ascii=False)) + "\n"


def without_unseen(text: str) -> str:
    """A text of JSON that says the same in characters that can be seen."""
    return _UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def read_json_object(path: str) -> dict[str, Any]:
    """The JSON object in a file; raises `InputError` where there is none."""
    return json_object(read_text(path), path)


def json_object(text: str, source: str) -> dict[str, Any]:
    """The JSON object in a text; raises `InputError` where it holds anything else."""
    value = parse_json(text, source)
    if not isinstance(value, dict):
        raise InputError(
            "reading JSON from", source, f"the file contains {_json_type(value)}", "pass an object in braces"
        )
    return value


def line_of(text: str, keys: Sequence[str]) -> int | None:
    """The line, from 1, on which the last of the nested keys is given."""
    position = 0
    for key in keys:
        match = re.compile(rf"{re.escape(json.dumps(key))}\s*:").search(text, position)
        if match is None:
            return None
        position = match.end()
    return text.count("\n", 0, position) + 1


def _without_repeats(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, value in pairs:
        if key in result:
            raise ValueError(f"the key {key!r} is given twice")
        result[key] = value
    return result


def _is_deep(value: object) -> bool:
    """Whether lists and objects stand in one another more than `limits.JSON_DEPTH` times."""
    level = [value]
    for _ in range(limits.JSON_DEPTH + 1):
        inner = (each.values() if isinstance(each, dict) else each for each in level if isinstance(each, (dict, list)))
        level = [each for values in inner for each in values if isinstance(each, (dict, list))]
        if not level:
            return False
    return True


def _explained(error: json.JSONDecodeError) -> str:
    """A trailing comma is the usual fault, and the parser's own words hide it."""
    before = error.doc[: error.pos].rstrip()
    after = error.doc[error.pos :].lstrip()[:1]
    trailing = before.endswith(",") and after in ("}", "]")
    if trailing or error.msg.startswith("Illegal trailing comma"):
        return "a comma before the closing bracket, which JSON does not allow"
    return error.msg[:1].lower() + error.msg[1:]


def _json_type(value: object) -> str:
    names = {list: "a list", str: "a string", bool: "a truth value", type(None): "null"}
    return names.get(type(value), "a number")
