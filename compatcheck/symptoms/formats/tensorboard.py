"""TensorBoard event files, through the tensorboard package where it is installed."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Iterator
from typing import Any

from compatcheck.errors import InputError
from compatcheck.files import limits
from compatcheck.files.reading import open_bytes
from compatcheck.symptoms._reading import Reading, reading


def recognises(path: str, head: bytes) -> bool:
    """Whether a file is one: by its name, or by the version record that begins it."""
    return "tfevents" in os.path.basename(path) or head[12:].startswith(b"\t") and b"brain.Event:" in head[:64]


def read(path: str) -> Iterator[tuple[int, Reading]]:
    """Each step's reading with its number among them, up to the first damaged record.

    Raises InputError where no reader is installed or the file cannot be opened.
    """
    try:
        from google.protobuf.message import DecodeError
        from tensorboard.compat.proto.event_pb2 import Event
        from tensorboard.compat.tensorflow_stub.pywrap_tensorflow import masked_crc32c
    except ImportError:
        advice = "run pip install tensorboard where compatcheck is installed, or pass the text log"
        raise InputError("reading the event file", path, "the tensorboard package is not installed", advice) from None
    number, step = 0, None
    pairs: dict[str, str] = {}
    for record, checksum in _records(path, masked_crc32c):
        try:
            event = Event.FromString(record)
        except DecodeError:
            break
        scalars = [(value.tag, held) for value in event.summary.value if (held := _number(value)) is not None]
        if scalars and masked_crc32c(record) != checksum:
            break
        for tag, scalar in scalars:
            if step is not None and event.step != step or tag in pairs:
                if found := _reading(step, pairs):
                    number += 1
                    yield number, found
                pairs = {}
            step = event.step
            pairs[tag] = str(scalar)
    if found := _reading(step, pairs):
        yield number + 1, found


def _records(path: str, masked_crc32c: Callable[[bytes], int]) -> Iterator[tuple[bytes, int]]:
    """Each whole record of at most `limits.EVENT_BYTES`, and its checksum as stated.

    https://www.tensorflow.org/tutorials/load_data/tfrecord#tfrecords_format_details
    """
    try:
        with open_bytes(path) as stream:
            while len(head := stream.read(12)) == 12:
                length, checksum = struct.unpack("<QI", head)
                if masked_crc32c(head[:8]) != checksum or length >= 1 << 62:
                    return
                if length > limits.EVENT_BYTES:
                    stream.seek(length + 4, os.SEEK_CUR)
                    continue
                record, end = stream.read(length), stream.read(4)
                if len(record) < length or len(end) < 4:
                    return
                yield record, struct.unpack("<I", end)[0]
    except OSError as error:
        raise InputError("reading the event file", path, error.strerror or str(error), "make it readable") from None


def _number(value: Any) -> float | None:
    """The number that a value of a summary holds; None for images, texts, and tensors of another size."""
    from tensorboard.util.tensor_util import make_ndarray

    kind = value.WhichOneof("value")
    if kind == "simple_value":
        return float(value.simple_value)
    if kind != "tensor" or any(dim.size != 1 for dim in value.tensor.tensor_shape.dim):
        return None
    try:
        return float(make_ndarray(value.tensor).item())
    except (TypeError, ValueError, IndexError, OverflowError):
        return None


def _reading(step: int | None, pairs: dict[str, str]) -> Reading | None:
    return reading([*pairs.items(), ("step", str(step))]) if step is not None else None
