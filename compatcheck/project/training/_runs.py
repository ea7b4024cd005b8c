"""Which of the training files that were named and found make up the training that is meant."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from compatcheck.environment import Environment
from compatcheck.errors import InputError
from compatcheck.files import limits
from compatcheck.files.path_lists import listed
from compatcheck.project.training import readers, role_of
from compatcheck.project.training._joining import Joined, Run, join_run
from compatcheck.project.training._paths import File, existing
from compatcheck.project.training.agreement import agreed

_Files = Mapping[str, File]
_Loose = Mapping[str, tuple[File, ...]]
_ALONE = ("deepspeed", "accelerate", "adapter")
_TEST = re.compile(r"test_|conftest\.|.*_test\.py")
"""How the names of tests begin or end: what they train is no training of the project."""


class _Result(NamedTuple):
    run: Run
    joined: Joined


def together(named: Sequence[File], found: Sequence[File]) -> Joined:
    """What the training files say; a file that is named counts, and before what a folder holds.

    Several trainings decide only what they agree on, and the reason names them. Raises `InputError` where several files
    of one role are named, other than programs.
    """
    by_role = {role: [each for each in named if role_of(each.reader) == role] for role in _roles(named)}
    programs = by_role.pop("program", [])
    for files in by_role.values():
        _require_one(files)
    chosen = {role: files[0] for role, files in by_role.items()}
    loose = {
        role: tuple(each for each in found if role_of(each.reader) == role)
        for role in _roles(found)
        if role not in chosen
    }
    beside = {role: files for role, files in loose.items() if role in _ALONE}
    if programs:
        parts = {role: file for role, file in chosen.items() if role != "script"}
        runs = [Run(chosen, beside)] if "script" in chosen else []
        return _several_joined([_result(run) for run in (*runs, *_runs(programs, parts, beside))])
    if "config" in chosen or "script" in chosen:
        return join_run(Run(chosen, beside))
    if chosen and set(chosen) != {"accelerate"}:
        loose = beside
    return _found_joined(chosen, loose, beside)


def _found_joined(chosen: _Files, loose: _Loose, beside: _Loose) -> Joined:
    """What the trainings in a folder say.

    Programs are those that a launch script starts, if it starts any. Beside a program of one's own, arguments of the
    Trainer in a file are a training's only if it reads them.
    """
    scripts, programs, configs = (loose.get(role, ()) for role in ("script", "program", "config"))
    programs = tuple(each for each in programs if not _TEST.match(os.path.basename(each.path)))
    if len(scripts) > limits.RUNS:
        return Joined(Environment({}, {"training": _several(scripts)}), ())
    results = [_result(run) for run in _runs(scripts, chosen, beside)]
    started = [file for result in results for file in result.joined.used if role_of(file.reader) == "program"]
    if not started and len(programs) > limits.PROGRAMS:
        return Joined(Environment({}, {"training": _several(programs)}), ())
    if not started:
        results += [each for each in map(_result, _runs(programs, chosen, beside)) if each.joined.facts.facts]
    if started or any("program" in result.run.files for result in results):
        configs = tuple(each for each in configs if not getattr(readers()[each.reader], "GENERAL", False))
    files = [*(_own_file(result) for result in results), *configs]
    if len(files) > limits.RUNS:
        return Joined(Environment({}, {"training": _several(files)}), ())
    results += [_result(run) for run in _runs(configs, chosen, beside)]
    return _several_joined(results) if results else join_run(Run(chosen, beside))


def _runs(files: Sequence[File], chosen: _Files, beside: _Loose) -> list[Run]:
    return [Run({**chosen, role_of(each.reader): each}, beside) for each in files]


def _several_joined(results: Sequence[_Result]) -> Joined:
    """One training, or what several agree on; a file that a launch script names is part of the script's."""
    named = {
        path
        for run, joined in results
        if "script" in run.files
        for used in joined.used
        if used != run.files["script"]
        for path in existing(used.path, (".",))
    }
    kept = [each for each in results if not set(existing(_own_file(each).path, (".",))) & named]
    if len(kept) == 1:
        return kept[0].joined
    facts = agreed([joined.facts for _, joined in kept], _several([_own_file(each) for each in kept]))
    used = tuple(dict.fromkeys(file for _, joined in kept for file in joined.used))
    models = {joined.model for _, joined in kept}
    bases = tuple(dict.fromkeys(base for _, joined in kept for base in joined.bases))
    return Joined(facts, used, models.pop() if len(models) == 1 else None, bases)


def _own_file(result: _Result) -> File:
    """The file that makes a training one of its own."""
    return next(result.run.files[role] for role in ("script", "program", "config") if role in result.run.files)


def _result(run: Run) -> _Result:
    return _Result(run, _joined_or_why(run))


def _joined_or_why(run: Run) -> Joined:
    """A configuration that was only found and cannot be understood leaves the training unknown."""
    try:
        return join_run(run)
    except InputError as error:
        return Joined(Environment({}, {"training": str(error)}), ())


def _roles(files: Sequence[File]) -> list[str]:
    return list(dict.fromkeys(role_of(each.reader) for each in files))


def _several(files: Sequence[File]) -> str:
    return f"there are {len(files)} trainings, pass one of them: {listed([each.path for each in files])}"


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
        "reading", listed([each.path for each in distinct]), f"these are several {kind}", "check one at a time"
    )
