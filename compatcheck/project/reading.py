"""The user's own files: what they say together."""

from __future__ import annotations

import os
from collections.abc import Sequence

from compatcheck.environment import Environment, Unknown
from compatcheck.errors import InputError
from compatcheck.files import limits
from compatcheck.files.path_lists import listed, more_than_one
from compatcheck.language import gettext as _
from compatcheck.project import model_files, scripts, training
from compatcheck.project.overlay import Reading
from compatcheck.project.package_lists import read_lists
from compatcheck.project.projects import Project, project
from compatcheck.project.sources import Input, Source, holds_model
from compatcheck.project.training._joining import Joined
from compatcheck.project.training._paths import File, existing
from compatcheck.project.training._runs import together

_OF_A_MODEL = ("model.type", "model.architectures", "model.torch_dtype", "model.traits", "model.remote_code")


def read_paths(paths: Sequence[str], weights: bool = False, python: str | None = None) -> Reading:
    """What the given files and folders of one project say, as `read_project` does.

    Raises `InputError` where a path is missing, a named file is not recognised, or they hold several projects.
    """
    return read_project(project(paths), weights, python)


def read_project(project: Project, weights: bool = False, python: str | None = None) -> Reading:
    """What the files of a project say; a file that is named counts, and before what a folder holds.

    Several sources of one kind found in a folder decide nothing, or only what they agree on: the facts stay unknown,
    and the reason names them. ``python`` is the version that the markers of requirements are judged by. Raises
    `InputError` where a named file cannot be read.
    """
    inputs = project.inputs
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
    lists = read_lists(inputs, python)
    environment = environment.overlay(lists.environment)
    read += lists.sources
    broken = [source.path for source, _root in inputs if source.kind == training.BROKEN]
    where = [project.folder] if project.folder else [source.path for source, _root in inputs]
    reasons = {**_nothing_found(where, read, environment, broken), **environment.reasons}
    found = environment._replace(reasons=reasons)
    return Reading(found, tuple(dict.fromkeys(read)), lists.beside, lists.remarks)


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
        missing["training"] = _("no training configuration in {files}").format(files=where)
    if "model" not in kinds and "model" not in environment.facts:
        missing["model"] = _("no model folder in {files}").format(files=where)
    return missing


def _fault(path: str) -> str:
    try:
        training.identify(path)
    except InputError as error:
        return f"{path}: {error.seen}"
    return path


def _trainers(inputs: Sequence[Input], run: Joined) -> list[str]:
    """The scripts with a Trainer: those that are named, else those that are started, and the modules beside them."""
    files = [each for each in inputs if each.source.kind == scripts.KIND]
    named = [each.source.path for each in files if each.root is None]
    found = [each.source.path for each in files if each.root is not None]
    started = [each.path for each in run.used if each.reader == scripts.KIND]
    if named or not started:
        return named or found[: limits.PROGRAMS]
    return [*started, *(path for path in found if path not in started and not training.trains(path))]


def _model_of(inputs: Sequence[Input], run: Joined) -> tuple[str | None, str]:
    """The folder of the model in use: named, else the one that the training names, else the only one there is."""
    named = [source.path for source, root in inputs if root is None and source.kind == "model"]
    if named:
        return named[-1], ""
    found = [source.path for source, root in inputs if root is not None and source.kind == "model"]
    if run.model:
        folders = [path for path in existing(run.model, run.bases) if os.path.isdir(path) and holds_model(path)]
        if len(folders) > 1:
            return None, f"{run.model} may be {listed(folders, ' or ')}; pass the one in use"
        alike = [path for path in found if _last(path) == _last(run.model)]
        if folders or len(alike) == 1:
            return (folders or alike)[0], ""
        return None, f"the training settings name {run.model}, but there is no such folder here"
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
