"""The Trainer's ``trainer_state.json``: its ``log_history`` holds one object for each logged step, in any layout.

https://github.com/huggingface/transformers/blob/main/src/transformers/trainer_callback.py
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from compatcheck.files import limits
from compatcheck.symptoms._reading import Reading
from compatcheck.symptoms._stream import Batch
from compatcheck.symptoms.formats import records

_OBJECT = re.compile(r"[{}]")


def recognises(head: str) -> bool:
    """Whether a file that begins so is one."""
    return head.lstrip().startswith("{") and '"log_history"' in head


def read(batches: Iterable[Batch]) -> Iterator[tuple[int, Reading]]:
    """Each reading with the line on which its object begins. An object larger than any record is left out."""
    buffer, began, collecting = "", 0, False
    for first, block in batches:
        for number, text in enumerate(block.split("\n"), first):
            at = 0
            for brace in _OBJECT.finditer(text):
                if brace[0] == "{":
                    buffer, began, collecting, at = "", number, True, brace.end()
                elif collecting:
                    found = records.read(buffer + text[at : brace.start()])
                    if found:
                        yield began, found
                    collecting = False
            if collecting:
                buffer = (buffer + text[at:] + "\n")[: limits.OBJECT_CHARACTERS]
