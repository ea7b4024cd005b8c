"""What an installation that was ended early leaves in the cache of uv."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys


def remove(cache: str, since: float) -> None:
    """Remove the temporary folders younger than ``since``, in seconds of the epoch, unless some uv is still at work.

    Each uv holds the lock of the cache while it works, and one that starts meanwhile waits.
    """
    if sys.platform != "win32":
        import fcntl

        with contextlib.suppress(OSError), open(os.path.join(cache, ".lock"), "rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            for entry in os.scandir(cache):
                if entry.name.startswith(".tmp") and entry.stat(follow_symlinks=False).st_mtime >= since:
                    shutil.rmtree(entry.path, ignore_errors=True)
