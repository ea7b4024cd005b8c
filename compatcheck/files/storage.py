"""Writing a file whole or not at all."""

from __future__ import annotations

import os
import sys

from compatcheck.errors import InputError


def write(path: str, text: str) -> None:
    """Replace the file's content in one step, so that what was there before is never half lost.

    A link is followed; a pipe or a device is written to as it is. Line ends stay those of the text. Raises InputError
    where the folder cannot be written or the disk is full; nothing is left behind then.
    """
    real = os.path.realpath(path)
    try:
        if os.path.exists(real) and not os.path.isfile(real):
            with open(real, "w", encoding="utf-8", errors="replace", newline="") as stream:
                stream.write(text)
        else:
            _replace(real, text)
    except OSError as error:
        seen = error.strerror or str(error)
        raise InputError("writing", path, seen, "name a file in a folder you can write to") from None


def _replace(path: str, text: str) -> None:
    import tempfile

    handle, temporary = tempfile.mkstemp(prefix=f".{os.path.basename(path)}.", dir=os.path.dirname(path))
    try:
        with open(handle, "w", encoding="utf-8", errors="replace", newline="") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(temporary, _mode(path))
        os.replace(temporary, path)
    finally:
        if os.path.exists(temporary):
            os.unlink(temporary)


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
    """On Linux without platformdirs: loading that on every check costs more than the whole answer."""
    system = sys.platform
    if system == "linux":
        base = os.environ.get(variable, "").strip() or os.path.expanduser(otherwise)
        return os.path.join(base, "compatcheck")
    import platformdirs

    folder: str = getattr(platformdirs, f"user_{kind}_dir")("compatcheck", appauthor=False)
    return folder
