"""The folders that ``.pth`` files add to a site folder; their ``import`` lines are never run."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from compatcheck.files import limits
from compatcheck.files.reading import open_text


def with_pth_folders(site_folders: Iterable[str]) -> tuple[str, ...]:
    """Each site folder that exists, followed by the folders its ``.pth`` files name, without repeats."""
    found: dict[str, None] = {}
    for folder in site_folders:
        if folder in found or not os.path.isdir(folder):
            continue
        found[folder] = None
        for named in _listed_folders(folder):
            if len(found) < limits.PTH_FOLDERS:
                found.setdefault(named)
    return tuple(found)


def _listed_folders(folder: str) -> Iterator[str]:
    try:
        names = sorted(name for name in os.listdir(folder) if name.endswith(".pth"))
    except OSError:
        return
    for name in names:
        for line in path_lines(os.path.join(folder, name)):
            named = os.path.normpath(os.path.join(folder, line))
            if os.path.isdir(named):
                yield named


def path_lines(path: str) -> list[str]:
    """The path lines of a ``.pth`` or ``.egg-link`` file; none where it cannot be read, as Python itself does."""
    if not os.path.isfile(path):  # a named pipe would be waited for
        return []
    try:
        with open_text(path, encoding="utf-8-sig", errors="surrogateescape") as stream:
            text = stream.read(limits.PTH_BYTES)
    except OSError:
        return []
    lines = [line.strip() for line in text.splitlines() if "\0" not in line]
    return [line for line in lines if line and not line.startswith(("#", "import ", "import\t"))]
