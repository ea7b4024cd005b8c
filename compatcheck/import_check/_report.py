"""From an exception of the simulated run to a fact."""

from __future__ import annotations

import os
from typing import NamedTuple

from compatcheck.import_check._finder import Finder, is_stdlib
from compatcheck.import_check._values import Raised, is_exception

_LONGEST_CHAIN = 8


class Failure(NamedTuple):
    """An import that surely fails: the line of ``file`` that does, what it wants of whom, and the way to it.

    ``module`` is empty where the code refuses to be imported, for the reason that it ``says``; ``statements`` are those
    of a training run that fail by it, and ``chain`` the lines that led there, innermost first.
    """

    distribution: str
    version: str | None
    file: str
    line: int
    module: str
    name: str | None
    provider: str
    provider_version: str | None
    error: str
    says: str
    statement: str
    statements: tuple[str, ...]
    chain: tuple[str, ...]


def failure_of(error: Raised, statement: str, finder: Finder) -> Failure | None:
    """What is missing, who asks for it on which line, and by which way; None for errors that are no matter of names."""
    if not error.trail or (error.missing is None and is_exception(error.kind, ImportError) is not True):
        return None
    if error.missing is None and not error.text:
        return None
    origin = error.trail[0]
    owner = finder.owner(origin.file)
    module, name = error.missing or (None, None)
    provider = finder.provider(module) if module else None
    top = module.partition(".")[0] if module else ""
    return Failure(
        distribution=owner or "",
        version=finder.versions.get(owner) if owner else None,
        file=_relative(origin.file, finder),
        line=origin.line,
        module=module or "",
        name=name,
        provider=provider or ("" if is_stdlib(top) else top),
        provider_version=finder.versions.get(provider) if provider else None,
        error=str(getattr(error.kind, "__name__", getattr(error.kind, "name", ""))),
        says=error.text,
        statement=statement,
        statements=(statement,),
        chain=tuple(f"{_relative(place.file, finder)}:{place.line}" for place in error.trail[:_LONGEST_CHAIN]),
    )


def _relative(path: str, finder: Finder) -> str:
    for folder in finder.folders:
        if path.startswith(folder + os.sep):
            return path[len(folder) + 1 :]
    return path
