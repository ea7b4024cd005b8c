"""An input of several files as one string of bytes, so that one mutator serves single files and folders."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Mapping

_HEAD = re.compile(rb"^%%% ([^\n]*)\n", re.M)
FOLDERS = "compatcheck-fuzz-"
"""How the name of each folder that may be emptied begins."""
_MOST_FILES = 40
_LONGEST_NAME = 120

SPECIAL = {b"<fifo>": os.mkfifo, b"<folder>": os.mkdir}
"""Contents that stand for something else than a file; ``<link PATH>`` is another."""

_LINK = re.compile(rb"<link (\.|\.\.|missing|/dev/zero|/proc/self/mem)>")

Files = Mapping[str, bytes]


def packed(files: Files) -> bytes:
    """The files with their names as one input; each ends with a newline of the container."""
    return b"".join(b"%%%%%% %b\n%b\n" % (name.encode(), content) for name, content in files.items())


def unpacked(data: bytes) -> Iterator[tuple[str, bytes]]:
    """The files of an input, whatever became of it: names that lead elsewhere are left out."""
    heads = list(_HEAD.finditer(data))[:_MOST_FILES]
    for head, end in zip(heads, [each.start() for each in heads[1:]] + [len(data)]):
        name = os.path.normpath(head[1][:_LONGEST_NAME].decode("utf-8", "surrogateescape").replace("\0", "0"))
        if not name.startswith(("/", "..")) and name != ".":
            content = data[head.end() : end]
            yield name, content[:-1] if content.endswith(b"\n") else content


def laid_out(data: bytes, folder: str) -> list[str]:
    """Write the files below a folder of the fuzzer, which is emptied, and return their names, in order."""
    if FOLDERS not in os.path.realpath(folder):
        raise RuntimeError(f"{os.path.realpath(folder)} is no folder of the fuzzer: read inputs in `bounded`")
    for entry in os.scandir(folder):
        if entry.is_dir(follow_symlinks=False):
            shutil.rmtree(entry.path)
        else:
            os.unlink(entry.path)
    names = []
    for name, content in unpacked(data):
        path = os.path.join(folder, name)
        try:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            if not os.path.lexists(path) and _is_inside(path, folder):
                _put(path, content)
                names.append(name)
        except OSError:
            continue
    return names


def _put(path: str, content: bytes) -> None:
    link = _LINK.fullmatch(content)
    if content in SPECIAL:
        SPECIAL[content](path)
    elif link:
        os.symlink(link[1], os.fsencode(path))
    else:
        with open(path, "wb") as stream:
            stream.write(content)


def _is_inside(path: str, folder: str) -> bool:
    """Whether no link on the way leads out of the folder."""
    return f"{os.path.realpath(os.path.dirname(path))}/".startswith(f"{os.path.realpath(folder)}/")
