"""Laying the pages into a folder, whole or not at all."""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping

from compatcheck.errors import InputError
from compatcheck.files import storage
from compatcheck.files.reading import open_text

_HERE, _EXCHANGE = -100, 2
"""``AT_FDCWD`` and ``RENAME_EXCHANGE``: https://man7.org/linux/man-pages/man2/rename.2.html"""
MARK = "compatcheck-site.json"
"""The file that tells a site of ours from any other folder; it lists what was written."""


def write(files: Mapping[str, str], folder: str) -> None:
    """Replace the site in a folder by these files; files of others in it stay where they are.

    Raises InputError where the folder holds something else than a site of ours, or cannot be written; it is then as
    it was.
    """
    real = os.path.realpath(folder)
    was = require_ours(folder)
    try:
        os.makedirs(os.path.dirname(real), exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{os.path.basename(real)}.", dir=os.path.dirname(real)) as beside:
            made, old = os.path.join(beside, "new"), os.path.join(beside, "old")
            _fill(made, files)
            if os.path.isdir(real):
                _keep_foreign(real, made, was)
                _exchange(made, real, old)
            else:
                os.rename(made, real)
    except OSError as error:
        seen = error.strerror or str(error)
        raise InputError("writing the site into", folder, seen, "choose a folder you can write to") from None


def require_ours(folder: str) -> set[str]:
    """The files that an earlier run wrote there. Raises InputError where somebody else's are."""
    storage.require_inside("writing the site into", folder)
    real = os.path.realpath(folder)
    try:
        if not os.path.lexists(real) or (os.path.isdir(real) and not os.listdir(real)):
            return set()
        with open_text(os.path.join(real, MARK), errors="strict") as stream:
            return {MARK, *map(str, json.load(stream)["files"])}
    except (OSError, ValueError, KeyError, TypeError):
        seen, advice = "the folder contains files other than an earlier site", "choose another folder, or a new one"
        raise InputError("writing the site into", folder, seen, advice) from None


def _exchange(made: str, real: str, old: str) -> None:
    """Put one folder in the place of another: at once where the system can, else with the other put back on a cut."""
    if _swap(made, real):
        return
    os.rename(real, old)
    try:
        os.rename(made, real)
    finally:
        if not os.path.lexists(real):
            os.rename(old, real)


def _swap(one: str, other: str) -> bool:
    """Let two paths exchange what they name; False where the system cannot."""
    try:
        rename = ctypes.CDLL(None).renameat2
    except (AttributeError, OSError, TypeError):
        return False
    paths = (ctypes.c_char_p(os.fsencode(each)) for each in (one, other))
    first, second = paths
    return bool(rename(_HERE, first, _HERE, second, _EXCHANGE) == 0)


def _fill(folder: str, files: Mapping[str, str]) -> None:
    mark = json.dumps({"made by": "compatcheck matrix site", "files": sorted(files)}, indent=1)
    for name, text in {**files, MARK: mark + "\n"}.items():
        path = os.path.join(folder, *name.split("/"))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8", newline="\n") as stream:
            stream.write(text)


def _keep_foreign(real: str, made: str, was: set[str]) -> None:
    for name in _files_below(real):
        target = os.path.join(made, *name.split("/"))
        if name not in was and not os.path.lexists(target):
            os.makedirs(os.path.dirname(target), exist_ok=True)
            shutil.copy2(os.path.join(real, *name.split("/")), target, follow_symlinks=False)


def _files_below(folder: str) -> Iterator[str]:
    for here, folders, names in os.walk(folder):
        links = [name for name in folders if os.path.islink(os.path.join(here, name))]
        for name in (*names, *links):
            yield os.path.relpath(os.path.join(here, name), folder).replace(os.sep, "/")
