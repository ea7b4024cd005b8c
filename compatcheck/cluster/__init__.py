"""Many machines: who is there, what they share, and where they differ. The door of this room."""

from __future__ import annotations

from compatcheck.cluster._digest import digest
from compatcheck.cluster._groups import differences, grouped
from compatcheck.cluster._launch import Launch, launch
from compatcheck.cluster._recorded import Gathered, gather

__all__ = ["Gathered", "Launch", "differences", "digest", "gather", "grouped", "launch"]
