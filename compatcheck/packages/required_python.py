"""Which Pythons a release takes, by its own metadata."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from packaging.version import Version

from compatcheck.packages.release_rows import rows_of

Table = Callable[[str], Mapping[str, Any]]
PYTHON = "python"


def accepted_pythons(name: str, release: Version, table: Table) -> str:
    """The range of Pythons that a release takes; empty where it was not read, or takes any."""
    rows = {PYTHON: table("declared-requirements").get(name, {}).get(PYTHON, ())}
    return next((row[2] for _, row in rows_of(release, rows)), "")


def lowest_python(accepted: str) -> Version | None:
    """The first Python in a range, where it has a lower bound."""
    bounds = [clause[2:].strip().removesuffix(".*") for clause in accepted.split(",") if clause[:2] in (">=", "~=")]
    return max(map(Version, bounds), default=None)


def takes_python(accepted: str, python: str) -> bool:
    """Whether a range admits a Python; of ``3.8`` any patch release will do."""
    from packaging.specifiers import SpecifierSet

    whole = [python] if python.count(".") > 1 else [f"{python}.0", f"{python}.99"]
    return any(SpecifierSet(accepted).contains(each, prereleases=True) for each in whole)
