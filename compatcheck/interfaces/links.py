"""What the releases of a package ask of other packages where a training run surely gets to, held against theirs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from packaging.version import Version

from compatcheck.interfaces.conditions import OWN_MORE
from compatcheck.interfaces.history import INDEX, Table, around, is_in

ABSENT = "absent"
"""The kind of a link to a package that the other does not declare, and that has to be installed."""


class Link(NamedTuple):
    """Something that ``package`` asks of ``provider`` and that the provider's release does not give.

    ``kind`` and ``name`` are those of a `Refusal`; ``file`` is where it is asked, ``entry`` the statement or the call
    that leads there. ``accepts`` are the runs of the provider in which it works, ``asks`` those of the package that
    ask.
    """

    package: str
    provider: str
    kind: str
    target: str
    name: str
    file: str
    entry: str
    accepts: tuple[str, ...]
    asks: tuple[str, ...]


def broken_links(
    table: Table, releases: Mapping[str, Version], python: Version | None = None, *, are_all: bool = False
) -> Iterator[Link]:
    """Every link between these releases that does not hold; ``python`` is the interpreter's version, where known.

    Of a release that was not read it is told what holds of those on both sides of it. What is not installed is told
    where these releases ``are_all`` there are.
    """
    read = table(INDEX).get("releases", {})
    known = {name: around(release, read[name].split()) for name, release in releases.items() if name in read}
    for package, here in known.items():
        for provider, rows in table(f"links/{package}").items():
            beside = known.get(provider, ())
            is_absent = are_all and provider not in releases
            if not here or not (beside or is_absent):
                continue
            for kind, target, name, file, entry, conditions, asks, accepts, fails in rows:
                asking, working = asks.split(), accepts.split()
                if (kind == ABSENT) != is_absent or not all(is_in(each, asking) for each in here):
                    continue
                if any(is_in(each, working) for each in beside):
                    continue
                if fails and not all(is_in(each, fails.split()) for each in beside):
                    continue
                if all(holds(each, releases, python) for each in conditions.split()):
                    sure = tuple(run for run in working if run[0] != "?")
                    yield Link(package, provider, kind, target, name, file, entry, sure, tuple(asking))


def holds(condition: str, releases: Mapping[str, Version], python: Version | None) -> bool:
    """Whether what must be installed is; what nobody can tell does not hold."""
    if condition[0] == OWN_MORE:
        return True
    if condition[0] == "+":
        return condition[1:] in releases
    if condition[0] == "-":
        return condition[1:] not in releases
    for sign in (">=", "<=", "==", "!=", "<", ">"):
        name, found, bound = condition.partition(sign)
        if found:
            release = python if name == "python" else releases.get(name)
            if release is None:
                return False
            if sign == "!=":
                return release != Version(bound)
            return is_in(release, (f"{sign}{bound}",))
    return False
