"""What a change of version costs, and the ranges of versions that cost as much.

The distance between two sets of versions says how much of the user's stack changes its behaviour. A patch release is
next to nothing, a major one is a migration.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from compatcheck.advice.requirement_text import version_of

_PATCH, _MINOR, _MAJOR, _EPOCH = 1, 10, 100, 1000
BACKEND = 5
"""Another build of torch: other binaries, the same code."""

GONE = "<0"
"""The specifier that no version satisfies: the distribution is not in the solution."""

PRESENT = ">=0"
"""What `GONE` leaves out: the distribution is in the solution, in any version."""

LEAVING = _MAJOR
"""What it costs that a distribution that was there is no longer."""


def public_version(version: str) -> Version | None:
    """The version without its local label, None where it is none by the rules of today."""
    return version_of(version.partition("+")[0])


@cache
def specifiers(text: str) -> SpecifierSet:
    return SpecifierSet(text)


def intersect(old: str, new: str) -> str:
    """The two specifiers as one, without the clauses that others imply."""
    if not (old and new):
        return old or new
    clauses = sorted({*old.split(","), *new.split(",")})
    if specifiers(",".join(clauses)).is_unsatisfiable():
        return GONE
    for clause in tuple(clauses):
        rest = [other for other in clauses if other != clause]
        if rest and specifiers(",".join(rest)).is_subset(specifiers(clause)):
            clauses = rest
    return ",".join(clauses)


def admits(specifier: str, version: str) -> bool:
    """Whether the specifier allows the version, whatever its local label; a pre-release counts as any other."""
    return specifiers(specifier).contains(version.partition("+")[0], prereleases=True)


def satisfies(limits: Mapping[str, str], versions: Mapping[str, str]) -> bool:
    """Whether all that is limited is there, in a version that the limit allows."""
    return all(name in versions and admits(specifier, versions[name]) for name, specifier in limits.items())


def cost(preferred: str, version: str) -> int:
    """What a move from one version to the other costs; 0 within one release and for what is no version."""
    old, new = public_version(preferred), public_version(version)
    if old is None or new is None:
        return 0
    if old.epoch != new.epoch:
        return _EPOCH
    if old.major != new.major:
        return _MAJOR * abs(old.major - new.major)
    if old.minor != new.minor:
        return _MINOR * abs(old.minor - new.minor)
    return 0 if old == new else _PATCH


def distance(preferred: Mapping[str, str], versions: Mapping[str, str], counted: Collection[str]) -> int:
    """The costs of all moves of counted names. One that leaves, or that nothing was preferred of, costs nothing."""
    names = versions.keys() & preferred.keys() & set(counted)
    return sum(cost(preferred[name], versions[name]) for name in names)


def is_major(price: int) -> bool:
    """Whether a move that costs this much is a migration: a major step, or ten minor ones and more."""
    return price >= _MAJOR


@cache
def cheapest(preferred: str, specifier: str) -> int | None:
    """The least that a version within the specifier can cost; None where it allows no version.

    The nearest versions lie at the preferred one or beside a bound of the specifier, so only the lines of releases
    there are looked at.
    """
    allowed = specifiers(specifier)
    old = public_version(preferred)
    if allowed.is_unsatisfiable():
        return None
    if old is None or admits(specifier, preferred):
        return 0
    bounds = [old, *(Version(clause.version.removesuffix(".*")) for clause in allowed)]
    lines = {line for bound in bounds if bound.epoch == old.epoch for line in _lines_beside(old, bound)}
    costs = (price for price, line in lines if not (allowed & specifiers(line)).is_unsatisfiable())
    return min(costs, default=_EPOCH)


def _lines_beside(old: Version, bound: Version) -> Iterator[tuple[int, str]]:
    for major in range(max(bound.major - 1, 0), bound.major + 2):
        if major != old.major:
            yield _MAJOR * abs(major - old.major), f"=={_prefix(old)}{major}.*"
    if bound.major == old.major:
        for minor in range(max(bound.minor - 1, 0), bound.minor + 2):
            price = _MINOR * abs(minor - old.minor) or _PATCH
            yield price, f"=={_prefix(old)}{old.major}.{minor}.*"


def within(preferred: str, limit: int) -> str:
    """The versions that cost at most ``limit``, as a specifier; empty where these are no limit at all.

    From a major step on it also holds the further minor releases in between, which may cost more.
    """
    old = public_version(preferred)
    if old is None or limit >= _EPOCH:
        return ""
    if limit < _PATCH:
        return f"=={old}"
    if limit < _MAJOR:
        return _minors(old, limit // _MINOR)
    return _majors(old, limit // _MAJOR)


def nearest(preferred: str, specifier: str) -> str:
    """The versions within the specifier that cost least, as a specifier; empty where they cannot be told apart."""
    old, least = public_version(preferred), cheapest(preferred, specifier)
    if old is None or least is None or least >= _EPOCH:
        return ""
    if least < _MINOR:
        return intersect(specifier, within(preferred, least))
    close = intersect(specifier, _minors(old, least // _MINOR))
    if close != GONE:
        return close
    return intersect(specifier, f"{_majors(old, least // _MAJOR)},!={_prefix(old)}{old.major}.*")


def outside(text: str) -> tuple[str, ...]:
    """The specifiers that together hold what this one does not, the newer side first."""
    sides = [side for clause in specifiers(text) for side in _outside_clause(clause.operator, clause.version)]
    return tuple(sorted(dict.fromkeys(sides), key=lambda side: side.startswith("<")))


def outside_all(ranges: Iterable[str]) -> tuple[str, ...]:
    """The specifiers that together hold what none of these holds, the newer side first."""
    left: tuple[str, ...] = ("",)
    for text in ranges:
        parts = (intersect(part, side) for side in outside(text) for part in left)
        left = tuple(part for part in parts if part != GONE)
    return left


def _outside_clause(operator: str, bound: str) -> Iterator[str]:
    if bound.endswith(".*") or operator == "~=":
        line = bound.removesuffix(".*") if bound.endswith(".*") else bound.rpartition(".")[0]
        if operator == "!=":
            yield f"=={line}.*"
            return
        head, _, last = line.rpartition(".")
        yield f">={head}.{int(last) + 1}" if head else f">={int(last) + 1}"
        yield below(Version(line if operator == "==" else bound))
        return
    version = Version(bound)
    if operator in ("<=", "==", "==="):
        yield above(version)
    if operator in (">=", "==", "==="):
        yield below(version)
    if operator == "<":
        yield f">={bound}"
    if operator == ">":
        yield f"<={bound}"
    if operator == "!=":
        yield f"=={bound}"


def _minors(old: Version, steps: int) -> str:
    return _span(_prefix(old), (old.major, max(old.minor - steps, 0)), (old.major, old.minor + steps + 1))


def _majors(old: Version, steps: int) -> str:
    return _span(_prefix(old), (max(old.major - steps, 0),), (old.major + steps + 1,))


def _span(prefix: str, first: tuple[int, ...], end: tuple[int, ...]) -> str:
    low, high = (prefix + ".".join(map(str, release)) for release in (first, end))
    one_line = first[:-1] == end[:-1] and first[-1] + 1 == end[-1]
    return f"=={low}.*" if one_line else f">={low},<{high}"


def _prefix(version: Version) -> str:
    return f"{version.epoch}!" if version.epoch else ""


def below(bound: Version) -> str:
    """What is older than the bound. A pre-release as bound would make the resolver allow pre-releases."""
    return f"<{bound.base_version if bound.is_prerelease else bound}"


def above(bound: Version) -> str:
    """What is newer than the bound, post-releases included, which ``>`` leaves out."""
    if bound.is_prerelease:
        return f">={bound.base_version}"
    return f">{bound}" if bound.post is not None else f">={bound}.post0"
