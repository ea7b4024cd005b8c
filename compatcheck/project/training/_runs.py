"""Which of the training files that were named and found make up the training that is meant."""

from __future__ import annotations

from collections.abc import Sequence

from compatcheck.environment import Environment
from compatcheck.errors import InputError
from compatcheck.files.path_lists import listed
from compatcheck.project.training import readers, role_of
from compatcheck.project.training._joining import File, Joined, Run, existing, join_run
from compatcheck.project.training.agreement import agreed

_ALONE = ("deepspeed", "accelerate", "adapter")
_MOST_RUNS = 12


def together(named: Sequence[File], found: Sequence[File]) -> Joined:
    """What the training files say; a file that is named counts, and before what a folder holds.

    Several trainings found decide only what they agree on, and the reason names them. Raises `InputError` where
    several files of one role are named.
    """
    by_role = {role: [each for each in named if role_of(each.reader) == role] for role in _roles(named)}
    for files in by_role.values():
        _require_one(files)
    chosen = {role: files[0] for role, files in by_role.items()}
    loose = {
        role: tuple(each for each in found if role_of(each.reader) == role)
        for role in _roles(found)
        if role not in chosen
    }
    beside = {role: files for role, files in loose.items() if role in _ALONE}
    if "config" in chosen or "script" in chosen:
        return join_run(Run(chosen, beside))
    if chosen and set(chosen) != {"accelerate"}:
        loose = beside
    candidates = [*loose.get("script", ()), *loose.get("config", ())]
    if not candidates:
        return join_run(Run(chosen, beside))
    if len(candidates) > _MOST_RUNS:
        return Joined(Environment({}, {"training": _several(candidates)}), ())
    return _several_joined([Run({**chosen, role_of(each.reader): each}, beside) for each in candidates])


def _several_joined(runs: list[Run]) -> Joined:
    """One training, or what several agree on; a configuration that a script names is part of the script's."""
    results = [_joined_or_why(run) for run in runs]
    named = {
        path
        for run, result in zip(runs, results)
        if "script" in run.files
        for used in result.used
        if used != run.files["script"]
        for path in existing(used.path, (".",))
    }
    kept = [
        (run, result)
        for run, result in zip(runs, results)
        if "config" not in run.files or not set(existing(run.files["config"].path, (".",))) & named
    ]
    if len(kept) == 1:
        return kept[0][1]
    files = [file for run, _ in kept for role, file in run.files.items() if role in ("script", "config")]
    facts = agreed([result.facts for _, result in kept], _several(files))
    used = tuple(dict.fromkeys(file for _, result in kept for file in result.used))
    models = {result.model for _, result in kept}
    bases = tuple(dict.fromkeys(base for _, result in kept for base in result.bases))
    return Joined(facts, used, models.pop() if len(models) == 1 else None, bases)


def _joined_or_why(run: Run) -> Joined:
    """A configuration that was only found and cannot be understood leaves the training unknown."""
    try:
        return join_run(run)
    except InputError as error:
        return Joined(Environment({}, {"training": str(error)}), ())


def _roles(files: Sequence[File]) -> list[str]:
    return list(dict.fromkeys(role_of(each.reader) for each in files))


def _several(files: Sequence[File]) -> str:
    return f"there are {len(files)} trainings, name the one that is meant: {listed([each.path for each in files])}"


def _require_one(files: Sequence[File]) -> None:
    distinct = list(dict.fromkeys(files))
    if len(distinct) < 2:
        return
    titles = {readers()[each.reader].TITLE for each in distinct}
    kind = "DeepSpeed JSONs" if role_of(distinct[0].reader) == "deepspeed" else "files of one kind"
    if role_of(distinct[0].reader) == "config":
        kind = (
            f"training configurations ({', '.join(sorted(titles))})" if len(titles) > 1 else "training configurations"
        )
    raise InputError(
        "reading", listed([each.path for each in distinct]), f"they are several {kind}", "judge one at a time"
    )
