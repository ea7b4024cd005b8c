"""TensorBoard event files, through the tensorboard package where it is installed."""

from __future__ import annotations

import os
from collections.abc import Iterator

from compatcheck.errors import InputError
from compatcheck.symptoms._reading import Reading, reading


def recognises(path: str, head: bytes) -> bool:
    """Whether a file is one: by its name, or by the version record that begins it."""
    return "tfevents" in os.path.basename(path) or head[12:].startswith(b"\t") and b"brain.Event:" in head[:64]


def read(path: str) -> Iterator[tuple[int, Reading]]:
    """Each step's reading with its number among them. Raises InputError where no reader is installed."""
    try:
        from tensorboard.backend.event_processing.event_file_loader import EventFileLoader
        from tensorboard.util.tensor_util import make_ndarray
    except ImportError:
        advice = "run pip install tensorboard where compatcheck is installed, or pass the text log"
        raise InputError("reading the event file", path, "the tensorboard package is not installed", advice) from None
    number, step = 0, None
    pairs: dict[str, str] = {}
    for event in EventFileLoader(path).Load():
        for value in event.summary.value if event.HasField("summary") else ():
            if step is not None and event.step != step or value.tag in pairs:
                if found := _reading(step, pairs):
                    number += 1
                    yield number, found
                pairs = {}
            step = event.step
            kind = value.WhichOneof("value")
            if kind == "simple_value":
                pairs[value.tag] = str(value.simple_value)
            elif kind == "tensor" and make_ndarray(value.tensor).size == 1:
                pairs[value.tag] = str(float(make_ndarray(value.tensor)))
    if found := _reading(step, pairs):
        yield number + 1, found


def _reading(step: int | None, pairs: dict[str, str]) -> Reading | None:
    return reading([*pairs.items(), ("step", str(step))]) if step is not None else None
