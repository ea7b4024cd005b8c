"""Versions on one total order, and ranges on it.

Known-bad ranges are not PEP 440 specifiers: a specifier skips pre-releases, `2.7.4.post1` is outside ``<=2.7.4``
and inside nothing else, and a local label sorts above the release it belongs to. Here a version is compared
by `packaging.version.Version` with the local label removed and every pre-, post- and dev-release in its place.
"""

from __future__ import annotations

import operator
import re
from functools import cache, lru_cache
from typing import Any, NamedTuple

from packaging.version import Version

_OPERATORS = {
    ">=": operator.ge,
    "<=": operator.le,
    "==": operator.eq,
    ">": operator.gt,
    "<": operator.lt,
}
_COMPARATOR = re.compile(r"\s*(>=|<=|==|>|<)\s*([^\s,]+)\s*$")
_BUILD_LABEL = re.compile(r"(cpu|cu\d+|rocm[\d.]+|xpu)(\.|$)")


class Comparator(NamedTuple):
    operator: str
    version: Version


class Interval(NamedTuple):
    """Versions from ``low`` to ``high``; None is no bound on that side."""

    low: Version | None
    low_closed: bool
    high: Version | None
    high_closed: bool


def is_range(text: str) -> bool:
    """Whether the text is meant as a range rather than as a plain value."""
    return text.lstrip()[:1] in ("<", ">", "=")


@cache
def parse_range(text: str) -> tuple[Comparator, ...]:
    """Read ``>=2.5.0,<2.5.1``; every comparator must hold. Raises ValueError with the part at fault."""
    comparators = []
    for part in text.split(","):
        op, bound = _comparison(part)
        if "+" in bound:
            raise ValueError(f"{part.strip()!r} names a local label, which is never compared")
        comparators.append(Comparator(op, Version(bound)))
    return tuple(comparators)


def _comparison(part: str) -> tuple[str, str]:
    match = _COMPARATOR.match(part)
    if match is None:
        raise ValueError(f"{part.strip()!r} is not a comparison such as '>=2.5.0'")
    return match[1], match[2]


@lru_cache(maxsize=10_000)
def parse_version(text: str) -> Version | None:
    """The version without its local label, or None where the text is no version at all."""
    try:
        return Version(text.partition("+")[0])
    except ValueError:
        return None


def final_release(text: str | None) -> Version | None:
    """The version of a release as its project published it; None for pre-releases, vendors' builds and what is none."""
    version = None if text is None or is_vendor_build(text) else parse_version(text)
    return None if version is None or version.is_prerelease else version


def interval_of(comparators: tuple[Comparator, ...]) -> Interval | None:
    """The interval of a range; None where no version meets it."""
    lows = [(bound, op == ">") for op, bound in comparators if op in (">=", ">", "==")]
    highs = [(bound, op != "<") for op, bound in comparators if op in ("<=", "<", "==")]
    low, is_open = max(lows, default=(None, True))
    high, is_closed = min(highs, default=(None, False))
    if low is not None and high is not None and (low > high or (low == high and (is_open or not is_closed))):
        return None
    return Interval(low, not is_open, high, is_closed)


def contains(comparators: tuple[Comparator, ...], version: Version) -> bool:
    return all(_OPERATORS[op](version, bound) for op, bound in comparators)


@lru_cache(maxsize=4096)
def pinned(specifier: str) -> str | None:
    """The one version that a specifier names and no other, or None."""
    from packaging.specifiers import SpecifierSet

    try:
        clauses = list(SpecifierSet(specifier))
    except ValueError:
        return None
    pins = {each.version for each in clauses if each.operator in ("==", "===") and not each.version.endswith(".*")}
    return pins.pop() if len(pins) == 1 else None


def number_in_range(text: str, value: float) -> bool:
    """Whether a plain number satisfies every comparison; the bounds are read as numbers, not as versions."""
    bounds = [_comparison(part) for part in text.split(",")]
    verdicts = [_OPERATORS[op](value, float(bound)) for op, bound in bounds]
    return all(verdicts)


def is_vendor_build(text: str) -> bool:
    """Whether a version names a vendor's or somebody's own source build (``2.5.0a0+872d972e41.nv24.08``).

    Such a build is cut from between two releases, often with fixes picked ahead of the later one, so evidence
    about the releases does not decide about it.
    """
    release, _, label = text.partition("+")
    if not label or is_build_label(label):
        return False
    return ".nv" in f".{label}" or re.search(r"(a|b|rc)\d+$", release) is not None


def is_build_label(label: str) -> bool:
    """Whether a local label is that of one of torch's builds, as ``cu118`` or ``cpu``."""
    return _BUILD_LABEL.match(label) is not None


def is_before_release(text: str) -> bool:
    """Whether a version names a build from the project's own way to a release (``4.45.0.dev0``, ``5.0.0rc1``).

    What changed in that release may be in it or not.
    """
    version = parse_version(text)
    return version is not None and version.is_prerelease and not is_vendor_build(text)


def names_builds(comparators: tuple[Comparator, ...]) -> bool:
    """Whether a range says itself how it stands to builds from before a release: by a bound that is one, or by ==."""
    return any(bound.is_prerelease or op == "==" for op, bound in comparators)


def release_of(version: Version) -> Version:
    """The release that a build from before it is on the way to; a release is itself."""
    return Version(version.base_version) if version.is_prerelease else version


def sort_key(version: Version) -> list[Any]:
    """The version as nested lists of integers that JSON can hold and that sort as the versions do."""
    pre: list[int] = [3, 0]
    if version.pre is not None:
        pre = [("a", "b", "rc").index(version.pre[0]), version.pre[1]]
    elif version.post is None and version.dev is not None:
        pre = [-1, 0]
    release = list(version.release)
    while release and release[-1] == 0:
        release.pop()
    post = -1 if version.post is None else version.post
    dev = [1, 0] if version.dev is None else [0, version.dev]
    return [version.epoch, release, [*pre, post, *dev]]
