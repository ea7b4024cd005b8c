"""The identity of a model's files: hashes, and safetensors headers against the length of the file."""

from __future__ import annotations

import os
import re

from compatcheck.errors import InputError
from compatcheck.facts._text import json_object

_CHUNK = 1 << 20
_LARGEST_HEADER = 100 << 20
_SHA256 = re.compile(r"[0-9a-f]{64}\Z")


def sha256_of(path: str) -> str:
    """The hash of a file; a blob of a Hugging Face cache bears it as its name and is not read."""
    if os.path.islink(path):
        blob = os.path.realpath(path)
        if os.path.basename(os.path.dirname(blob)) == "blobs" and _SHA256.match(os.path.basename(blob)):
            return os.path.basename(blob)
    import hashlib

    digest = hashlib.sha256()
    with open(path, "rb", buffering=0) as stream:
        while chunk := stream.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def safetensors_problem(path: str) -> str | None:
    """What is wrong with the length of a safetensors file; its tensors are not read.

    Raises `InputError` where its header is none.
    """
    size = os.path.getsize(path)
    with open(path, "rb") as stream:
        length = int.from_bytes(stream.read(8), "little")
        if size < 8 or length > size - 8:
            if length <= _LARGEST_HEADER:
                return f"truncated: {size} bytes, its header alone takes {length + 8}"
            raise _refused(path, f"its header claims {length} bytes")
        if length > _LARGEST_HEADER:
            raise _refused(path, f"its header claims {length} bytes")
        text = stream.read(length).decode("utf-8", "replace")
    expected = 8 + length + _end_of_tensors(json_object(text, path), path)
    if size == expected:
        return None
    return f"truncated: {size} bytes of {expected}" if size < expected else f"{size - expected} bytes too long"


def _end_of_tensors(header: dict[str, object], path: str) -> int:
    end = 0
    for name, tensor in header.items():
        if name == "__metadata__":
            continue
        offsets = tensor.get("data_offsets") if isinstance(tensor, dict) else None
        if not isinstance(offsets, list) or len(offsets) != 2 or not isinstance(offsets[1], int):
            raise _refused(path, f"its header gives {name[:60]!r} no data_offsets")
        end = max(end, offsets[1])
    return end


def _refused(path: str, seen: str) -> InputError:
    return InputError("reading the safetensors header of", path, seen, "the file is damaged: fetch it again")
