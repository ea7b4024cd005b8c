"""Which of the user's files are ours: what a path that is named is, and what a folder holds."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import NamedTuple

from compatcheck.errors import InputError
from compatcheck.files import limits
from compatcheck.files.reading import OversizeError
from compatcheck.language import gettext as _
from compatcheck.language.suggestion import did_you_mean
from compatcheck.project import model_files, requirements, training

_MODEL_FILES = ("model", "pytorch_model", "tokeniz", "configuration_")
_SKIPPED = frozenset(("node_modules", "__pycache__", "site-packages", "build", "dist", "wandb", "venv", "env"))
_DOING = "looking for what to read in"
_PICKLES = ("training_args.bin", "optimizer.pt", "scheduler.pt")


class Source(NamedTuple):
    """A file or folder and what it was identified as: ``model``, or the name of a reader."""

    kind: str
    path: str


class Input(NamedTuple):
    """A source, and the folder in which it was found where it was not named."""

    source: Source
    root: str | None = None


def identify(path: str) -> Source:
    """What a path that the user named is; raises `InputError` where it is nothing we read."""
    name = os.path.basename(path)
    if os.path.isdir(path):
        return Source("model", path)
    if name == "config.json" and os.path.isfile(path):
        folder = os.path.dirname(path) or "."
        if model_files.recognises(folder):
            return Source("model", folder)
    if not os.path.lexists(path):
        raise InputError("reading", path, "there is no such file or folder", _meant(path))
    if name in _PICKLES:
        seen = "this is a pickle, and loading a pickle can run any code"
        raise InputError("reading", path, seen, "pass the YAML, JSON or script that started the training")
    kind = requirements.identify(path)
    if kind is None and path.endswith((".txt", ".in")) and os.path.isfile(path):
        kind = requirements.PLAIN
    kind = kind or training.identify(path)
    if kind is None:
        raise InputError("reading", path, "unrecognised file", "`compatcheck formats` lists what is supported")
    return Source(kind, path)


def _meant(path: str) -> str:
    """What to do if nothing is there: a similarly named sibling."""
    folder, name = os.path.split(path.rstrip("/\\"))
    try:
        beside = os.listdir(folder or ".")
    except OSError:
        beside = []
    return did_you_mean(path, (os.path.join(folder, each) for each in beside), _("check the path"))


def formats() -> tuple[list[str], list[str], list[str]]:
    """The titles of what can be named: training configurations, models, and lists of packages."""
    configurations = [reader.TITLE for reader in training.readers().values()]
    packages = [reader.TITLE for reader in requirements.readers().values()]
    return configurations, ["a model folder with config.json"], packages


def scan(folder: str) -> Iterator[Source]:
    """The sources in a folder and two levels below it and below each folder that lists packages, by their names."""
    for path, names, lists in _folders(folder):
        model = "config.json" in names and holds_model(path)
        if model:
            yield Source("model", os.path.normpath(path))
        for name in names:
            inner = os.path.normpath(os.path.join(path, name))
            kind = lists.get(name)
            if kind is None and not (model and name.endswith((".json", ".py")) and name != "adapter_config.json"):
                kind = training.identify_found(inner)
            if kind is not None:
                yield Source(kind, inner)


def _folders(top: str) -> Iterator[tuple[str, list[str], dict[str, str]]]:
    """Each folder with its files, and the readers of those that list packages.

    Links are not followed, so nothing is met twice.
    """
    seen = 0
    depths = {top: 0}
    for path, folders, names in os.walk(top):
        kinds = ((name, requirements.identify(os.path.join(path, name))) for name in names)
        lists = {name: kind for name, kind in kinds if kind is not None}
        depth = 0 if lists else depths[path]
        folders[:] = sorted(each for each in folders if depth < limits.FOLDER_DEPTH and _worth_entering(path, each))
        depths.update((os.path.join(path, each), depth + 1) for each in folders)
        seen += len(names) + len(folders)
        if seen > limits.FOLDER_ENTRIES:
            raise InputError(
                _DOING,
                top,
                f"the folder contains over {limits.FOLDER_ENTRIES} files",
                "pass the files or a smaller folder",
            )
        yield path, sorted(names), lists


def _worth_entering(path: str, name: str) -> bool:
    if name.startswith(".") or name in _SKIPPED:
        return False
    return not os.path.exists(os.path.join(path, name, "pyvenv.cfg"))


def is_model(folder: str) -> bool:
    """As `holds_model` for a folder that the user named: a broken configuration beside a model's files is told."""
    try:
        return model_files.recognises(folder)
    except OversizeError:
        raise
    except InputError:
        if any(name.startswith(_MODEL_FILES) for name in os.listdir(folder)):
            raise
        return False


def holds_model(folder: str) -> bool:
    """Whether a folder found on the way is a model; a broken configuration does not count."""
    try:
        return model_files.recognises(folder)
    except InputError:
        return False
