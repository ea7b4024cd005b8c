"""``pylock.toml`` (PEP 751): the resolver's own lock, with what moved a package in the package's ``tool`` table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compatcheck.advice.model import Move, Solution, Wanted
from compatcheck.packages.names import normalised


def render(
    wanted: Wanted, solution: Solution, moves: Mapping[str, Move], locked: str | None, previous: str | None
) -> str:
    """The text of ``locked`` with the tables; of a package that stays, an earlier lock's table stays too."""
    import tomlkit

    every = sorted({entry for move in moves.values() for entry in move.entries})
    earlier = _previous_packages(previous)
    document = tomlkit.parse(locked or "")
    packages: Any = document.get("packages", ())
    for package in packages:
        name = normalised(str(package["name"]))
        moved = _table(moves[name], every) if name in moves else earlier.get((name, str(package.get("version"))))
        if moved:
            inner, outer = tomlkit.inline_table(), tomlkit.inline_table()
            inner.update(moved)
            package["tool"] = outer.append("compatcheck", inner)
    return document.as_string()


def _table(move: Move, every: list[str]) -> dict[str, object]:
    moved_by = [*move.entries, *move.links]
    cause = {"moved_by": moved_by} if moved_by else {"moved_with": every} if every else {}
    return {**cause, **({"was": move.was} if move.was else {})}


def _previous_packages(previous: str | None) -> dict[tuple[str, str], dict[str, object]]:
    """What the earlier lock says of its packages; nothing where what is replaced is no lock."""
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    try:
        document = tomlkit.parse(previous or "").unwrap()
    except (TOMLKitError, ValueError, RecursionError):
        return {}
    packages = document.get("packages")
    found = [each for each in (packages if isinstance(packages, list) else ()) if isinstance(each, Mapping)]
    tables = {
        (normalised(str(each.get("name"))), str(each.get("version"))): (each.get("tool") or {}).get("compatcheck")
        for each in found
    }
    return {key: dict(table) for key, table in tables.items() if isinstance(table, Mapping)}
