"""Many machines: who is there, what they share, and where they differ.

Other rooms import from here alone. What joins live ranks is loaded on first use, as recorded snapshots need none of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from compatcheck.cluster._digest import digest as digest
from compatcheck.cluster._groups import differences as differences
from compatcheck.cluster._groups import grouped as grouped
from compatcheck.cluster._launch import Launch as Launch
from compatcheck.cluster._launch import launch as launch
from compatcheck.cluster._recorded import Gathered as Gathered
from compatcheck.cluster._recorded import gather as gather
from compatcheck.files.units import on_first_use

if TYPE_CHECKING:
    from compatcheck.cluster._conduct import Conductor as Conductor
    from compatcheck.cluster._conduct import Plan as Plan
    from compatcheck.cluster._hub import Hub as Hub
    from compatcheck.cluster._hub import Stopped as Stopped
    from compatcheck.cluster._lead import Leader as Leader
    from compatcheck.cluster._messages import Has as Has
    from compatcheck.cluster._messages import Hello as Hello
    from compatcheck.cluster._messages import Work as Work
    from compatcheck.cluster._network import interface_of as interface_of
    from compatcheck.cluster._participant import Participant as Participant

__getattr__ = on_first_use(
    __name__,
    {
        "_conduct": ("Conductor", "Plan"),
        "_hub": ("Hub", "Stopped"),
        "_lead": ("Leader",),
        "_messages": ("Has", "Hello", "Work"),
        "_network": ("interface_of",),
        "_participant": ("Participant",),
    },
)
