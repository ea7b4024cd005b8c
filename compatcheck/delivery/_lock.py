"""One update at a time: TUF's own records must not be written by two."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from compatcheck.errors import InputError


@contextmanager
def only_one(folder: str) -> Iterator[None]:
    """Hold the folder's lock, which the system drops when the process ends, however it ends.

    Raises InputError where another process holds it, or where the folder cannot be written.
    """
    try:
        os.makedirs(folder, exist_ok=True)
        lock = open(os.path.join(folder, "lock"), "a+b")  # noqa: SIM115
    except OSError as error:
        seen = error.strerror or str(error)
        raise InputError("updating the matrix in", folder, seen, "make the folder writable") from None
    with lock:
        try:
            _acquire(lock.fileno())
        except OSError:
            seen = "another update is running"
            raise InputError("updating the matrix in", folder, seen, "wait for that update to finish") from None
        yield


def _acquire(handle: int) -> None:
    if sys.platform == "win32":
        import msvcrt

        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
    else:
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
