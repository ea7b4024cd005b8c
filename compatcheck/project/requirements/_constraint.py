"""Version constraints as Poetry and conda write them, as PEP 440 specifiers."""

from __future__ import annotations

import re

_CLAUSE = re.compile(r"\s*(\^|~=|~|===?|!=|>=|<=|>|<|=)?\s*v?(\d[^\s,|]*|\*)\s*,?")


def specifier_of(constraint: str) -> str | None:
    """A Poetry constraint, as ``^2.5``, ``~1.2``, ``1.2.*`` or ``>=1,<2``; None where PEP 440 cannot say it.

    The rules are those of https://python-poetry.org/docs/dependency-specification/#version-constraints.
    """
    return _join(constraint, bare="==")


def conda_specifier_of(constraint: str) -> str | None:
    """A conda version constraint; ``1.2`` and ``=1.2`` mean any 1.2, but three numbers name one release.

    See https://docs.conda.io/projects/conda-build/en/latest/resources/package-spec.html#package-match-specifications.
    """
    return _join(constraint, bare="=")


def _join(constraint: str, bare: str) -> str | None:
    constraint = constraint.strip()
    if constraint in ("", "*"):
        return ""
    if "|" in constraint:
        return None
    clauses, position = [], 0
    while position < len(constraint):
        found = _CLAUSE.match(constraint, position)
        clause = _clause(found[1] or bare, found[2]) if found else None
        if found is None or clause is None:
            return None
        clauses.append(clause)
        position = found.end()
    return ",".join(clause for clause in clauses if clause)


def _clause(operator: str, version: str) -> str | None:
    from packaging.version import Version

    if version == "*":
        return ""
    wild = version.endswith("*")
    bare = version.rstrip("*").rstrip(".")
    try:
        parsed = Version(bare)
    except ValueError:
        return None
    if operator == "^":
        return f">={bare},<{_caret(parsed.release)}"
    if operator == "~":
        return f">={bare},<{_next(parsed.release, min(len(parsed.release), 2) - 1)}"
    if operator == "=":
        return f"=={bare}.*" if wild or len(parsed.release) < 3 else f"=={bare}"
    if wild:
        kept = operator if operator in ("==", "!=", "~=") else None
        return f"{kept}{bare}.*" if kept and kept != "~=" else f"{operator}{bare}"
    return f"{operator}{version}"


def _caret(release: tuple[int, ...]) -> str:
    """The first version that changes the leftmost number that is not zero."""
    index = next((at for at, number in enumerate(release) if number), len(release) - 1)
    return _next(release, index)


def _next(release: tuple[int, ...], index: int) -> str:
    return ".".join(map(str, (*release[:index], release[index] + 1)))
