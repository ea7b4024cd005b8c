"""What the user asks for: what is installed, requirements files, ``pyproject.toml``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from compatcheck.advice.model import Wanted

_TOOLS = frozenset(("pip", "wheel", "uv", "compatcheck"))
"""What manages an environment is no part of what trains in it; setuptools is, as old libraries import it unasked."""


def read(
    paths: Sequence[str], markers: Mapping[str, str] | None, texts: Mapping[str, str] = MappingProxyType({})
) -> Wanted:
    """The requirements of files, then of ``texts`` by the names of their places, in their order, each with its place.

    An exact pin is a preference, a range a demand; a name that is pinned to several versions, as markers do, stays as
    it stands. ``markers`` are the values of environment markers (PEP 508) where the versions will be installed; without
    them every marker counts as holding. Raises `InputError` where a file cannot be read, or a line is no requirement.
    """
    from compatcheck.advice.wanted import _preferences, pyproject, requirements

    read_parts = [(pyproject if path.endswith(".toml") else requirements).read(path, markers) for path in paths]
    read_parts += [requirements.read(place, markers, text) for place, text in texts.items()]
    return _preferences.wanted([line for part in read_parts for line in part])


def installed(top_level: Iterable[str], distributions: Mapping[str, str]) -> Wanted:
    """What is installed: the distributions that no other one asks for, at the versions they have."""
    from compatcheck.advice.model import Line

    names = sorted(set(top_level) - _TOOLS)
    return Wanted(tuple(Line(name, name, name) for name in names), distributions, complete=True)


def preferring(wanted: Wanted, versions: Mapping[str, str]) -> Wanted:
    """The same with versions to stay with where the input names none, as those of the file that is to be replaced."""
    return wanted._replace(preferred={**versions, **wanted.preferred})


def pins_in(path: str) -> dict[str, str]:
    """The versions that a file of ours of any format pins, by name; none where there is no such file.

    Raises `InputError` where it cannot be read.
    """
    import os

    from compatcheck.advice.requirement_text import pins
    from compatcheck.files.reading import marked_text
    from compatcheck.packages.requirements_file import logical_lines

    if not os.path.lexists(path):
        return {}
    if path.endswith(".toml"):
        from compatcheck.advice.wanted import pyproject

        return pyproject.pins(path)
    return pins(line.text for line in logical_lines(marked_text(path)))
