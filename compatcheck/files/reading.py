"""Read the user's own files with bounds."""

from __future__ import annotations

import os

from compatcheck.errors import InputError

LARGEST = 16 << 20
_MARKS = (b"\xff\xfe", b"\xfe\xff")


class OversizeError(InputError):
    """A file larger or deeper than anything of its kind, which nobody keeps by accident."""


def read_text(path: str, largest: int = LARGEST) -> str:
    """The text of a file of at most ``largest`` bytes; raises `InputError` where it is none."""
    return decoded(read_bytes(path, largest), path)


def read_bytes(path: str, largest: int = LARGEST) -> bytes:
    """What a file of at most ``largest`` bytes holds; raises `InputError` where it is none."""
    try:
        if not os.path.isfile(path):
            missing = "there is no such file" if not os.path.lexists(path) else "it is not an ordinary file"
            raise InputError("reading", path, missing, "give the path of a file")
        with open(path, "rb") as stream:
            raw = stream.read(largest + 1)
    except OSError as error:
        raise InputError("reading", path, error.strerror or str(error), "make it readable") from None
    if len(raw) > largest:
        raise OversizeError("reading", path, f"it is larger than {largest >> 20} MiB", "give a file of this kind")
    return raw


def decoded(raw: bytes, source: str) -> str:
    """The text of UTF-8 bytes, with or without its mark; raises `InputError` where they are not that."""
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        seen = f"byte {error.start} is not UTF-8"
        raise InputError("reading", source, seen, "save it as UTF-8") from None


def marked_text(path: str, largest: int = LARGEST) -> str:
    """The text of a file in UTF-8, or in UTF-16 with its mark, as PowerShell's ``>`` writes it."""
    raw = read_bytes(path, largest)
    if not raw.startswith(_MARKS):
        return decoded(raw, path)
    try:
        return raw.decode("utf-16")
    except UnicodeDecodeError as error:
        raise InputError("reading", path, f"byte {error.start} is not UTF-16", "save it as UTF-8") from None
