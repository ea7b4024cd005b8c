"""What releases require of each other where an environment stands, by the table `declared-requirements`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from packaging.version import Version

from compatcheck.environment import Environment
from compatcheck.inference.inferred import Table
from compatcheck.packages.release_rows import Row
from compatcheck.packages.required_python import PYTHON

_TABLE = "declared-requirements"
_SYSTEMS = {"Linux": "linux", "Darwin": "darwin", "Windows": "win32"}
_VARIABLE = re.compile(r"\b(?:python|platform|sys|os|implementation)_\w+")


def declared(name: str, environment: Environment, table: Table) -> dict[str, Sequence[Row]]:
    """What the releases of a package require of others, by the name of the other.

    What they require on some platforms or Pythons only is among it where the environment is known to be one of them.
    """
    demands = table(_TABLE)
    rows = {other: found for other, found in demands.get(name, {}).items() if other != PYTHON}
    for other, marked in demands["where"].get(name, {}).items():
        held = [row for row in marked if _holds(row[3], environment)]
        if held:
            rows[other] = sorted([*rows.get(other, ()), *held], key=lambda row: Version(row[0]))
    return rows


def _holds(marker: str, environment: Environment) -> bool:
    from packaging.markers import Marker

    known = dict(_variables(environment))
    return known.keys() >= set(_VARIABLE.findall(marker)) and Marker(marker).evaluate(known)


def _variables(environment: Environment) -> Iterator[tuple[str, str]]:
    """The variables of markers that the environment states."""
    python, platform = environment.get(PYTHON), environment.section("platform")
    if isinstance(python, str) and python.count("."):
        yield "python_version", ".".join(python.split(".")[:2])
        if python.count(".") > 1:
            yield "python_full_version", python
    system, machine = platform.get("system"), platform.get("machine")
    if isinstance(system, str) and system in _SYSTEMS:
        yield "platform_system", system
        yield "sys_platform", _SYSTEMS[system]
    if isinstance(machine, str):
        yield "platform_machine", machine
