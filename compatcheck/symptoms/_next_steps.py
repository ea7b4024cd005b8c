"""What to do next where no entry explains what is seen: the rows of advice in the table of symptoms."""

from __future__ import annotations

import re
from collections.abc import Iterable

from compatcheck.language import gettext as _
from compatcheck.packages.shipped_tables import shipped_table

_CAPACITY = re.compile(
    r"(?:total capacity of|device has|capacity:?) ([\d.]+) ([MGT])iB|([\d.]+) ([MGT])iB total capacity"
)
_MIB = {"M": 1.0, "G": 1024.0, "T": 1024.0**2}


def next_steps(symptoms: Iterable[str], text: str = "") -> tuple[str, ...]:
    """The steps for those symptoms, the first symptom's first; ``text`` is the error line, for the numbers in it."""
    rows = shipped_table("symptoms")["advice"]
    wanted = [row["text"] for symptom in symptoms for row in rows if symptom in row["symptoms"]]
    request = _memory_request(text)
    return tuple(_(step).format(memory=request) for step in dict.fromkeys(wanted))


def _memory_request(text: str) -> str:
    """The option that gives a probe the memory of the device that ran out of it, in MiB."""
    match = _CAPACITY.search(text)
    if match is None:
        return ""
    size, unit = (match[1], match[2]) if match[1] else (match[3], match[4])
    return f""" --request '{{"memory_mib": {round(float(size) * _MIB[unit])}}}'"""
