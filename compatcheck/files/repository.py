"""The working tree that the current folder belongs to, and how its files are named from there."""

from __future__ import annotations

import os
import re

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
