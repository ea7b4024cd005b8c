"""Read the user's own files with bounds, and JSON with the place of what is wrong in it."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Sequence
from typing import Any

from compatcheck.errors import InputError

LARGEST_JSON = 16 << 20


class OversizeError(InputError):
    """A file larger or deeper than anything of its kind, which nobody keeps by accident."""


def read_text(path: str, largest: int = LARGEST_JSON) -> str:
    """The text of a file of at most ``largest`` bytes; raises `InputError` where it is none."""
    return decoded(read_bytes(path, largest), path)


def read_bytes(path: str, largest: int = LARGEST_JSON) -> bytes:
    """What a file of at most ``largest`` bytes holds; raises `InputError` where it is none."""
    try:
        if not os.path.isfile(path):
            missing = "there is no such file" if not os.path.lexists(path) else "it is not an ordinary file"
            raise InputError("reading", path, missing, "give the path of a file")
        with open(path, "rb") as stream:
            raw = stream.read(largest + 1)
    except OSError as error:
        raise InputError("reading", path, error.strerror or str(error), "make it readable") from None
    if len(raw) > largest:
        raise OversizeError("reading", path, f"it is larger than {largest >> 20} MiB", "give a file of this kind")
    return raw


def decoded(raw: bytes, source: str) -> str:
    """The text of UTF-8 bytes, with or without its mark; raises `InputError` where they are not that."""
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        seen = f"byte {error.start} is not UTF-8"
        raise InputError("reading", source, seen, "save it as UTF-8") from None


def parse_json(text: str, source: str) -> Any:
    """The JSON value; raises `InputError` with line and column where it is not strict JSON."""
    try:
        return json.loads(text, object_pairs_hook=_without_repeats)
    except json.JSONDecodeError as error:
        seen = f"line {error.lineno}, column {error.colno}: {_explained(error)}"
        raise InputError("reading JSON from", source, seen, "correct it there") from None
    except RecursionError:
        raise OversizeError("reading JSON from", source, "it is nested too deeply", "give an ordinary file") from None
    except ValueError as error:
        raise InputError("reading JSON from", source, str(error), "correct it") from None


def read_json_object(path: str) -> dict[str, Any]:
    """The JSON object in a file; raises `InputError` where there is none."""
    return json_object(read_text(path), path)


def json_object(text: str, source: str) -> dict[str, Any]:
    """The JSON object in a text; raises `InputError` where it holds anything else."""
    value = parse_json(text, source)
    if not isinstance(value, dict):
        raise InputError("reading JSON from", source, f"it holds {_named(value)}", "give an object in braces")
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


def _explained(error: json.JSONDecodeError) -> str:
    """A trailing comma is the usual fault, and the parser's own words hide it."""
    before = error.doc[: error.pos].rstrip()
    after = error.doc[error.pos :].lstrip()[:1]
    trailing = before.endswith(",") and after in ("}", "]")
    if trailing or error.msg.startswith("Illegal trailing comma"):
        return "a comma before the closing bracket, which JSON does not allow"
    return error.msg[:1].lower() + error.msg[1:]


def _named(value: object) -> str:
    names = {list: "a list", str: "a string", bool: "a truth value", type(None): "null"}
    return names.get(type(value), "a number")
