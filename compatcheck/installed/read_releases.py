"""Installed releases that the interface tables lack, read from their files and remembered for every environment."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

from packaging.version import Version

from compatcheck import __version__
from compatcheck.environment import Target
from compatcheck.errors import InputError
from compatcheck.files import limits, storage
from compatcheck.files.reading import open_text
from compatcheck.installed.distributions import Installation, scan
from compatcheck.interfaces.answers import Question, amended, questions
from compatcheck.interfaces.history import Interfaces, Table
from compatcheck.interfaces.summary import FORMAT
from compatcheck.packages.versions import final_release

OnModule = Callable[[str], None]


class ReadReleases(NamedTuple):
    """The tables with what was read, and for each release of which nothing could be read the reason."""

    table: Table
    unread: Mapping[str, str] = {}


def with_read_releases(table: Table, target: Target, on_module: OnModule = lambda module: None) -> ReadReleases:
    """The tables, in which the installed releases that they lack count as their files say.

    Only what other installed releases ask is looked up, and what was found is kept in the cache folder for every
    environment with the same files. ``on_module`` hears of each module that is read.
    """
    installed = {found.name: found for found in scan(target).installed}
    releases = {name: release for name, found in installed.items() if (release := final_release(found.version))}
    read, unread = {}, {}
    for name in _lacking(table, releases):
        asked = questions(table, releases, name)
        if asked:
            try:
                read[name] = (releases[name], _answers(installed[name], asked, on_module))
            except InputError as error:
                unread[name] = str(error)
    return ReadReleases(amended(table, read), unread) if read else ReadReleases(table, unread)


def _lacking(table: Table, releases: Mapping[str, Version]) -> list[str]:
    """The packages of the tables whose installed release is newer than theirs, or was never read."""
    interfaces, lacking = Interfaces(table), []
    for name in sorted(releases.keys() & set(table("interfaces/index").get("modules", {}).values())):
        known = interfaces.releases(name)
        if known and str(releases[name].public) not in known and releases[name] > Version(known[0]):
            lacking.append(name)
    return lacking


def _answers(found: Installation, asked: Collection[Question], on_module: OnModule) -> dict[Question, bool]:
    """What the installed files answer; what no note of them holds yet is looked up now."""
    from compatcheck.installed.modules import modules_of, record_of
    from compatcheck.interfaces.lazy import LazyRelease
    from compatcheck.interfaces.release import gives

    record = record_of(found)
    note = os.path.join(storage.cache_folder(), "interfaces", f"{found.name}-{_digest(record)}.json")
    known = _recall(note)
    new = [question for question in asked if question not in known]
    if new:
        code, stubs = modules_of(found, record, on_module)
        release = LazyRelease(code, stubs, code.is_written)
        known |= {question: gives(release, *question) for question in new}
        storage.write_note(note, json.dumps([[*question, works] for question, works in known.items()]))
    return {question: works for question in asked if (works := known[question]) is not None}


def _digest(record: str) -> str:
    """The files of a release as one word; what is read of them depends on this version too."""
    import hashlib

    text = "\0".join((str(FORMAT), __version__, record))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _recall(note: str) -> dict[Question, bool | None]:
    try:
        with open_text(note, errors="strict") as stream:
            rows = json.loads(stream.read(limits.NOTE_BYTES))
        return {(str(kind), str(target), str(name)): works for kind, target, name, works in rows}
    except (OSError, ValueError, TypeError, RecursionError):
        return {}
