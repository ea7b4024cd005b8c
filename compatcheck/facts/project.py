"""The user's own files: which of the readers each belongs to, and what they say together."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from compatcheck.errors import InputError
from compatcheck.facts import model_files, requirements
from compatcheck.facts._merge import EMPTY, overlay
from compatcheck.facts._text import LARGEST_JSON, OversizeError, read_json_object
from compatcheck.facts.training import deepspeed
from compatcheck.model import Environment, Facts

_DEEPEST = 2
_MOST_ENTRIES = 5000
_MODEL_FILES = ("model", "pytorch_model", "tokeniz", "configuration_")
_SKIPPED = frozenset(("node_modules", "__pycache__", "site-packages", "build", "dist", "wandb", "venv", "env"))
_KINDS = "a DeepSpeed JSON, a model folder with config.json, or a requirements file"
_PINNED = ("distributions", "distributions_complete")
_OF_TORCH = ("torch_build", "cuda.runtime", "cuda.cudnn", "cuda.nccl")
_INSTALLED = ("target", "unmet_requirements", "distribution_problems", *_OF_TORCH)
_DOING = "looking for what to read in"


Pins = Literal["ignored", "over", "instead"]


class Source(NamedTuple):
    """A file or folder and what it was recognised as: ``deepspeed``, ``model`` or ``requirements``."""

    kind: str
    path: str


class Reading(NamedTuple):
    """What the user's files say, and which were read."""

    environment: Environment
    sources: tuple[Source, ...]


def read_paths(paths: Sequence[str], weights: bool = False) -> Reading:
    """What the given files and folders say; a file that is named counts, and before what a folder holds.

    Several sources of one kind found in a folder decide nothing: the facts stay unknown, and the
    reason names them. Raises `InputError` where a path is missing, or a named file is none of ours.
    """
    named: list[Source] = []
    found: list[Source] = []
    for path in paths:
        if os.path.isdir(path) and not _is_model(path):
            found.extend(_scan(path))
        else:
            named.append(_recognised(path))
    several = [source.path for source in named if source.kind == "deepspeed"]
    if len(several) > 1:
        raise InputError("reading", ", ".join(several), "they are several DeepSpeed JSONs", "judge one at a time")
    environment, read = EMPTY, []
    for source in (*_unambiguous(found, named), *named):
        environment = overlay(environment, _facts_of(source, weights))
        read.append(source)
    reasons = {**_ambiguities(found, named), **_nothing_found(paths, read), **environment.reasons}
    environment = environment._replace(reasons=reasons)
    return Reading(environment, tuple(dict.fromkeys(read)))


def _nothing_found(paths: Sequence[str], read: list[Source]) -> dict[str, str]:
    kinds = {source.kind for source in read}
    where = ", ".join(paths)
    return {
        fact: f"nothing in {where} is {what}"
        for kind, fact, what in (("deepspeed", "training", "a DeepSpeed JSON"), ("model", "model", "a model folder"))
        if kind not in kinds
    }


def over(environment: Environment, reading: Reading, pins: Pins) -> Environment:
    """An environment with what the files say in place of its own.

    Where requirements pin versions, ``pins`` says how these meet the installed ones: they are left out, they
    take the place of what they name, or they stand for the whole. Ranges alone leave the installed ones as they are.
    """
    said = Facts(*reading.environment)
    pinned = said.known.get("distributions")
    if not pinned or pins == "ignored":
        return overlay(environment, _without(said, _PINNED))
    if pins == "instead":
        return overlay(Environment(*_without(Facts(*environment), (*_PINNED, *_INSTALLED))), said)
    installed = environment.facts.get("distributions") or {}
    moved = {name for name, version in pinned.items() if installed.get(name) != version}
    stale: tuple[str, ...] = ("unmet_requirements",) if moved else ()
    stale += _OF_TORCH if "torch" in moved else ()
    merged = {**said.known, "distributions": {**installed, **pinned}}
    merged["distributions_complete"] = bool(environment.facts.get("distributions_complete"))
    return overlay(Environment(*_without(Facts(*environment), stale)), said._replace(known=merged))


def _without(facts: Facts, paths: tuple[str, ...]) -> Facts:
    """The facts less those at these paths and below them."""
    known = {key: value for key, value in facts.known.items() if key not in paths}
    if isinstance(known.get("cuda"), dict):
        known["cuda"] = {key: value for key, value in known["cuda"].items() if f"cuda.{key}" not in paths}

    def kept(path: str) -> bool:
        return not any(path == each or path.startswith(f"{each}.") for each in paths)

    reasons = {path: why for path, why in facts.reasons.items() if kept(path)}
    return Facts(known, reasons, {path: at for path, at in facts.locations.items() if kept(path)})


