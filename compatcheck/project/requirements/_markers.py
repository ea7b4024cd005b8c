"""Does a requirement's marker hold where its environment will stand, as far as that is known."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from compatcheck.packages.markers import evaluate_marker

_MINORS = range(8, 16)
_LINUX = {
    "os_name": "posix",
    "sys_platform": "linux",
    "platform_system": "Linux",
    "platform_machine": "x86_64",
    "platform_release": "",
    "platform_version": "",
}


class Place(NamedTuple):
    """Where the requirements will be installed: the Python version, as ``3.11`` or ``3.11.7``, and the system.

    ``requires`` is the range of Python versions that the project itself demands; a version outside it does not count.
    Without ``linux`` the system is the one we run on.
    """

    python: str | None = None
    requires: str = ""
    linux: bool = False


@lru_cache(maxsize=4096)
def applies(marker: str, place: Place) -> bool | None:
    """Whether the marker holds; None where it is none, or depends on a Python version that is not known."""
    from packaging.markers import Marker

    if not marker:
        return True
    try:
        parsed = Marker(marker)
        verdicts = {evaluate_marker(parsed, environment, "lock_file") for environment in _environments(place)}
    except ValueError:
        return None
    return verdicts.pop() if len(verdicts) == 1 else None


def admits(requires: str, place: Place) -> bool | None:
    """Whether the Python version lies in a range; None where that is not known, or the range is none."""
    from packaging.specifiers import SpecifierSet

    try:
        demanded = SpecifierSet(requires)
    except ValueError:
        return None
    verdicts = {demanded.contains(each, prereleases=True) for each in pythons(place)}
    return verdicts.pop() if len(verdicts) == 1 else None


def in_range(version: str, specifier: str) -> bool:
    """Whether a version meets a specifier; False where either is none."""
    from packaging.specifiers import SpecifierSet

    try:
        return SpecifierSet(specifier).contains(version, prereleases=True)
    except ValueError:
        return False


@lru_cache(maxsize=64)
def pythons(place: Place) -> tuple[str, ...]:
    """The Python versions that come into question, in full."""
    from packaging.specifiers import SpecifierSet

    every = [f"3.{minor}.{patch}" for minor in _MINORS for patch in (0, 9)]
    try:
        demanded = SpecifierSet(place.requires)
    except ValueError:
        demanded = SpecifierSet()
    if place.python is not None:
        wanted = [place.python] if place.python.count(".") > 1 else [f"{place.python}.0", f"{place.python}.9"]
        fitting = [each for each in wanted if demanded.contains(each, prereleases=True)]
        if fitting:
            return tuple(fitting)
    return tuple(each for each in every if each in demanded) or tuple(every)


def only_minor(requires: str) -> str | None:
    """``3.11`` where a range of Python versions admits that one alone, as ``>=3.11,<3.12`` does."""
    minors = {version.rpartition(".")[0] for version in (*pythons(Place(None, requires)), "3.0.0", "3.99.0")}
    admitted = {minor for minor in minors if any(in_range(f"{minor}.{patch}", requires) for patch in (0, 9))}
    return admitted.pop() if requires and len(admitted) == 1 else None


def _environments(place: Place) -> Iterator[dict[str, str]]:
    for version in pythons(place):
        minor = ".".join(version.split(".")[:2])
        yield {
            "python_version": minor,
            "python_full_version": version,
            "implementation_version": version,
            "implementation_name": "cpython",
            "platform_python_implementation": "CPython",
            **(_LINUX if place.linux else {}),
            "extra": "",
        }
