"""An error of names, parameters or methods together with the code that asked, read from the end of a traceback."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from compatcheck.packages.interface_errors import (
    InterfaceError,
    MissingArgument,
    MissingName,
    NoAttribute,
    TooManyPositionals,
    UnexpectedKeyword,
    WrongKind,
    last_part,
    read_interface_error,
)
from compatcheck.packages.traceback_frames import Frame, called_in, caller_of, frames_above

_KINDS: Mapping[str, type[InterfaceError]] = {
    "missing-name": MissingName,
    "unexpected-keyword": UnexpectedKeyword,
    "missing-argument": MissingArgument,
    "too-many-positionals": TooManyPositionals,
    "no-attribute": NoAttribute,
    "wrong-kind": WrongKind,
}
KINDS = tuple(_KINDS)


class Failure(NamedTuple):
    """An error and the frame that asked for what is missing, None where no frame is shown."""

    error: InterfaceError
    caller: Frame | None = None


def read_failure(lines: Sequence[str]) -> Failure | None:
    """The failure that the last of these lines states, with the frames above it; None where it states none."""
    error = read_interface_error(lines[-1]) if lines else None
    if error is None:
        return None
    caller = caller_of(frames_above(lines[:-1]), _asked(error))
    return Failure(_with_class(error, caller), caller)


def to_fact(failure: Failure) -> dict[str, Any]:
    """The failure as an entry of the fact ``interface_errors``."""
    error, caller = failure
    kind = next(name for name, each in _KINDS.items() if isinstance(error, each))
    values = {key: list(value) if isinstance(value, tuple) else value for key, value in error._asdict().items()}
    frame = {key: value for key, value in caller._asdict().items() if value} if caller else {}
    return {"error": kind, **values, **frame}


def from_fact(fact: Mapping[str, Any]) -> Failure | None:
    """The failure that an entry of ``interface_errors`` states; None where it lacks what its kind of error holds."""
    kind = _KINDS[fact["error"]]
    if not all(key in fact for key in kind._fields):
        return None
    values = (fact[key] for key in kind._fields)
    error: InterfaceError = kind._make(tuple(value) if isinstance(value, list) else value for value in values)
    caller = Frame(fact["file"], fact.get("function", ""), fact.get("code", "")) if fact.get("file") else None
    return Failure(error, caller)


def add_failure(known: Sequence[Failure], failure: Failure) -> list[Failure]:
    """The failures with one more; of two with the same error the one with a caller stays."""
    same = [each for each in known if _alike(each.error, failure.error)]
    if not same:
        return [*known, failure]
    return [failure if each in same and not each.caller else each for each in known]


def _alike(one: InterfaceError, other: InterfaceError) -> bool:
    """Whether two errors are one, which a message may state with the class or without."""
    if type(one) is not type(other) or one[1:] != other[1:]:
        return False
    names = sorted((one[0], other[0]), key=len)
    return names[0] in ("", names[1]) or names[1].endswith(f".{names[0]}")


def _asked(error: InterfaceError) -> str:
    """The word by which code asks for what is missing, empty where no word of the error is one."""
    if isinstance(error, MissingName):
        return error.name or last_part(error.module)
    if isinstance(error, UnexpectedKeyword):
        return error.keyword
    if isinstance(error, NoAttribute):
        return error.name
    return "" if isinstance(error, WrongKind) else last_part(error.callable)


def _with_class(error: InterfaceError, caller: Frame | None) -> InterfaceError:
    """The error with the class that the caller's code makes, where its message gives ``__init__`` alone."""
    if caller is None or not isinstance(error, (UnexpectedKeyword, MissingArgument, TooManyPositionals)):
        return error
    if error.callable not in ("__init__", "__new__"):
        return error
    made = last_part(called_in(caller.code, error.callable))
    return error._replace(callable=f"{made}.{error.callable}") if made else error