def _facts_of(source: Source, weights: bool) -> Facts:
    if source.kind == "deepspeed":
        return deepspeed.read(source.path)
    return model_files.read(source.path, weights) if source.kind == "model" else requirements.read(source.path)


def _recognised(path: str) -> Source:
    """What a path that the user named is; raises `InputError` where it is nothing we read."""
    if os.path.isdir(path):
        return Source("model", path)
    if os.path.basename(path) == "config.json" and os.path.isfile(path):
        folder = os.path.dirname(path) or "."
        if model_files.recognises(folder):
            return Source("model", folder)
    if path.endswith(".json") and deepspeed.recognises(read_json_object(path)):
        return Source("deepspeed", path)
    if path.endswith((".txt", ".in")) and os.path.isfile(path):
        return Source("requirements", path)
    seen = "it is nothing compatcheck reads" if os.path.lexists(path) else "there is no such file or folder"
    raise InputError("reading", path, seen, f"give {_KINDS}")


def _scan(folder: str) -> Iterator[Source]:
    """The sources in a folder and two levels below it, in the order of their names."""
    for path, names in _folders(folder):
        if "config.json" in names and _holds_model(path):
            yield Source("model", path)
        for name in names:
            inner = os.path.join(path, name)
            if name.startswith("requirements") and name.endswith(".txt"):
                yield Source("requirements", inner)
            elif name.endswith(".json") and name != "config.json" and _is_deepspeed(inner):
                yield Source("deepspeed", inner)


def _folders(top: str) -> Iterator[tuple[str, list[str]]]:
    """Each folder with its files; links are not followed, so nothing is met twice."""
    seen = 0
    for path, folders, names in os.walk(top):
        depth = 0 if path == top else os.path.relpath(path, top).count(os.sep) + 1
        folders[:] = sorted(each for each in folders if depth < _DEEPEST and _worth_entering(path, each))
        seen += len(names) + len(folders)
        if seen > _MOST_ENTRIES:
            raise InputError(_DOING, top, f"it holds over {_MOST_ENTRIES} files", "name the files or a smaller folder")
        yield path, sorted(names)


def _worth_entering(path: str, name: str) -> bool:
    if name.startswith(".") or name in _SKIPPED:
        return False
    return not os.path.exists(os.path.join(path, name, "pyvenv.cfg"))


def _is_model(folder: str) -> bool:
    """As `_holds_model` for a folder that the user named: a broken configuration beside a model's files is told."""
    try:
        return model_files.recognises(folder)
    except OversizeError:
        raise
    except InputError:
        if any(name.startswith(_MODEL_FILES) for name in os.listdir(folder)):
            raise
        return False


def _holds_model(folder: str) -> bool:
    """A file that was only met on the way and cannot be read is none of ours."""
    try:
        return model_files.recognises(folder)
    except InputError:
        return False


def _is_deepspeed(path: str) -> bool:
    """As `_holds_model`; a broken file whose name says DeepSpeed is reported all the same."""
    try:
        if os.path.getsize(path) > LARGEST_JSON:
            return False
        return deepspeed.recognises(read_json_object(path))
    except OSError:
        return False
    except InputError:
        if os.path.basename(path).lower().startswith(("ds_", "deepspeed", "zero")):
            raise
        return False


def _unambiguous(found: list[Source], named: list[Source]) -> list[Source]:
    """Of what the folders hold: requirements, and the only one of a kind that no named file decides."""
    counts = _counted(found, named)
    return [each for each in found if each.kind == "requirements" or counts.get(each.kind) == 1]


def _counted(found: list[Source], named: list[Source]) -> dict[str, int]:
    decided = {source.kind for source in named}
    counts: dict[str, int] = {}
    for source in found:
        if source.kind not in decided:
            counts[source.kind] = counts.get(source.kind, 0) + 1
    return counts


def _ambiguities(found: list[Source], named: list[Source]) -> dict[str, str]:
    reasons = {}
    for kind, count in _counted(found, named).items():
        if count > 1 and kind != "requirements":
            listed = ", ".join(source.path for source in found if source.kind == kind)
            path = "training.deepspeed" if kind == "deepspeed" else kind
            reasons[path] = f"there are {count} of them, name the one in use: {listed:.400}"
    return reasons
