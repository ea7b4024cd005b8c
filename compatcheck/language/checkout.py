"""The compiled catalogue of a checkout, kept in the cache until its source changes."""

from __future__ import annotations

import os
from contextlib import suppress

from compatcheck.files.storage import cache_folder, write_note


def compiled(path: str) -> bytes:
    """The catalogue that is compiled from a ``.po`` file, made where it is not kept yet.

    Raises InputError where the source is damaged, or where babel is not installed.
    """
    about = os.stat(path)
    folder = os.path.join(cache_folder(), "checkouts", f"{about.st_ino}-{about.st_size}-{about.st_mtime_ns}")
    place = os.path.join(folder, "catalogue.mo")
    with suppress(OSError), open(place, "rb") as stream:
        return stream.read()
    from compatcheck.language import po_files

    content = po_files.compiled(path)
    write_note(place, content)
    return content
