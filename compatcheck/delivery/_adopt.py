"""Taking a fetched matrix into use: it is read whole first, and then a pointer is turned to it in one step."""

from __future__ import annotations

import filecmp
import json
import os
import re
import shutil
import tempfile
from collections.abc import Callable
from typing import NamedTuple

from compatcheck.errors import DataError, InputError
from compatcheck.files import storage
from compatcheck.language import LANGUAGES
from compatcheck.matrix.fetched import POINTER, About, Pointer, folder_of, newer_than, read_about, read_pointer, store
from compatcheck.matrix.loading import FORMAT, bundled_folder, load_compiled

_FETCHED = "the fetched matrix"
_REVISION = re.compile(r"\w[\w.-]{0,63}")
_STAYS = "the current matrix stays in use"


class Adopted(NamedTuple):
    """What came of it: whether that matrix is another than the fetched one before, and whether checks now use it."""

    about: About
    changed: bool
    used: bool
    bundled: About


def adopt(unpack: Callable[[str], None], url: str) -> Adopted:
    """Let ``unpack`` fill a new folder, and make that the fetched matrix in use.

    Only one process may do so at a time. Raises what ``unpack`` raises, DataError where the matrix is damaged, and
    InputError where this version cannot read it or the disk is full; what was in use stays in use then.
    """
    revisions = os.path.join(store(), "revisions")
    try:
        os.makedirs(revisions, exist_ok=True)
        folder = tempfile.mkdtemp(prefix="new-", dir=revisions)
        try:
            unpack(folder)
            return _take(folder, url)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    except OSError as error:
        seen = error.strerror or str(error)
        raise InputError("saving the matrix in", store(), seen, f"make room there; {_STAYS}") from None


def last_url() -> str | None:
    """Where the matrix in use was fetched from; None where none was, or nobody can tell."""
    try:
        pointer = read_pointer()
    except DataError:
        return None
    return pointer.url if pointer else None


def _take(folder: str, url: str) -> Adopted:
    about = _require_readable(folder)
    before = _pointer()
    changed = before is None or not _is_same(folder, folder_of(before))
    if before is not None and not changed:
        _point_to(before._replace(url=url))
    else:
        name = os.path.basename(folder).replace("new", about.revision, 1)
        os.rename(folder, os.path.join(os.path.dirname(folder), name))
        _point_to(Pointer(name, about, url, before.folder if before else None))
    bundled = read_about(bundled_folder())
    return Adopted(about, changed, newer_than(bundled_folder(), FORMAT) is not None, bundled)


def _pointer() -> Pointer | None:
    """What was in use; a pointer that cannot be read is replaced."""
    try:
        return read_pointer()
    except DataError:
        return None


def _point_to(pointer: Pointer) -> None:
    """Point to another folder, and remove those that nobody reads any more; a running check may read the previous."""
    told = {**pointer.about._asdict(), "folder": pointer.folder, "url": pointer.url, "previous": pointer.previous}
    storage.write(os.path.join(store(), POINTER), json.dumps(told, indent=2) + "\n", is_own=True)
    revisions = os.path.join(store(), "revisions")
    for name in os.listdir(revisions):
        if name not in (pointer.folder, pointer.previous):
            shutil.rmtree(os.path.join(revisions, name), ignore_errors=True)


def _is_same(one: str, other: str) -> bool:
    """Whether two folders hold the same files."""
    names = _names(one)
    if names != _names(other):
        return False
    _, differing, unread = filecmp.cmpfiles(one, other, names, shallow=False)
    return not differing and not unread


def _names(folder: str) -> list[str]:
    return sorted(
        os.path.relpath(os.path.join(place, name), folder) for place, _, names in os.walk(folder) for name in names
    )


def _require_readable(folder: str) -> About:
    """What the matrix says of itself, where every part of it can be read by this version."""
    from pydantic import ValidationError

    from compatcheck.matrix.entry import Entry, WithdrawnEntry

    about = read_about(folder, _STAYS)
    known = load_compiled(folder, _STAYS)
    entries = list(known.read(None))
    tables = {name.removesuffix(".json") for name in _names(os.path.join(folder, "tables"))}
    if (
        not _REVISION.fullmatch(str(about.revision))
        or about != (FORMAT, known.revision, known.entries, known.date)
        or sum("withdrawn" not in entry for entry in entries) != known.entries
        or tables != known.tables
    ):
        raise DataError("reading", _FETCHED, "the files of the matrix do not belong together", _STAYS)
    for entry in entries:
        try:
            (WithdrawnEntry if "withdrawn" in entry else Entry).model_validate(entry)
        except ValidationError as error:
            fault = error.errors(include_url=False)[0]
            name = entry.get("id") if isinstance(entry, dict) else type(entry).__name__
            seen = f"{name}: {'.'.join(map(str, fault['loc']))}: {fault['msg']}"
            raise InputError(
                "reading", _FETCHED, seen, f"upgrade compatcheck, which is too old for it; {_STAYS}"
            ) from None
    try:
        known.patterns(), known.rows(), known.postings()
    except (ValueError, TypeError, KeyError, IndexError):
        raise DataError("reading", _FETCHED, "the files of the matrix do not belong together", _STAYS) from None
    for name in tables:
        known.table(name)
    for language in LANGUAGES:
        known.texts(language)
    return about
