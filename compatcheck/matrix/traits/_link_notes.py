"""What is known of a link between two packages beyond that it does not hold: why, and where that can be read."""

from __future__ import annotations

from typing import NamedTuple

from compatcheck.matrix._traits import Table


class LinkNote(NamedTuple):
    """Why a link fails and its public source; ``is_sure`` says that whoever has both packages installed meets it."""

    text: str = ""
    source: str = ""
    is_sure: bool = False


def link_note(table: Table, package: str, provider: str, name: str) -> LinkNote:
    """The note on a name or parameter that a package asks of a provider; empty where there is none.

    A name may be dotted. Where it is not known who asks, the package is empty, and the first note on the name counts.
    """
    simple = name.rpartition(".")[2]
    for note in table("link-notes").get("notes", ()):
        if package in ("", note["package"]) and provider == note["provider"] and simple in note["names"]:
            return LinkNote(note["note"], note["source"], note.get("sure", False))
    return LinkNote()
