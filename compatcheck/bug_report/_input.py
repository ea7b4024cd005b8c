"""The text of a pasted report: whatever encoding an editor or a terminal left it in, and of a web page what it says."""

from __future__ import annotations

import os
import sys
from typing import BinaryIO

from compatcheck.bug_report import _encoding, _html, _web_page
from compatcheck.errors import InputError
from compatcheck.files import limits
from compatcheck.files.reading import open_stream, read_some
from compatcheck.language import gettext as _

_CHUNK = 1 << 20
_DOING = "reading the report"


def read_input(path: str) -> tuple[str, str]:
    """The text of a file, ``-`` being standard input, and what to call it; of a long one its head and its end.

    Raises `InputError` where it cannot be read or is no text.
    """
    source = _("standard input") if path == "-" else path
    try:
        if path == "-":
            raw = _head_and_tail(sys.stdin.buffer)
        else:
            if not os.path.exists(path):
                raise InputError(_DOING, path, "there is no such file", "pass the path of a text file, or -")
            with open_stream(path) as stream:
                raw = _head_and_tail(stream)
    except OSError as error:
        seen = error.strerror or str(error)
        raise InputError(_DOING, source, seen, "pass the path of a text file, or -") from None
    return plain_text(_encoding.decoded(raw, source)), source


def plain_text(text: str) -> str:
    """What a text says: HTML without its tags, a copied page without menus and adverts; numbers of lines stay true."""
    return _web_page.without_furniture(_html.text_of(text) if _html.is_html(text) else text)


def _head_and_tail(stream: BinaryIO) -> bytes:
    """All bytes of a stream, or both ends of one that is too large, with a line that says so between them."""
    head = read_some(stream, limits.REPORT_BYTES + 1)
    if len(head) <= limits.REPORT_BYTES:
        return head
    half = limits.REPORT_BYTES // 2
    tail, size = head[half:], len(head)
    if stream.seekable():
        size = stream.seek(0, os.SEEK_END)
        stream.seek(max(size - half, half))
        tail = stream.read(half)
    else:
        while chunk := stream.read(_CHUNK):
            size += len(chunk)
            tail = (tail + chunk)[-half:]
    head, tail = head[:half].rpartition(b"\n")[0] or head[:half], tail[-half:].partition(b"\n")[2] or tail[-half:]
    left_out = (
        f"[{(size - len(head) - len(tail)) >> 10} KiB in the middle are not read; lines are counted without them]"
    )
    return head + f"\n\n{left_out}\n\n".encode() + tail
