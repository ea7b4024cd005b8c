"""Many machines: who is there, what they share, and where they differ.

Other rooms import from here alone. What joins live ranks is loaded on first use, as recorded snapshots need none of it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from compatcheck.cluster._digest import digest
from compatcheck.cluster._groups import differences, grouped
from compatcheck.cluster._launch import Launch, launch
from compatcheck.cluster._recorded import Gathered, gather

if TYPE_CHECKING:
    from compatcheck.cluster._conduct import Conductor, Plan
    from compatcheck.cluster._hub import Hub, Stopped
    from compatcheck.cluster._lead import Leader
    from compatcheck.cluster._messages import Has, Hello, Work
    from compatcheck.cluster._network import interface_of
    from compatcheck.cluster._participant import Participant

__all__ = [
    "Conductor",
    "Gathered",
    "Has",
    "Hello",
    "Hub",
    "Launch",
    "Leader",
    "Participant",
    "Plan",
    "Stopped",
    "Work",
    "differences",
    "digest",
    "gather",
    "grouped",
    "interface_of",
    "launch",
]

_LIVE = {
    "Conductor": "_conduct",
    "Has": "_messages",
    "Hello": "_messages",
    "Hub": "_hub",
    "Leader": "_lead",
    "Participant": "_participant",
    "Plan": "_conduct",
    "Stopped": "_hub",
    "Work": "_messages",
    "interface_of": "_network",
}


def __getattr__(name: str) -> object:
    if name not in _LIVE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_LIVE[name]}"), name)
