"""The working tree that the current folder belongs to, and how its files are named from there."""

from __future__ import annotations

import os
import re

_STREAMS = ("/dev/std", "/dev/fd/", "/proc/self/fd/")
_GIT = f"{os.sep}.git{os.sep}"
_ON_A_DRIVE = re.compile(r"[A-Za-z]:[\\/]")


def root() -> str:
    """The working tree that the current folder belongs to, else the current folder."""
    here = folder = os.path.realpath(os.curdir)
    while not os.path.exists(os.path.join(folder, ".git")):
        above = os.path.dirname(folder)
        if above == folder:
            return here
        folder = above
    return folder


def leads_out(path: str, real: str | None = None) -> bool:
    """Whether a link, which may have come with a folder, leads out of it, or into its `.git`.

    ``real`` is where the path led when a caller looked: a link may have changed since. The folder is
    the repository of the current folder; for a link elsewhere, the folder that holds the link. Devices and the streams
    of this process, such as /dev/stdout, may be behind any link.
    """
    whole, real, folder = os.path.abspath(path), os.path.realpath(path) if real is None else real, root()
    if is_stream(path) or (real.startswith("/dev/") and not os.path.isfile(real)):
        return False
    if _is_below(real, folder):
        return _GIT in real and _GIT not in whole
    if _is_below(whole, folder) or _is_below(whole, os.path.abspath(os.curdir)):
        return True
    return not _is_below(real, os.path.realpath(os.path.dirname(whole)))


def is_stream(path: str) -> bool:
    """Whether a path names a stream of this process, such as /dev/stdout, which leads to any file."""
    return os.path.abspath(path).startswith(_STREAMS)


def _is_below(path: str, folder: str) -> bool:
    return path.startswith(os.path.join(folder, ""))


def below(file: str, folder: str) -> str:
    """The file by its path below the folder, or its whole path where it lies elsewhere, with links resolved."""
    if os.sep == "/":
        file = file.replace("\\", "/")
    if not _ON_A_DRIVE.match(file) or os.sep != "/":
        inside = (os.path.relpath(path, folder) for path in _whole(file) if path.startswith(os.path.join(folder, "")))
        file = next(inside, os.path.abspath(file))
    return file.replace(os.sep, "/")


def is_inside(path: str) -> bool:
    """Whether a path that `below` gave lies below the folder."""
    return not path.startswith("/") and not _ON_A_DRIVE.match(path)


def _whole(file: str) -> tuple[str, str]:
    folder, name = os.path.split(os.path.abspath(file))
    return os.path.realpath(file), os.path.join(os.path.realpath(folder), name)
