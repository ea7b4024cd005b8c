"""What is known of a link between two packages beyond what sources tell: why it fails, and which runs get to it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

from compatcheck.matrix._traits import Table

_EVERY_RUN: tuple[Mapping[str, Any], ...] = ({},)


class LinkNote(NamedTuple):
    """Why a link fails, its public source and the ways out beside other releases, as an entry states them.

    ``is_sure`` says that whoever has both packages installed meets it.
    """

    text: str = ""
    source: str = ""
    is_sure: bool = False
    remedies: tuple[Mapping[str, Any], ...] = ()


class Reach(NamedTuple):
    """A link to which only some runs get, or of which the asking code was not read.

    ``package`` are the releases in ``asks`` that ask; without a package the user's own code or that of a model asks.
    ``line`` is the error that it ends in. ``refused`` are the releases of the ``provider`` that do not give what is
    asked, as the tables of interfaces have it within ``within``, kept here because they are slow to look up. Where the
    provider ``may_be_absent``, nothing else brings it, and the link fails without it as well.
    ``runs`` are the conditions of which one has to hold. One that ``is_reported`` was not confirmed.
    """

    package: str
    provider: str
    names: tuple[str, ...]
    asks: str
    line: str
    within: str
    refused: tuple[str, ...]
    runs: tuple[Mapping[str, Any], ...]
    note: LinkNote
    is_reported: bool
    may_be_absent: bool


def link_note(table: Table, package: str, provider: str, name: str) -> LinkNote:
    """The note on a name or parameter that a package asks of a provider; empty where there is none.

    A name may be dotted. Where it is not known who asks, the package is empty, and the first note on the name counts.
    """
    simple = name.rpartition(".")[2]
    for note in table("link-notes").get("notes", ()):
        if package in ("", note["package"]) and provider == note["provider"] and simple in note["names"]:
            return _text(note)
    return LinkNote()


@cache
def reaches(table: Table) -> tuple[Reach, ...]:
    """The links of which a note says where they are reached."""
    return tuple(_reach(note) for note in table("link-notes").get("notes", ()) if "line" in note)


def _reach(note: Mapping[str, Any]) -> Reach:
    return Reach(
        note["package"],
        note["provider"],
        tuple(note["names"]),
        note.get("asks", ""),
        note["line"],
        note.get("within", ""),
        tuple(note["refused"]),
        tuple(note.get("runs", _EVERY_RUN)),
        _text(note),
        note.get("reported", False),
        note.get("absent", False),
    )


def _text(note: Mapping[str, Any]) -> LinkNote:
    return LinkNote(note["note"], note["source"], note.get("sure", False), tuple(note.get("remedies", ())))
