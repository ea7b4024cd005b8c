"""Writing a file whole or not at all."""

from __future__ import annotations

import os
import tempfile

from compatcheck.errors import InputError


def write(path: str, text: str) -> None:
    """Replace the file's content in one step, so that what was there before is never half lost.

    Raises InputError where the folder cannot be written or the disk is full; nothing is left behind then.
    """
    folder = os.path.dirname(os.path.abspath(path))
    try:
        handle, temporary = tempfile.mkstemp(prefix=f".{os.path.basename(path)}.", dir=folder)
    except OSError as error:
        raise _refused(path, error) from None
    try:
        with open(handle, "w", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(temporary, _mode(path))
        os.replace(temporary, path)
    except OSError as error:
        os.unlink(temporary)
        raise _refused(path, error) from None


def _refused(path: str, error: OSError) -> InputError:
    return InputError("writing", path, error.strerror or str(error), "name a file in a folder you can write to")


def _mode(path: str) -> int:
    """The permissions of the file that is replaced, else what a new file gets."""
    try:
        return os.stat(path).st_mode & 0o777
    except FileNotFoundError:
        mask = os.umask(0)
        os.umask(mask)
        return 0o666 & ~mask
