"""Writing a file whole or not at all."""

from __future__ import annotations

import errno
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO, Literal

from compatcheck.errors import InputError
from compatcheck.files.repository import is_stream, leads_out

_UNFINISHED = ".compatcheck-unfinished"
_ABANDONED_SECONDS = 600.0
_FULL = (errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC))


def write(path: str, content: str | bytes, *, make_folder: bool = False, is_own: bool = False) -> None:
    """Replace the file's content in one step, so that what was there before is never half lost.

    A link is followed unless it leads out of its folder, or ``is_own``: the file is in a folder of compatcheck's, or of
    a program that runs anyway. A pipe or a device is written to as it is. Line ends stay those of the text. Raises
    InputError where the folder cannot be written or the disk is full; nothing is left behind then. What a killed
    process left unfinished in the folder is removed.
    """
    raw = content if isinstance(content, bytes) else content.encode("utf-8", errors="replace")
    try:
        real = os.path.realpath(path)
        if not is_own:
            require_inside("writing", path, real)
        if is_stream(path):
            with open(path, "wb") as stream:
                stream.write(raw)
            return
        if make_folder:
            os.makedirs(os.path.dirname(real), exist_ok=True)
        with _opened(os.path.dirname(real)) as folder:
            if os.path.exists(real) and not os.path.isfile(real):
                with _created(real, "wb", folder) as stream:
                    stream.write(raw)
            else:
                _replace(real, raw, folder)
    except OSError as error:
        advice = (
            "free some space, or write the file elsewhere"
            if error.errno in _FULL
            else "choose a file in a folder you can write to"
        )
        raise InputError("writing", path, error.strerror or str(error), advice) from None


def require_inside(doing: str, path: str, real: str | None = None) -> None:
    """Raise InputError where a link, which may have come with the folder, leads out of it, to ``real``."""
    if leads_out(path, real):
        seen = f"a link leads out of its folder, to {os.path.realpath(path)}"
        raise InputError(doing, path, seen, "remove the link, or pass the path it leads to")


def write_note(path: str, content: str | bytes) -> None:
    """Write what can be made again, in the cache; where nothing can be written it is made again next time."""
    with suppress(InputError):
        write(path, content, make_folder=True, is_own=True)


@contextmanager
def _opened(folder: str) -> Iterator[int | None]:
    """The folder with each part of its path opened in turn: what has become a link since is not followed.

    None where the system has no such handles.
    """
    if sys.platform != "linux":
        yield None
        return
    flags = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW
    handle = os.open(os.sep, flags)
    try:
        for part in filter(None, folder.split(os.sep)):
            above, handle = handle, os.open(part, flags, dir_fd=handle)
            os.close(above)
        yield handle
    finally:
        os.close(handle)


def _created(path: str, mode: Literal["wb", "xb"], folder: int | None) -> IO[bytes]:
    """The file, opened below the handle of its folder and through no link."""

    def opened(path: str, flags: int) -> int:
        return os.open(_below(path, folder), flags | getattr(os, "O_NOFOLLOW", 0), 0o600, dir_fd=folder)

    return open(path, mode, opener=opened)


def _below(path: str, folder: int | None) -> str:
    return path if folder is None else os.path.basename(path)


def _replace(path: str, raw: bytes, folder: int | None) -> None:
    place, name = os.path.split(path)
    _remove_abandoned(place)
    temporary = os.path.join(place, f".{name[:40]}.{os.urandom(6).hex()}{_UNFINISHED}")
    new, old = _below(temporary, folder), _below(path, folder)
    try:
        with _created(temporary, "xb", folder) as stream:
            stream.write(raw)
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(new, _mode(path), dir_fd=folder)
        os.replace(new, old, src_dir_fd=folder, dst_dir_fd=folder)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(new, dir_fd=folder)


def _remove_abandoned(folder: str) -> None:
    """Remove what processes that were killed left unfinished; what is younger may still be written to."""
    limit = time.time() - _ABANDONED_SECONDS
    for entry in os.scandir(folder):
        if entry.name.endswith(_UNFINISHED):
            with suppress(OSError):
                if entry.stat(follow_symlinks=False).st_mtime < limit:
                    os.unlink(entry.path)


def _mode(path: str) -> int:
    """The permissions of the file that is replaced, else what a new file gets."""
    try:
        return os.stat(path).st_mode & 0o777
    except FileNotFoundError:
        mask = os.umask(0)
        os.umask(mask)
        return 0o666 & ~mask


def cache_folder() -> str:
    """The folder of what can be made again, as platformdirs has it."""
    return _folder("cache", "XDG_CACHE_HOME", "~/.cache")


def data_folder() -> str:
    """The folder of what is to be kept, as platformdirs has it."""
    return _folder("data", "XDG_DATA_HOME", os.path.join("~", ".local", "share"))


def _folder(kind: str, variable: str, otherwise: str) -> str:
    """On Linux without platformdirs: loading that on every check costs more than the whole answer.

    A user without a home folder has none: where nothing can be written, nothing is remembered.
    """
    system = sys.platform
    if system == "linux":
        bases = (os.environ.get(variable, "").strip(), os.path.expanduser(otherwise))
        return os.path.join(next(filter(os.path.isabs, bases), os.devnull), "compatcheck")
    import platformdirs

    folder: str = getattr(platformdirs, f"user_{kind}_dir")("compatcheck", appauthor=False)
    return folder
