"""Unpacking a verified archive as if it were not: a leaked key must not be able to write files at will."""

from __future__ import annotations

import os
import re
import stat
import zipfile
import zlib
from typing import NamedTuple

from compatcheck.errors import DataError, InputError
from compatcheck.files import limits

_NAME = re.compile(r"(?:[a-z0-9][a-z0-9_.-]{0,99}/){0,2}[a-z0-9][a-z0-9_.-]{0,99}")


class Archive(NamedTuple):
    """A zip file, and how it is called in messages."""

    path: str
    name: str


def unpack(archive: Archive, folder: str) -> None:
    """Write the members of the archive below an empty folder, and have them on the disk before this returns.

    Raises DataError, having written nothing, where a member is not a plain file below the folder or there are too many
    or too large ones; DataError as well where one is damaged; InputError where the disk is full.
    """
    try:
        with zipfile.ZipFile(archive.path) as opened:
            members = opened.infolist()
            _require_plain(members, archive)
            for member in members:
                _write(os.path.join(folder, *member.filename.split("/")), opened.read(member))
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, UnicodeDecodeError) as error:
        raise _refusal(archive, f"the archive is damaged ({error})") from None
    except (FileExistsError, NotADirectoryError):
        raise _refusal(archive, "one member of the archive overwrites another") from None
    except OSError as error:
        seen = error.strerror or str(error)
        raise InputError(
            "unpacking the matrix into", folder, seen, "free some space; the current matrix stays in use"
        ) from None


def _require_plain(members: list[zipfile.ZipInfo], archive: Archive) -> None:
    if len(members) > limits.ARCHIVE_FILES or sum(member.file_size for member in members) > limits.ARCHIVE_BYTES:
        raise _refusal(
            archive, f"the archive contains more than {limits.ARCHIVE_FILES} files or {limits.ARCHIVE_BYTES} bytes"
        )
    seen: set[str] = set()
    for member in members:
        kind = stat.S_IFMT(member.external_attr >> 16)
        if not _NAME.fullmatch(member.filename) or kind not in (0, stat.S_IFREG) or member.flag_bits & 1:
            raise _refusal(archive, f"the member {member.filename!r} is not a plain file inside the archive")
        if member.filename in seen:
            raise _refusal(archive, f"the archive contains {member.filename!r} twice")
        seen.add(member.filename)


def _write(path: str, content: bytes) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "xb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())


def _refusal(archive: Archive, seen: str) -> DataError:
    return DataError(
        "unpacking", archive.name, f"refused: {seen}", "the current matrix stays in use; report it to the publisher"
    )
