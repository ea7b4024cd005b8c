"""Members with the same environment together, and what tells the groups apart."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping

from compatcheck.cluster import _digest
from compatcheck.environment import Environment, Unknown
from compatcheck.files.secrets import without_secrets
from compatcheck.results.cluster import Difference, Group, Member

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def grouped(members: Mapping[str, Iterable[Member]], environments: Mapping[str, Environment]) -> tuple[Group, ...]:
    """A group for each digest, the largest first; ``environments`` holds one for each digest."""
    ordered = {digest: tuple(sorted(of, key=_place)) for digest, of in members.items()}
    by_size = sorted(ordered, key=lambda digest: (-len(ordered[digest]), _place(ordered[digest][0])))
    homes: dict[str, set[str]] = {}
    for digest, of in ordered.items():
        for member in of:
            homes.setdefault(member.node, set()).add(digest)
    return tuple(
        Group(_label(number), digest, ordered[digest], environments[digest], split=_split(ordered[digest], homes))
        for number, digest in enumerate(by_size)
    )


def differences(groups: tuple[Group, ...], snapshots: Mapping[str, Mapping[str, object]]) -> tuple[Difference, ...]:
    """Every fact in which groups differ, by path; ``snapshots`` holds one for each digest."""
    if len(groups) < 2:
        return ()
    leaves = {group.label: _digest.leaves(snapshots[group.digest]) for group in groups}
    first, *others = leaves.values()
    alike = {path for path, value in first.items() if all(path in each and each[path] == value for each in others)}
    found = []
    for path in sorted({path for each in leaves.values() for path in each} - alike):
        if not _below_another(path, leaves):
            found.append(Difference(path, _values(path, groups, leaves, snapshots)))
    return tuple(found)


def _values(
    path: _digest.Path,
    groups: tuple[Group, ...],
    leaves: Mapping[str, Mapping[_digest.Path, object]],
    snapshots: Mapping[str, Mapping[str, object]],
) -> tuple[tuple[object, tuple[str, ...]], ...]:
    """Each value of the fact with the labels of its groups, in the order of these."""
    labels: dict[str, tuple[object, list[str]]] = {}
    for group in groups:
        own = leaves[group.label]
        value = _without_secrets(own[path], path) if path in own else _digest.missing(snapshots[group.digest], path)
        key = "unknown" if isinstance(value, Unknown) else json.dumps(value, sort_keys=True, default=str)
        labels.setdefault(key, (value, []))[1].append(group.label)
    return tuple((value, tuple(of)) for value, of in labels.values())


def _without_secrets(value: object, path: _digest.Path) -> object:
    for name in path:
        value = without_secrets(value, name)
    return value


def _below_another(path: _digest.Path, leaves: Mapping[str, Mapping[_digest.Path, object]]) -> bool:
    """Whether some group states a whole above the path, such as a null, so that the difference is told there."""
    return any(path[:length] in each for each in leaves.values() for length in range(1, len(path)))


def _split(members: tuple[Member, ...], homes: Mapping[str, set[str]]) -> dict[str, tuple[int, ...]]:
    return {
        node: tuple(member.rank for member in members if member.node == node and member.rank is not None)
        for node in dict.fromkeys(member.node for member in members)
        if len(homes[node]) > 1
    }


def _place(member: Member) -> tuple[int, tuple[tuple[int, str], ...]]:
    return -1 if member.rank is None else member.rank, natural(member.node)


def _label(number: int) -> str:
    text = ""
    number += 1
    while number:
        number, place = divmod(number - 1, len(_LETTERS))
        text = _LETTERS[place] + text
    return text


def natural(name: str) -> tuple[tuple[int, str], ...]:
    """A key that sorts node2 before node10."""
    return tuple((int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name) if part)
