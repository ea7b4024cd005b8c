"""One fact that the user states on the command line."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from compatcheck.environment import Environment, snapshot
from compatcheck.errors import InputError
from compatcheck.packages.names import normalised

TOP_LEVEL = frozenset(
    (
        "python",
        "platform",
        "image",
        "report",
        "distributions",
        "distributions_complete",
        "cuda",
        "torch_build",
        "gpu",
        "gpus",
        "environ",
        "model",
        "trainer",
        "training",
    )
)
_DOING = "reading --assume"
_STRINGS = re.compile(
    r"python\Z|platform\.|image\.|report\.(?!newest)|distributions\.|cuda\.|environ\.|torch_build\.(?!architectures)"
    r"|model\.(name|type|revision|torch_dtype)\Z|gpu\.(name|compute_capability|uuid)\Z"
)


def assume(environment: Environment, statement: str) -> Environment:
    """The environment with ``key=value`` in it; the value is JSON where it parses, else a string.

    Versions, names and environment variables are strings however they look, and ``absent``, as ``null``, is "known
    to be absent". ``gpu.…`` speaks of every GPU, or of one where none is known. Raises `InputError` where
    the statement has another form.
    """
    key, equals, value = statement.partition("=")
    key = key.strip()
    parts = _parts(key)
    if not equals or not all(parts):
        raise InputError(_DOING, statement, "it has no key or no value", "write key=value")
    if parts[0] not in TOP_LEVEL or (parts[0] == "gpu" and len(parts) != 2):
        known = ", ".join(sorted(TOP_LEVEL))
        raise InputError(_DOING, key, "no fact has this name", f"begin with one of {known}")
    _require_name("gpus." + parts[1] if parts[0] == "gpu" else ".".join(parts))
    typed = _typed(key, value)
    if parts[0] == "gpu":
        gpus = environment.facts.get("gpus") or [{}]
        stated = Environment({"gpus": [{**gpu, parts[1]: typed} for gpu in gpus]})
    else:
        stated = Environment.from_flat({".".join(parts): typed})
    snapshot.require_types(stated.facts, statement, _DOING)
    return environment.overlay(stated)


def assume_all(environment: Environment, statements: Iterable[str]) -> Environment:
    """The environment with every ``key=value`` that the user states, the last one counting.

    Raises `InputError` where one names no fact, or has a value that the fact cannot have.
    """
    for statement in statements:
        environment = assume(environment, statement)
    return environment


def _require_name(path: str) -> None:
    from compatcheck.environment._schema import unknown_name

    unknown = unknown_name(path)
    if unknown is not None:
        raise InputError(_DOING, path, f"there is no fact called {unknown}", "see `compatcheck env` for the names")


def _parts(key: str) -> list[str]:
    head, _, tail = key.partition(".")
    if head == "distributions" and tail:
        return [head, normalised(tail)]
    return [head, tail] if head == "environ" and tail else key.split(".")


def _typed(key: str, value: str) -> Any:
    if value == "absent":
        return None
    try:
        parsed = json.loads(value)
    except (ValueError, RecursionError):
        return value
    as_written = _STRINGS.match(key) and parsed is not None and not isinstance(parsed, str)
    return value if as_written else parsed
