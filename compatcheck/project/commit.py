"""What the files of a commit ask to be judged: each training they touch, with the versions its own project pins."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from compatcheck.errors import InputError
from compatcheck.project import requirements, scripts, training
from compatcheck.project.projects import is_training, nearest, package_lists
from compatcheck.project.reading import read_paths
from compatcheck.project.sources import Source, holds_model, scan


class Change(NamedTuple):
    """Files to judge together: a training configuration, script or model with its project's lists of packages.

    ``is_touched`` tells that what is judged is part of the commit itself, and not only what a change bears on.
    """

    project: str
    paths: tuple[str, ...]
    is_touched: bool


def read_changes(files: Sequence[str]) -> tuple[Change, ...]:
    """What to judge for these files; other files are skipped.

    The project of a file is its `nearest`, up to the working directory. Where a list of packages changes, or a file
    that a training may name, as a DeepSpeed JSON, every training of the project is judged. Raises `InputError` where a
    file is broken whose name says what it means to be.
    """
    by_project: dict[str, list[Source]] = {}
    for source in dict.fromkeys(_ours(files)):
        by_project.setdefault(_project_of(source.path), []).append(source)
    return tuple(change for project, touched in by_project.items() for change in _project_changes(project, touched))


def _ours(files: Iterable[str]) -> Iterator[Source]:
    for file in files:
        path = os.path.normpath(file)
        folder = os.path.dirname(path) or "."
        if os.path.basename(path) == "config.json" and os.path.isfile(path) and holds_model(folder):
            yield Source("model", folder)
        elif os.path.isfile(path):
            kind = requirements.identify(path) or training.identify_found(path)
            if kind is not None:
                yield Source(kind, path)


def _project_of(path: str) -> str:
    return nearest(path, os.curdir, package_lists)


def _project_changes(project: str, touched: Sequence[Source]) -> Iterator[Change]:
    lists = package_lists(project)
    named = tuple(source.path for source in touched if source.kind in requirements.readers())
    pins = tuple(dict.fromkeys((*lists, *named)))
    runs = [source.path for source in touched if is_training(source)]
    modules = tuple(source.path for source in touched if _is_module(source))
    parts = [source.path for source in touched if _is_part(source)]
    programs = [path for path in runs if path.endswith(training.OF_CODE)]
    scanned = scan(project) if programs or parts or named else ()
    found = [source for source in scanned if _project_of(source.path) == project]
    launches = {path: script for script in map(_launched, found) if script for path in script[1]}
    if modules:
        yield Change(project, (*modules, *pins), True)
    started = [launches[path][0] for path in programs if path in launches]
    for path in dict.fromkeys((*started, *(path for path in runs if path not in launches), *parts)):
        yield Change(project, (path, *pins), True)
    if parts or named:
        beside = tuple(source.path for source in found if _is_module(source))
        if beside and not modules:
            yield Change(project, (*beside, *pins), False)
        others = [source.path for source in found if is_training(source) and source.path not in launches]
        for path in others:
            if path not in (*runs, *started):
                yield Change(project, (path, *pins), False)
        if not (runs or modules or parts or others or beside):
            yield Change(project, pins, True)


def _launched(source: Source) -> tuple[str, list[str]] | None:
    """A launch script with the programs that it starts."""
    if source.kind != "launch_script":
        return None
    try:
        read = read_paths([source.path]).sources
    except InputError:
        return None
    return source.path, [each.path for each in read if each.kind == scripts.KIND]


def _is_module(source: Source) -> bool:
    """Code with a Trainer of its own that another script makes use of."""
    return source.kind == scripts.KIND and not training.trains(source.path)


def _is_part(source: Source) -> bool:
    """A file that a training may name, or a model."""
    return not is_training(source) and not _is_module(source) and source.kind not in requirements.readers()
