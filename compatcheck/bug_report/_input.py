"""The text of a pasted report: whatever encoding an editor or a terminal left it in."""

from __future__ import annotations

import codecs
import os
import sys

from compatcheck.errors import InputError

_LARGEST = 8 << 20
_DOING = "reading the report"
_CONTROLS = frozenset(range(32)) - frozenset(b"\t\n\r\f\b\x1b")


def read_input(path: str) -> tuple[str, str]:
    """The text of a file, ``-`` being standard input, and what to call it.

    UTF-8, UTF-16 with its mark, and GBK are understood. Raises `InputError` where it cannot be read, is larger than
    8 MiB or is no text.
    """
    source = "standard input" if path == "-" else path
    try:
        if path == "-":
            raw = sys.stdin.buffer.read(_LARGEST + 1)
        else:
            if not os.path.exists(path):
                raise InputError(_DOING, path, "there is no such file", "give the path of a text file, or -")
            with open(path, "rb") as stream:
                raw = stream.read(_LARGEST + 1)
    except OSError as error:
        seen = error.strerror or str(error)
        raise InputError(_DOING, source, seen, "give the path of a text file, or -") from None
    if len(raw) > _LARGEST:
        raise InputError(_DOING, source, f"it is larger than {_LARGEST >> 20} MiB", "give the part on the environment")
    return decoded(raw, source), source


def decoded(raw: bytes, source: str) -> str:
    """The text of the bytes; raises `InputError` where they are none."""
    if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return _strictly(raw, "utf-16", source)
    if b"\0" in raw or sum(byte in _CONTROLS for byte in raw[:65536]) * 100 > len(raw[:65536]):
        raise InputError(_DOING, source, "it is binary", "paste the text of the report")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        return _strictly(raw, "gb18030", source)


def _strictly(raw: bytes, encoding: str, source: str) -> str:
    try:
        return raw.decode(encoding)
    except UnicodeDecodeError:
        seen = "it is neither UTF-8, UTF-16 nor GBK"
        raise InputError(_DOING, source, seen, "save it as UTF-8") from None
