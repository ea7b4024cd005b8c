"""The user's own files: what they say together."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from compatcheck.environment import Environment, Unknown
from compatcheck.errors import InputError
from compatcheck.files.path_lists import listed, more_than_one
from compatcheck.language import gettext as _
from compatcheck.project import model_files, requirements, scripts, training
from compatcheck.project.overlay import PINNED, Reading
from compatcheck.project.sources import Input, Source, holds_model, identify, is_model, scan
from compatcheck.project.training._joining import Joined
from compatcheck.project.training._paths import File, existing
from compatcheck.project.training._runs import together

_BESIDE = ("python", "platform", "image", "cuda", "environ")
_OF_A_MODEL = ("model.type", "model.architectures", "model.torch_dtype", "model.traits", "model.remote_code")


def read_paths(paths: Sequence[str], weights: bool = False, python: str | None = None) -> Reading:
    """What the given files and folders say; a file that is named counts, and before what a folder holds.

    Several sources of one kind found in a folder decide nothing, or only what they agree on: the facts stay unknown,
    and the reason names them. ``python`` is the version that the markers of requirements are judged by. Raises
    `InputError` where a path is missing, or a named file is none of ours.
    """
    inputs: list[Input] = []
    for path in paths:
        if os.path.isdir(path) and not is_model(path):
            inputs += [Input(source, path) for source in scan(path)]
        else:
            inputs.append(Input((_broken(path) if len(paths) > 1 else None) or identify(path)))
    run = together(
        [File(*source) for source, root in inputs if root is None and source.kind in training.readers()],
        [File(*source, root) for source, root in inputs if root is not None and source.kind in training.readers()],
    )
    environment, read = run.facts, [Source(each.reader, each.path) for each in run.used]
    trainers = _trainers(inputs, run)
    environment = environment.overlay(scripts.read(trainers))
    read += [Source(scripts.KIND, path) for path in trainers]
    model, why = _model_of(inputs, run)
    if model is not None:
        environment = environment.overlay(model_files.read(model, weights))
        read.append(Source("model", model))
    elif why:
        environment = environment.overlay(Environment({}, dict.fromkeys(("model", *_OF_A_MODEL), why)))
    if model is None and run.model:
        environment = _add_model_name(environment, run.model)
    beside = Environment()
    lists, several = _package_lists(inputs)
    requirements_of: dict[Source, list[Mapping[str, Any]]] = {}
    for source in lists:
        pins = _pins_of(source, python)
        requirements_of[source] = pins.facts.get("requirements", [])
        environment = environment.overlay(pins.without(*_BESIDE))
        beside = beside.overlay(pins.without(*PINNED))
        read.append(source)
    if listed := _requirements_in(requirements_of):
        environment = environment.with_fact("requirements", listed)
    broken = [source.path for source, _root in inputs if source.kind == training.BROKEN]
    reasons = {**_nothing_found(paths, read, environment, broken), **several, **environment.reasons}
    return Reading(environment._replace(reasons=reasons), tuple(dict.fromkeys(read)), beside)


def _broken(path: str) -> Source | None:
    """A script that cannot be parsed costs itself alone where other files are named too."""
    if path.endswith(training.OF_CODE) and os.path.isfile(path):
        try:
            training.identify(path)
        except InputError:
            return Source(training.BROKEN, path)
    return None


def _nothing_found(
    paths: Sequence[str], read: list[Source], environment: Environment, broken: Sequence[str]
) -> dict[str, str]:
    kinds = {source.kind for source in read}
    where = ", ".join(paths)
    missing = {}
    if broken:
        fact = "training.script" if environment.section("training") else "training"
        missing[fact] = "; ".join(_fault(path) for path in broken)
    elif not kinds & set(training.readers()):
        missing["training"] = _("nothing in {files} is a training configuration").format(files=where)
    if "model" not in kinds and "model" not in environment.facts:
        missing["model"] = _("nothing in {files} is a model folder").format(files=where)
    return missing


def _fault(path: str) -> str:
    try:
        training.identify(path)
    except InputError as error:
        return f"{path}: {error.seen}"
    return path


def _trainers(inputs: list[Input], run: Joined) -> list[str]:
    """The scripts with a Trainer: those that are named, else those that are started, and the modules beside them."""
    files = [each for each in inputs if each.source.kind == scripts.KIND]
    named = [each.source.path for each in files if each.root is None]
    found = [each.source.path for each in files if each.root is not None]
    started = [each.path for each in run.used if each.reader == scripts.KIND]
    modules = [path for path in found if path not in started and not training.trains(path)]
    return named or [*started, *(modules if started else found)]


def _model_of(inputs: list[Input], run: Joined) -> tuple[str | None, str]:
    """The folder of the model in use: named, else the one that the training names, else the only one there is."""
    named = [source.path for source, root in inputs if root is None and source.kind == "model"]
    if named:
        return named[-1], ""
    found = [source.path for source, root in inputs if root is not None and source.kind == "model"]
    if run.model:
        folders = [path for path in existing(run.model, run.bases) if os.path.isdir(path) and holds_model(path)]
        if len(folders) > 1:
            return None, f"{run.model} may be {listed(folders, ' or ')}; name the one in use"
        alike = [path for path in found if _last(path) == _last(run.model)]
        if folders or len(alike) == 1:
            return (folders or alike)[0], ""
        return None, f"{run.model}, which the training names, is no folder here"
    if len(found) > 1:
        return None, more_than_one(found)
    return (found[0] if found else None), ""


def _last(path: str) -> str:
    return os.path.basename(os.path.normpath(path)).lower()


def _add_model_name(environment: Environment, model: str) -> Environment:
    """With the name of a model that no folder here is, unless it is the path of a folder elsewhere."""
    if not isinstance(environment.get("model.name"), Unknown) or model.startswith(("/", ".", "~")):
        return environment
    return environment.overlay(Environment({"model": {"name": model}}))


def _package_lists(inputs: list[Input]) -> tuple[list[Source], dict[str, str]]:
    """What says which versions will be installed: lists of wishes first, locks over them, named files over found.

    Of several files of one format found in a folder the topmost counts; where two stand beside each other none does,
    and the reason names them. Requirements files of one folder belong together.
    """
    lists = [each for each in inputs if each.source.kind in requirements.readers()]
    several: dict[str, str] = {}
    for kind in {each.source.kind for each in lists} - {requirements.PLAIN}:
        alike = [each for each in lists if each.source.kind == kind]
        named = [each for each in alike if each.root is None]
        top = min(each.source.path.count(os.sep) for each in alike)
        chosen = named or [each for each in alike if each.source.path.count(os.sep) == top]
        if len(chosen) > 1 and not named:
            several[kind] = more_than_one([each.source.path for each in chosen])
            chosen = []
        lists = [each for each in lists if each.source.kind != kind or each in chosen]
    lists.sort(key=lambda each: (each.root is None, "lock" in each.source.kind, each.source.kind != "dockerfile"))
    return [each.source for each in lists], several


def _requirements_in(found: Mapping[Source, list[Mapping[str, Any]]]) -> list[Mapping[str, Any]]:
    """What all the lists require; a file that a Dockerfile installs counts as it is installed there."""
    in_image = {
        os.path.realpath(each["file"])
        for source, listed in found.items()
        if source.kind == "dockerfile"
        for each in listed
    }
    return [
        each
        for source, listed in found.items()
        if source.kind == "dockerfile" or os.path.realpath(source.path) not in in_image
        for each in listed
    ]


def _pins_of(source: Source, python: str | None) -> Environment:
    return requirements.readers()[source.kind].read(source.path, python)


def requirements_among(paths: Sequence[str]) -> tuple[str, ...]:
    """The files among the paths, or in the folders they are, that say what is to be installed.

    Requirements count before a ``pyproject.toml``, and in a folder a ``requirements.in`` before what is made of it.
    """
    sources = read_paths(paths).sources
    plain = [source.path for source in sources if source.kind == requirements.PLAIN]
    if not plain:
        return tuple(source.path for source in sources if source.kind == "pyproject")
    made_of = {path: f"{os.path.splitext(path)[0]}.in" for path in plain if path not in paths}
    return tuple(made_of[path] if os.path.isfile(made_of.get(path, "")) else path for path in plain)
