"""torchtune: ``Step 1 | loss:1.2 lr:2e-05 ...`` on disk, ``1|10|Loss: 1.2:`` in the progress bar.

https://github.com/pytorch/torchtune/blob/main/torchtune/training/metric_logging.py
"""

from __future__ import annotations

import re

from compatcheck.symptoms._reading import NUMBER, Reading, reading

MARKS = ("Step ", "|Loss: ")
_DISK = re.compile(r"\bStep (\d+) \| (.*)")
_PAIR = re.compile(r"(\w+):\s?(\S+)")
_BAR = re.compile(rf"(?:\A|\s)\d+\|(\d+)\|Loss: ({NUMBER})(?=:|\s|\Z)", re.IGNORECASE)


def read(text: str) -> Reading | None:
    disk = _DISK.search(text)
    if disk:
        return reading([("step", disk[1]), *_PAIR.findall(disk[2])])
    bar = _BAR.search(text)
    return reading([("step", bar[1]), ("loss", bar[2])]) if bar else None
