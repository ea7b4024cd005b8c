"""Traits in the reader's words."""

from __future__ import annotations

from compatcheck.language import gettext as _
from compatcheck.packages.shipped_tables import shipped_table


def in_words(trait: str) -> str:
    """The trait as a clause, ``torch is a CPU build``; the name itself of a trait that only a snapshot states."""
    return _(shipped_table("traits")["traits"].get(trait, trait))
