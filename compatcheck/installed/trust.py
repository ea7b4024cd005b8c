"""Which interpreters may be started: one that lies in the folder that is judged may be a stranger's program."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Mapping

from compatcheck.environment import Target
from compatcheck.errors import NothingInspectedError
from compatcheck.files import limits, repository, storage
from compatcheck.files.reading import open_text

_ACTIVATED = ("VIRTUAL_ENV", "CONDA_PREFIX")


def may_start(target: Target, folders: Iterable[str], environ: Mapping[str, str]) -> bool:
    """Whether the interpreter is our own, an active one, or lies outside the folders, or inside one that is trusted.

    The folder that we are in counts, with the whole repository around it, and so does what a link leads to.
    """
    prefixes = {os.path.abspath(target.prefix), os.path.realpath(target.prefix)}
    own = {sys.prefix, *filter(None, map(environ.get, _ACTIVATED))}
    if prefixes & {os.path.realpath(each) for each in own}:
        return True
    places = {os.path.realpath(each) for each in (repository.root(), *folders)}
    places |= {os.path.dirname(os.path.abspath(target.prefix))} if "found" in target.selected_by else set()
    held = [place for place in places if any(_is_below(prefix, place) for prefix in prefixes)]
    return not held or any(_is_below(os.path.realpath(target.prefix), each) for each in _trusted())


def require(target: Target, doing: str, environ: Mapping[str, str], folders: Iterable[str] = ()) -> None:
    """Raise `NothingInspectedError` where the interpreter may not be started."""
    if not may_start(target, folders, environ):
        seen = "the environment is in this folder, so its interpreter is not trusted"
        raise NothingInspectedError(
            doing, target.prefix, seen, "activate the environment, or pass --trust to start its interpreter"
        )


def trust(folder: str) -> None:
    """Remember that the interpreters in a folder may be started. Raises `InputError` where that cannot be written."""
    places = sorted({*_trusted(), os.path.realpath(folder)})
    storage.write(_file(), json.dumps(places, indent=1) + "\n", make_folder=True, is_own=True)


def _file() -> str:
    return os.path.join(storage.data_folder(), "trusted.json")


def _trusted() -> list[str]:
    try:
        with open_text(_file(), errors="strict") as stream:
            places = json.loads(stream.read(limits.NOTE_BYTES))
    except (OSError, ValueError, RecursionError):
        return []
    return [each for each in places if isinstance(each, str)] if isinstance(places, list) else []


def _is_below(path: str, folder: str) -> bool:
    return os.path.join(path, "").startswith(os.path.join(folder, ""))
