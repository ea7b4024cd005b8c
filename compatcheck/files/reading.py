"""Read files with bounds: the user's own, and those that tell what is installed."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import IO, BinaryIO

from compatcheck.errors import InputError
from compatcheck.files import limits

_MARKS = (b"\xff\xfe", b"\xfe\xff")


_replaced: dict[str, bytes] = {}


@contextmanager
def replaced(texts: Mapping[str, str]) -> Iterator[None]:
    """Read these texts, by path, in the place of what the files hold, which stay as they are."""
    before = dict(_replaced)
    _replaced.update({os.path.realpath(path): text.encode(errors="surrogateescape") for path, text in texts.items()})
    try:
        yield
    finally:
        _replaced.clear()
        _replaced.update(before)


_NO_FILE = "this is not a regular file"
_FLAGS = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)


def open_bytes(path: str, buffering: int = -1) -> BinaryIO:
    """Open an ordinary file of anybody's; raises OSError at once for a pipe, a device, a folder or no file's name."""
    return open(_descriptor(path), "rb", buffering)


def open_stream(path: str) -> BinaryIO:
    """Open a file, or a pipe, which is empty if nobody writes to it; raises OSError at once for a device."""
    try:
        descriptor = os.open(path, _FLAGS)
    except ValueError:
        raise OSError(errno.EINVAL, "a file cannot have this name", path) from None
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISFIFO(mode):
        os.set_blocking(descriptor, True)
    elif not stat.S_ISREG(mode):
        os.close(descriptor)
        raise OSError(errno.EISDIR if stat.S_ISDIR(mode) else errno.EINVAL, _NO_FILE, path)
    return open(descriptor, "rb")


def read_some(stream: BinaryIO, most: int) -> bytes:
    """At most so many bytes. Raises OSError for a file that would wait for some, as the kernel's own do."""
    raw: bytes | None = stream.read(most)
    if raw is None:
        raise OSError(errno.EAGAIN, "the file has no content to read now")
    return raw


def open_text(path: str, *, encoding: str = "utf-8", errors: str = "replace") -> IO[str]:
    """The same for text."""
    return open(_descriptor(path), encoding=encoding, errors=errors)


def _descriptor(path: str) -> int:
    """Without waiting, as opening a pipe does until somebody writes to it."""
    try:
        descriptor = os.open(path, _FLAGS)
    except ValueError:
        raise OSError(errno.EINVAL, "a file cannot have this name", path) from None
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return descriptor
    os.close(descriptor)
    raise OSError(errno.EISDIR if stat.S_ISDIR(mode) else errno.EINVAL, _NO_FILE, path)


class OversizeError(InputError):
    """A file larger or deeper than anything of its kind, which nobody keeps by accident."""


def read_text(path: str, largest: int = limits.TEXT_BYTES) -> str:
    """The text of a file of at most ``largest`` bytes; raises `InputError` where it is none."""
    return decoded(read_bytes(path, largest), path)


def read_bytes(path: str, largest: int = limits.TEXT_BYTES) -> bytes:
    """What a file of at most ``largest`` bytes holds; raises `InputError` where it is none."""
    if _replaced and (text := _replaced.get(os.path.realpath(path))) is not None:
        return text
    try:
        if not os.path.isfile(path):
            missing = "there is no such file" if not os.path.lexists(path) else _NO_FILE
            raise InputError("reading", path, missing, "pass the path of a file")
        with open_bytes(path) as stream:
            raw = read_some(stream, largest + 1)
    except OSError as error:
        raise InputError("reading", path, error.strerror or str(error), "make it readable") from None
    if len(raw) > largest:
        raise OversizeError(
            "reading", path, f"the file is larger than {largest >> 20} MiB", "pass a file of the expected kind"
        )
    return raw


def decoded(raw: bytes, source: str) -> str:
    """The text of UTF-8 bytes, with or without its mark; raises `InputError` where they are not that."""
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        seen = f"byte {error.start} is not UTF-8"
        raise InputError("reading", source, seen, "save it as UTF-8") from None


def marked_text(path: str, largest: int = limits.TEXT_BYTES) -> str:
    """The text of a file in UTF-8, or in UTF-16 with its mark, as PowerShell's ``>`` writes it."""
    raw = read_bytes(path, largest)
    if not raw.startswith(_MARKS):
        return decoded(raw, path)
    try:
        return raw.decode("utf-16")
    except UnicodeDecodeError as error:
        raise InputError("reading", path, f"byte {error.start} is not UTF-16", "save it as UTF-8") from None


def start_of(path: str, most: int = limits.HEAD_BYTES) -> str | None:
    """The beginning of a file that may be missing or unreadable; ``None`` where it is."""
    try:
        with open_text(path) as stream:
            return stream.read(most)
    except OSError:
        return None
