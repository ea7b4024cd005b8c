"""Stage 1: what is here. The door; each function loads what it needs when it is called."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from compatcheck.model import dump as dump

if TYPE_CHECKING:
    from compatcheck.facts.project._commit import Change
    from compatcheck.facts.project._pinned import Pins, Reading
    from compatcheck.model import Environment, Facts, Target


def find_target(python: str | None, environ: Mapping[str, str]) -> Target:
    """The interpreter to judge: ``--python``, the active environment, or the one we run in."""
    from compatcheck.facts import _target

    return _target.find_target(python, environ)


def is_active(environ: Mapping[str, str]) -> bool:
    """Whether somebody has activated an environment; see `_target.is_active`."""
    from compatcheck.facts import _target

    return _target.is_active(environ)


def collect(target: Target, environ_names: Iterable[str] = (), architectures: bool = True) -> Environment:
    """Everything the collectors can tell of a target without importing or running any of it."""
    from compatcheck.facts import _collect

    return _collect.collect(target, environ_names, architectures)


def state_of_gpus(target: Target) -> Facts:
    """How the GPUs are set and how they fare; what only matters between machines."""
    from compatcheck.facts import gpu_state

    return gpu_state.collect(target)


def read_paths(paths: Sequence[str], weights: bool = False) -> Reading:
    """What the user's own files say: training configurations, model folders, requirements."""
    from compatcheck.facts import project

    return project.read_paths(paths, weights)


def with_paths(
    environment: Environment,
    paths: Sequence[str],
    *,
    pins: Pins = "instead",
    weights: bool = False,
    target: Target | None = None,
) -> Environment:
    """The environment with what the user's own files say; see `compatcheck.facts.project._pinned.over`.

    ``target`` is the interpreter that the environment was collected from, where it was.
    """
    from compatcheck.facts import project
    from compatcheck.facts.project import _pinned

    def movable(names: Collection[str]) -> Collection[str]:
        from compatcheck.facts import declared

        return declared.movable(target, names) if target else ()

    reading = project.read_paths(paths, weights, environment.facts.get("python"))
    return _pinned.over(environment, reading, pins, movable)


def changes(files: Sequence[str]) -> tuple[Change, ...]:
    """What is to be judged where these files change; see `compatcheck.facts.project._commit.changes`."""
    from compatcheck.facts.project import _commit

    return _commit.changes(files)


def read_model(model: str, *, online: bool = False, weights: bool = False) -> Environment:
    """What the files of one model say: a folder, or a hub id that is in a local cache or, ``online``, on the hub."""
    from compatcheck.facts import _merge, model_files
    from compatcheck.facts.model_files import _hub

    return _merge.overlay(_merge.EMPTY, model_files.read(_hub.find_folder(model, online), weights))


def model_config(model: str) -> tuple[dict[str, Any], str | None]:
    """The configuration of a model, and its absolute folder: that, a ``config.json`` alone, or a hub id in a cache.

    Raises `InputError` where it cannot be read, is too large, or is no JSON object.
    """
    import os

    from compatcheck.facts._text import read_json_object
    from compatcheck.facts.model_files import _hub

    if os.path.isfile(model):
        return read_json_object(model), None
    folder = os.path.abspath(_hub.find_folder(model))
    return read_json_object(os.path.join(folder, "config.json")), folder


def compare_models(old: str, new: str, *, online: bool = False, weights: bool = False) -> Mapping[str, Any]:
    """What changed from one model, folder or hub id, to another; see `_revisions.compare`."""
    from compatcheck.facts.model_files import _hub, _revisions

    return _revisions.compare(_hub.find_folder(old, online), _hub.find_folder(new, online), weights)


def with_imports(
    environment: Environment,
    target: Target,
    paths: Sequence[str] = (),
    *,
    examine: bool = False,
    on_module: Callable[[str], None] | None = None,
) -> Environment:
    """The environment with the imports that surely fail in it, where they are remembered; else ``examine`` finds them.

    Model folders among the paths, if examined, are held against the same environment.
    """
    from compatcheck.facts import _merge, imports

    if not examine:
        return _merge.overlay(environment, imports.remembered(target))
    from compatcheck.facts import model_files

    models = [path for path in paths if model_files.recognises(path)]
    return _merge.overlay(environment, imports.collect(target, on_module, models))


def requirements_among(paths: Sequence[str]) -> tuple[str, ...]:
    """The files among the paths, or in the folders they are, that say what is to be installed.

    Requirements count before a ``pyproject.toml``, and in a folder a ``requirements.in`` before what is made of it.
    """
    import os

    from compatcheck.facts import project, requirements

    sources = project.read_paths(paths).sources
    plain = [source.path for source in sources if source.kind == requirements.PLAIN]
    if not plain:
        return tuple(source.path for source in sources if source.kind == "pyproject")
    made_of = {path: f"{os.path.splitext(path)[0]}.in" for path in plain if path not in paths}
    return tuple(made_of[path] if os.path.isfile(made_of.get(path, "")) else path for path in plain)


def top_level(target: Target) -> tuple[str, ...]:
    """The installed distributions that no other installed one asks for."""
    from compatcheck.facts import declared

    return declared.top_level(target)


def marker_environment(target: Target) -> Mapping[str, str]:
    """The values of the environment markers (PEP 508) for the target."""
    from compatcheck.facts import declared

    return declared.marker_environment(target)


def overlay(environment: Environment, facts: Facts) -> Environment:
    """The environment with these facts in the place of its own."""
    from compatcheck.facts import _merge

    return _merge.overlay(environment, facts)


def assume(environment: Environment, statement: str) -> Environment:
    """The environment with one ``key=value`` that the user states."""
    from compatcheck.facts import _assume

    return _assume.assume(environment, statement)


def assume_all(environment: Environment, statements: Iterable[str]) -> Environment:
    """The environment with every ``key=value`` that the user states, the last one counting.

    Raises `InputError` where one names no fact, or has a value that the fact cannot have.
    """
    for statement in statements:
        environment = assume(environment, statement)
    return environment


def load(text: str, source: str) -> Environment:
    """The environment that a snapshot states."""
    from compatcheck.facts import snapshot

    return snapshot.load(text, source)


def load_file(path: str) -> Environment:
    """The environment in a snapshot file; ``-`` is standard input."""
    from compatcheck.facts import snapshot

    return snapshot.load_file(path)


def read_report(text: str, source: str) -> Environment:
    """The environment that the text of a bug report states; what its lines contradict is unknown, with the reason."""
    from compatcheck.facts.reports import _read

    return _read.read_report(text, source)


def read_report_file(path: str) -> Environment:
    """The environment that the report in a file states; ``-`` is standard input."""
    from compatcheck.facts.reports import _input

    return read_report(*_input.read_input(path))


def read_text_of_report(path: str) -> tuple[str, str]:
    """The text of a file, ``-`` being standard input, and what to call it; encodings and limits as for reports."""
    from compatcheck.facts.reports import _input

    return _input.read_input(path)
