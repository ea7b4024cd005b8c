"""Values that Python code gives, and arithmetic on them that costs no more than the text it is written in."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any, NamedTuple

from compatcheck.files import limits

OUT_OF_PROPORTION = "this is far too large"
NOT_RUN = "the value is computed by code, which is not run"
_ARITHMETIC: dict[type[ast.operator], Callable[[object, object], object]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}
_COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
}


class Reference(NamedTuple):
    """Something imported, by its whole dotted name, as ``torch.float16``."""

    name: str


class Open(NamedTuple):
    """A value that the text does not give, with the reason in words."""

    why: str


def is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, complex)


def combine(op: ast.operator, left: Any, right: Any) -> Any:
    compute = _ARITHMETIC.get(type(op))
    if compute is None or not (is_number(left) and is_number(right)):
        return Open(NOT_RUN)
    if isinstance(op, ast.Pow) and not (abs(right) <= limits.EXPONENT and abs(left) <= limits.NUMBER):
        return Open(OUT_OF_PROPORTION)
    try:
        result = compute(left, right)
        fits = isinstance(result, (int, float)) and abs(result) <= limits.NUMBER
    except (ArithmeticError, ValueError):
        return Open("the value cannot be computed")
    return result if fits else Open(OUT_OF_PROPORTION)


def apply_sign(op: ast.unaryop, value: Any) -> Any:
    if isinstance(op, ast.Not):
        truth = truth_of(value)
        return Open(NOT_RUN) if truth is None else not truth
    if isinstance(op, (ast.USub, ast.UAdd)) and is_number(value):
        return -value if isinstance(op, ast.USub) else value
    return Open(NOT_RUN)


def truth_of(value: Any) -> bool | None:
    """What a value counts as in a condition; ``None`` where that is not known."""
    return None if isinstance(value, (Open, Reference)) else bool(value)


def compare(op: ast.cmpop, left: object, right: object) -> object:
    """What a comparison of two plain values gives; `Open` for any others."""
    known = _COMPARISONS.get(type(op))
    if known is None or not (is_plain(left) and is_plain(right)):
        return Open(NOT_RUN)
    try:
        return known(left, right)
    except TypeError:
        return Open(NOT_RUN)


def is_plain(value: object) -> bool:
    return isinstance(value, (str, int, float, type(None)))
