"""The lines of a log of any size, in bounded memory and whatever its encoding."""

from __future__ import annotations

import codecs
import os
import sys
import zlib
from collections.abc import Callable, Iterator
from typing import IO, NamedTuple

from compatcheck.errors import InputError
from compatcheck.files import limits
from compatcheck.files.reading import open_stream, read_some
from compatcheck.language import gettext as _

CHUNK = 1 << 20

_DOING = "reading the log"
_GZIP = 31
_UTF16 = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}


class Batch(NamedTuple):
    """Consecutive lines, the last without its newline; the first has the number ``first``.

    A piece of a long line is a batch of its own.
    """

    first: int
    text: str


def batches(path: str, chunk: int = CHUNK, notes: list[str] | None = None) -> Iterator[Batch]:
    """The lines of a file, of a gzip file, or of standard input (``-``), with progress if it takes long.

    UTF-8, UTF-16 with its mark, and GB18030 (GBK) are read; a byte that fits none is replaced. Carriage returns stay
    in a line: what overwrote what is for the caller. ``notes`` takes what was odd. Raises InputError where it cannot be
    opened or is no text.
    """
    from compatcheck.terminal.progress import late_progress

    try:
        if path == "-":
            with late_progress(_("reading the log"), None) as advance:
                yield from _decode(sys.stdin.buffer, "standard input", chunk, notes, advance)
            return
        if not os.path.lexists(path):
            raise InputError(_DOING, path, "there is no such file", "pass the path of a log")
        if os.path.isdir(path):
            raise InputError(_DOING, path, "this is a folder", "pass a log file in this folder")
        with open_stream(path) as stream, late_progress(_("reading the log"), os.path.getsize(path)) as advance:
            yield from _decode(stream, path, chunk, notes, advance)
    except OSError as error:
        raise InputError(_DOING, path, error.strerror or str(error), "make it readable") from None


def head(path: str, size: int = limits.LOG_LINE_BYTES) -> bytes:
    """The first bytes of a plain file; nothing of standard input, which can be read only once."""
    if path == "-" or not os.path.isfile(path):
        return b""
    try:
        with open_stream(path) as stream:
            raw = read_some(stream, size)
    except OSError as error:
        raise InputError(_DOING, path, error.strerror or str(error), "make it readable") from None
    return raw


def _decode(
    stream: IO[bytes], source: str, chunk: int, notes: list[str] | None, advance: Callable[[float], None]
) -> Iterator[Batch]:
    parts = _chunks(stream, chunk, advance)
    start = b""
    for part in parts:
        start += part
        if len(start) >= 4:
            break
    if start.startswith(b"\x1f\x8b"):
        parts = _unzipped(_chain(start, parts), source, notes)
        start = next(parts, b"")
        while len(start) < 4 and (more := next(parts, b"")):
            start += more
    encoding = _UTF16.get(start[:2])
    if encoding:
        parts = _transcoded(_chain(start[2:], parts), encoding)
        start = b""
    elif b"\0" in start[:4096]:
        raise InputError(
            _DOING, source, "the file is not text", "pass a log, trainer_state.json or TensorBoard event file"
        )
    yield from _lines(_chain(start.removeprefix(codecs.BOM_UTF8), parts), source)


def _chain(start: bytes, parts: Iterator[bytes]) -> Iterator[bytes]:
    yield start
    yield from parts


def _chunks(stream: IO[bytes], chunk: int, advance: Callable[[float], None]) -> Iterator[bytes]:
    read = getattr(stream, "read1", stream.read)
    while part := read(chunk):
        yield part
        advance(len(part))


def _unzipped(parts: Iterator[bytes], source: str, notes: list[str] | None) -> Iterator[bytes]:
    """The content of gzip bytes; a file that is cut short or damaged gives what there is before that."""
    inflater = zlib.decompressobj(_GZIP)
    whole = True
    for part in parts:
        while part and whole:
            if inflater.eof:
                inflater = zlib.decompressobj(_GZIP)
            try:
                content = inflater.decompress(part, CHUNK)
            except zlib.error:
                whole = False
                break
            part = inflater.unconsumed_tail or inflater.unused_data
            if content:
                yield content
    if notes is not None and not (whole and inflater.eof):
        notes.append(f"{source} is truncated or damaged; only the part that could be unpacked was read")


def _transcoded(parts: Iterator[bytes], encoding: str) -> Iterator[bytes]:
    decoder = codecs.getincrementaldecoder(encoding)(errors="replace")
    for part in parts:
        yield decoder.decode(part).encode("utf-8", "replace")
    yield decoder.decode(b"", final=True).encode("utf-8", "replace")


def _lines(parts: Iterator[bytes], source: str) -> Iterator[Batch]:
    """Cut at newlines, and a long line at fixed places of its own: the sizes of the parts never show."""
    number, rest, given = 1, b"", 0
    for part in parts:
        rest += part
        end = rest.rfind(b"\n") + 1
        if end:
            yield from _whole(number, rest[:end])
            number += rest.count(b"\n", 0, end)
            rest, given = rest[end:], 0
        while len(rest) > limits.LOG_LINE_BYTES:
            cut = _cut(rest)
            yield Batch(number, _decoded(rest[:cut]))
            rest, given = rest[cut:], given + cut
            if given > limits.LONGEST_LOG_LINE_BYTES:
                seen = f"line {number} is longer than {limits.LONGEST_LOG_LINE_BYTES >> 20} MiB"
                raise InputError(_DOING, source, seen, "pass a log with line breaks")
    if rest:
        yield Batch(number, _decoded(rest))


def _whole(number: int, block: bytes) -> Iterator[Batch]:
    """The lines of a block that ends in a newline; those that are too long in pieces, as they would come otherwise."""
    raw = block[:-1].split(b"\n")
    if len(block) <= limits.LOG_LINE_BYTES or max(map(len, raw)) <= limits.LOG_LINE_BYTES:
        yield Batch(number, _decoded(block[:-1]))
        return
    start = 0
    for at, line in enumerate(raw):
        if len(line) > limits.LOG_LINE_BYTES:
            if at > start:
                yield Batch(number + start, _decoded(b"\n".join(raw[start:at])))
            while len(line) > limits.LOG_LINE_BYTES:
                cut = _cut(line)
                yield Batch(number + at, _decoded(line[:cut]))
                line = line[cut:]
            yield Batch(number + at, _decoded(line))
            start = at + 1
    if start < len(raw):
        yield Batch(number + start, _decoded(b"\n".join(raw[start:])))


def _cut(raw: bytes) -> int:
    """Where a long line is cut: after the last carriage return that fits, else between two characters."""
    cut = raw.rfind(b"\r", 0, limits.LOG_LINE_BYTES) + 1
    if cut:
        return cut
    cut = limits.LOG_LINE_BYTES
    while cut > limits.LOG_LINE_BYTES - 4 and raw[cut] & 0xC0 == 0x80:
        cut -= 1
    return cut


def _decoded(raw: bytes) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return "\n".join(map(_decoded_line, raw.split(b"\n")))


def _decoded_line(raw: bytes) -> str:
    for encoding in ("utf-8", "gb18030"):
        try:
            return raw.decode(encoding)
        except UnicodeDecodeError:
            continue
    return raw.decode("utf-8", "replace")
