"""Snapshots that machines have left in a folder, where they cannot talk to one another."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from compatcheck.cluster import _digest
from compatcheck.cluster._groups import natural
from compatcheck.environment import Environment
from compatcheck.errors import InputError
from compatcheck.files import limits
from compatcheck.language import gettext as _
from compatcheck.results.cluster import Failure, Member
from compatcheck.terminal.progress import late_progress

_DOING = "reading the snapshots in"


class Gathered(NamedTuple):
    """Who has which environment: the members of each digest, and one environment and snapshot of each."""

    members: Mapping[str, list[Member]]
    environments: Mapping[str, Environment]
    snapshots: Mapping[str, Mapping[str, Any]]
    failures: tuple[Failure, ...] = ()


def gather(folder: str, load: Callable[[str], Environment]) -> Gathered:
    """Read every ``*.json`` of the folder, keeping one of those that are the same.

    A file that cannot be read is a failure that names it. Raises InputError where the folder holds none.
    """
    members: dict[str, list[Member]] = {}
    environments: dict[str, Environment] = {}
    snapshots: dict[str, Mapping[str, object]] = {}
    failures = []
    paths = _files(folder)
    with late_progress(_("reading the snapshots"), len(paths)) as advance:
        for path in paths:
            advance(1)
            try:
                environment = load(path)
            except InputError as error:
                member = Member(None, os.path.basename(path).removesuffix(".json"))
                failures.append(Failure("unread", (member,), str(error)))
                continue
            snapshot = environment.dump()
            digest = _digest.digest(snapshot)
            members.setdefault(digest, []).append(_member(snapshot, path))
            if digest not in environments:
                environments[digest], snapshots[digest] = environment, snapshot
    return Gathered(members, environments, snapshots, tuple(failures))


def _member(snapshot: Mapping[str, object], path: str) -> Member:
    """The machine as the snapshot names itself, else as its file is called."""
    node = snapshot.get("node")
    if isinstance(node, Mapping) and isinstance(node.get("name"), str):
        rank = node.get("rank")
        number = rank if isinstance(rank, int) and 0 <= rank <= limits.RANKS else None
        return Member(number, node["name"][: limits.NODE_CHARACTERS])
    return Member(None, os.path.basename(path).removesuffix(".json"))


def _files(folder: str) -> list[str]:
    try:
        names = os.listdir(folder)
    except OSError as error:
        raise InputError(_DOING, folder, error.strerror or str(error), "pass a folder of snapshots") from None
    found = sorted((name for name in names if name.endswith(".json") and name[0] != "."), key=natural)
    if not found:
        advice = "write a snapshot on each machine: compatcheck cluster --record FOLDER"
        raise InputError(_DOING, folder, "the folder contains no .json file", advice)
    return [os.path.join(folder, name) for name in found]
