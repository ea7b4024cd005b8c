"""Facts that the user states on the command line."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from compatcheck.environment import Environment, paths, snapshot, vocabulary
from compatcheck.errors import InputError
from compatcheck.files import limits
from compatcheck.language import gettext as _
from compatcheck.language.suggestion import did_you_mean
from compatcheck.packages.names import normalised

_DOING = "reading --assume"


def assume(environment: Environment, statement: str) -> Environment:
    """The environment with ``key=value`` in it; the value is JSON where it parses, else a string.

    Versions, names and environment variables are strings however they look, and ``absent``, as ``null``, is "known
    to be absent". ``gpu.…`` and ``every_gpu.…`` speak of every GPU, or of one where none is known. Raises
    `InputError` where the statement has another form.
    """
    key, equals, value = statement.partition("=")
    parts = _parts(key)
    if not equals or not all(parts):
        raise InputError(_DOING, statement, "the argument has no key or no value", "write key=value")
    path = ".".join(parts)
    _require_name(path)
    typed = _typed(path, value)
    if path.startswith(vocabulary.EVERY_GPU):
        gpus = environment.facts.get("gpus") or [{}]
        stated = Environment({"gpus": [{**gpu, parts[1]: typed} for gpu in gpus]})
    else:
        stated = Environment.from_flat({path: typed})
    snapshot.require_types(stated.facts, statement, _DOING)
    return environment.overlay(stated)


def assume_all(environment: Environment, statements: Iterable[str]) -> Environment:
    """The environment with every ``key=value`` that the user states, the last one counting.

    Raises `InputError` where one names no fact, or has a value that the fact cannot have.
    """
    for statement in statements:
        environment = assume(environment, statement)
    return environment


def assumed_paths(statements: Iterable[str]) -> tuple[str, ...]:
    """The paths of the facts in statements that `assume` takes."""
    return tuple(".".join(_parts(statement.partition("=")[0])) for statement in statements)


def _parts(key: str) -> tuple[str, ...]:
    first, *rest = paths.parts(key.strip())
    return (first, *map(normalised, rest)) if first.startswith("distribution") and len(rest) == 1 else (first, *rest)


def _require_name(path: str) -> None:
    if path in vocabulary.COMPUTED:
        raise InputError(_DOING, path, "this fact is computed from other facts", "supply those facts")
    if vocabulary.fact_at(path) or (stranger := vocabulary.stranger_in(path)) is None:
        return
    advice = did_you_mean(path, vocabulary.keys(), _("see `compatcheck env` for the names"))
    raise InputError(_DOING, path, f"there is no fact called {stranger}", advice)


def _typed(path: str, value: str) -> Any:
    if value == "absent":
        return None
    try:
        parsed = json.loads(value)
    except (ValueError, RecursionError):
        return value
    if _is_deeper(parsed, limits.STATED_DEPTH):
        raise InputError(_DOING, path, "the content is nested too deeply", "pass an ordinary value")
    as_written = vocabulary.is_text(path) and parsed is not None and not isinstance(parsed, str)
    return value if as_written else parsed


def _is_deeper(value: Any, most: int) -> bool:
    """Return whether tables and lists in the value are nested in more than ``most`` levels."""
    level = [value]
    for _level in range(most + 1):
        level = [
            inner
            for each in level
            if isinstance(each, (dict, list))
            for inner in (each.values() if isinstance(each, dict) else each)
        ]
        if not level:
            return False
    return True
