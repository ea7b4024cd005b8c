"""OmegaConf's ``${key}`` in YAML, resolved within the file and nowhere else.

https://omegaconf.readthedocs.io/en/latest/usage.html#variable-interpolation; resolvers such as ``${oc.env:HOME}`` and
relative keys are left open.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from compatcheck.files import limits
from compatcheck.files.secrets import excerpt
from compatcheck.project.python_values import Open
from compatcheck.project.training.document import Document

_REFERENCE = re.compile(r"\$\{([^${}]*)\}")
_MISSING = "???"


def interpolate(document: Document) -> Document:
    """The document with single values in the place of what names them, `Open` where there is none; ``???`` is none."""
    return document._replace(value=_resolve(document.value, document.value))


def _resolve(value: object, top: Mapping[str, object]) -> Any:
    if isinstance(value, dict):
        return {key: _resolve(each, top) for key, each in value.items()}
    if isinstance(value, list):
        return [_resolve(each, top) for each in value]
    return None if value == _MISSING else _substitute(value, top, limits.INTERPOLATED_DEPTH)


def _substitute(value: object, top: Mapping[str, object], depth: int) -> object:
    if not isinstance(value, str) or "${" not in value:
        return value
    if depth == 0:
        return Open(f"{excerpt(value, 60)} refers to itself")
    whole = _REFERENCE.fullmatch(value)
    if whole:
        return _look_up(whole[1], top, depth)
    result = value
    for match in _REFERENCE.finditer(value):
        part = _look_up(match[1], top, depth)
        if isinstance(part, Open):
            return part
        result = result.replace(match[0], str(part))
        if len(result) > limits.INTERPOLATED_CHARACTERS:
            return Open(f"{excerpt(value, 60)} is far too large")
    return result


def _look_up(path: str, top: Mapping[str, object], depth: int) -> Any:
    found: Any = top
    for name in path.split("."):
        found = found.get(name) if isinstance(found, Mapping) else None
    if found is None or isinstance(found, (dict, list)):
        return Open(f"${{{excerpt(path, 60)}}} is no value of this file")
    return _substitute(found, top, depth - 1)
