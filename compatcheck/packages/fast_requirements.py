"""A cheap filter that acquits requirements which are surely met; it never convicts.

What it acquits `packaging` accepts too; what it cannot acquit goes to `packaging` for the verdict,
so that an environment in order never pays for importing it. A marker is not read where the version
already satisfies, so a broken one there goes unnoticed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from compatcheck.packages.names import normalised

_REQUIREMENT = re.compile(
    r"([A-Za-z0-9][A-Za-z0-9._-]*)\s*(?:\[[^\]]*\])?\s*(\([^()]*\)|[^;@()]*)\s*(?:;\s*(.*))?\Z", re.DOTALL
)
_CLAUSE = re.compile(r"\s*(===|~=|==|!=|<=|>=|<|>)\s*([^\s,]+)\s*\Z")
_RELEASE = re.compile(r"(\d+(?:\.\d+)*)(.*)\Z", re.DOTALL)
_STAGE = re.compile(r"(?:[-_.]?(?:alpha|beta|preview|post|dev|pre|rev|rc|a|b|c|r)[-_.]?\d*){1,3}\Z", re.IGNORECASE)
_LOCAL = re.compile(r"\+[a-z0-9]+(?:[-_.][a-z0-9]+)*\Z", re.IGNORECASE)
_COMPARISON = re.compile(r"\s*(\w+)\s*(==|!=|<=|>=|<|>|in\b|not\s+in\b)\s*(?:'([^'\"]*)'|\"([^'\"]*)\")\s*\Z")
_WORD = re.compile(r"(?!v\d)[A-Za-z][A-Za-z_]\w*\Z")
_LONGEST = 200
_VERSION_MARKERS = ("python_version", "python_full_version")
_WORD_MARKERS = frozenset(
    (
        "sys_platform",
        "platform_system",
        "os_name",
        "platform_machine",
        "implementation_name",
        "platform_python_implementation",
    )
)


class Requirement(NamedTuple):
    """A requirement taken apart; ``understood`` is whether every clause is one this filter can read."""

    name: str
    clauses: tuple[tuple[str, str], ...]
    marker: str
    understood: bool


class _Release(NamedTuple):
    """A version's numbers without trailing zeros; ``final`` when nothing but a local part follows."""

    numbers: tuple[int, ...]
    final: bool


def parse(line: str) -> Requirement | None:
    """A requirement in the ordinary form, or ``None`` where `packaging` must read it."""
    match = _REQUIREMENT.match(line)
    if not match:
        return None
    specifier = match[2].strip().strip("()")
    parts = [part for part in specifier.split(",") if part.strip()]
    clauses = [clause for clause in map(_CLAUSE.match, parts) if clause]
    pairs = tuple((clause[1], clause[2]) for clause in clauses)
    return Requirement(normalised(match[1]), pairs, match[3] or "", len(pairs) == len(parts))


def acquits(requirement: Requirement, installed: Mapping[str, str | None], markers: Mapping[str, str]) -> bool:
    """Whether the requirement is surely met: what is installed satisfies it, or it does not apply here."""
    version = installed.get(requirement.name)
    readable = version is not None and requirement.understood
    if readable and all(satisfies(version or "", *clause) for clause in requirement.clauses):
        return True
    return bool(requirement.marker) and marker_value(requirement.marker, markers) is False


def satisfies(version: str, operator: str, operand: str) -> bool:
    """Whether a version surely satisfies one clause; ``False`` means only that this filter cannot tell.

    Versions of different releases are ordered by the release alone; of one release only final versions
    are compared, where a local part does not count.
    """
    if operator == "===":
        return False
    if operand.endswith(".*"):
        return _satisfies_prefix(version, operator, operand[:-2])
    have, want = _release(version), _release(operand)
    if have is None or want is None or "+" in operand:
        return False
    if have.numbers == want.numbers and not (have.final and want.final):
        return False
    if operator == "~=":
        prefix = operand.rpartition(".")[0]
        return have.numbers >= want.numbers and _satisfies_prefix(version, "==", prefix)
    return _compared(have.numbers, operator, want.numbers)


def marker_value(marker: str, markers: Mapping[str, str]) -> bool | None:
    """The value of a marker made of simple comparisons, or ``None`` where this filter cannot tell."""
    if "(" in marker:
        return None
    anded = [[_comparison(part, markers) for part in group.split(" and ")] for group in marker.split(" or ")]
    groups = [False if False in group else None if None in group else True for group in anded]
    return True if True in groups else None if None in groups else False


def _comparison(part: str, markers: Mapping[str, str]) -> bool | None:
    match = _COMPARISON.match(part)
    if not match:
        return None
    name, operator, operand = match[1], match[2], match[3] or match[4] or ""
    if operator not in ("==", "!=", "<=", ">=", "<", ">"):
        known = name in _VERSION_MARKERS or name in _WORD_MARKERS
        return (markers[name] in operand) is (operator == "in") if known else None
    if name in _VERSION_MARKERS:
        return _version_comparison(markers[name], operator, operand)
    if name in _WORD_MARKERS and operator in ("==", "!=") and _WORD.match(operand):
        return (markers[name] == operand) is (operator == "==")
    return None


def _version_comparison(version: str, operator: str, operand: str) -> bool | None:
    have, want = _release(version), _release(operand)
    if have is None or want is None or not have.final or not want.final or "+" in operand:
        return None
    return _compared(have.numbers, operator, want.numbers)


def _compared(have: tuple[int, ...], operator: str, want: tuple[int, ...]) -> bool:
    if operator in ("==", "!="):
        return (have == want) is (operator == "==")
    if operator in ("<", "<="):
        return have < want or (operator == "<=" and have == want)
    return have > want or (operator == ">=" and have == want)


def _satisfies_prefix(version: str, operator: str, prefix: str) -> bool:
    have, plain = _release(version), re.fullmatch(r"\d+(?:\.\d+)*", prefix[:_LONGEST])
    if have is None or not plain or plain[0] != prefix or operator not in ("==", "!="):
        return False
    numbers = tuple(map(int, prefix.split(".")))
    padded = have.numbers + (0,) * (len(numbers) - len(have.numbers))
    return (padded[: len(numbers)] == numbers) is (operator == "==")


def _release(version: str) -> _Release | None:
    match = _RELEASE.match(version)
    if not match or len(version) > _LONGEST:
        return None
    rest = match[2]
    local = bool(_LOCAL.match(rest))
    stage = rest.partition("+")[0]
    if rest and not local and not _STAGE.match(stage):
        return None
    numbers = list(map(int, match[1].split(".")))
    while numbers and not numbers[-1]:
        numbers.pop()
    return _Release(tuple(numbers), not stage)
