"""Names that installed packages import and that the installed versions do not have.

The import-time statements of the modules that a training run loads are followed in their order, on their syntax trees
and without running any of their code: guards are taken as they would fall, lazy modules give up their names on demand,
and whatever is not known is left out. This is done in a child process: it takes deep recursion and much memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from compatcheck.environment import Environment, Target
from compatcheck.import_check import _cache


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
    if not examine:
        return environment.overlay(remembered(target))
    from compatcheck.project import model_files

    models = [path for path in paths if model_files.recognises(path)]
    return environment.overlay(collect(target, on_module, models))


def remembered(target: Target) -> Environment:
    """``unresolved_imports`` as they were found when this same environment was last examined; else unknown."""
    found = _cache.recall(target)
    if found is None:
        return Environment({}, {"unresolved_imports": "not followed; use check --imports"})
    return Environment({"unresolved_imports": found})


def collect(
    target: Target, on_module: Callable[[str], None] | None = None, model_folders: Sequence[str] = ()
) -> Environment:
    """``unresolved_imports``: every import of a training run that surely fails, with the line that fails.

    ``model_folders`` hold code of models' own that is to be imported as well. The result for the environment itself
    is kept until a distribution changes.
    """
    from compatcheck.import_check import _process

    found = _cache.recall(target)
    if found is None:
        found = _process.failures(target, on_module)
        _cache.remember(target, found)
    if model_folders:
        seen = {(each["file"], each["line"]) for each in found}
        of_models = _process.failures(target, on_module, model_folders)
        found = [*found, *(each for each in of_models if (each["file"], each["line"]) not in seen)]
    return Environment({"unresolved_imports": found})
