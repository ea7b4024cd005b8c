"""What there is to judge: an interpreter, a snapshot, and what the project files state over it."""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from compatcheck.errors import NothingInspectedError
from compatcheck.language import gettext as _
from compatcheck.results.findings import Remark

if TYPE_CHECKING:
    from compatcheck.environment import Environment, Target
    from compatcheck.matrix import Matrix
    from compatcheck.project.overlay import Pins
    from compatcheck.project.projects import Project


class Request(NamedTuple):
    """What to judge besides the files of a project.

    ``python`` names an interpreter, and ``target`` is one that the caller has chosen; with neither it is found.
    ``snapshot`` is a file, ``-`` for standard input, or its content, in place of an interpreter. ``imports`` follows
    the imports of the interpreter; None takes what is remembered of them.
    """

    python: str | None = None
    snapshot: str | Mapping[str, Any] | None = None
    assume: tuple[str, ...] = ()
    hash_weights: bool = False
    imports: bool | None = None
    target: Target | None = None


class Subject(NamedTuple):
    """An environment to judge.

    ``target`` is the interpreter its probes can run in, where it is a real one on this machine. ``remarks`` are on
    files that contradict one another or cannot be read. ``project`` is None where no file was named.
    """

    environment: Environment
    target: Target | None
    remarks: tuple[Remark, ...] = ()
    project: Project | None = None

    @property
    def folder(self) -> str:
        return self.project.folder if self.project is not None else ""


def environment(known: Matrix, paths: tuple[str, ...], request: Request) -> Subject:
    """The environment with the files of one project.

    Raises `NothingInspectedError` where there is nothing to judge, `InputError` where the paths hold several projects.
    """
    if not paths:
        return _subject(known, None, request, {})
    from compatcheck.project.projects import project

    return _subject(known, project(paths), request, {})


def environments(known: Matrix, paths: tuple[str, ...], request: Request) -> Iterator[Subject]:
    """The environment of each project in the paths, with its own files. Raises as `environment` does."""
    if not paths:
        yield _subject(known, None, request, {})
        return
    from compatcheck.project.projects import projects

    collected: dict[Target, Environment] = {}
    for project in projects(paths):
        yield _subject(known, project, request, collected)


def _subject(known: Matrix, project: Project | None, request: Request, collected: dict[Target, Environment]) -> Subject:
    from compatcheck.environment.assumptions import assume_all

    found, target, remarks = _found(known, project, request, collected)
    stated = found
    if project is not None:
        from compatcheck.project.overlay import over
        from compatcheck.project.reading import read_project

        python = assume_all(found, request.assume).facts.get("python") or sys.version.split()[0]
        reading = read_project(project, request.hash_weights, python)
        stated = over(found, reading, _pins_mode(request, target), lambda names: _movable(target, names))
        remarks = (*remarks, *reading.remarks)
    judged = assume_all(stated, request.assume) if request.assume else stated
    if target is None or judged.facts.get("distributions") != found.facts.get("distributions"):
        return Subject(judged, None, remarks, project)
    if request.imports is not False:
        judged = _with_imports(judged, target, project, examine=bool(request.imports))
    return Subject(judged, target, remarks, project)


def _found(
    known: Matrix, project: Project | None, request: Request, collected: dict[Target, Environment]
) -> tuple[Environment, Target | None, tuple[Remark, ...]]:
    """What is recorded or installed; where nothing is, what this machine has."""
    if request.snapshot is not None:
        return _recorded(request.snapshot), None, ()
    from compatcheck.installed.collect import collect, collect_machine
    from compatcheck.installed.target import NoEnvironmentError, find_target, is_active

    remarks: tuple[Remark, ...] = ()
    target = request.target
    try:
        folders = project.folders if project is not None else (os.curdir,)
        target = target or find_target(request.python, os.environ, folders)
    except NoEnvironmentError as error:
        if project is None and not request.assume:
            raise _nothing_to_judge(error) from None
        why = error.seen
    except NothingInspectedError as error:
        if project is None or request.python is not None or is_active(os.environ):
            raise
        why = f"{error.subject}: {error.seen}"
        remarks = (Remark(str(error)),)
    if target is None:
        machine = collect_machine(known.environ)
        return machine._replace(reasons={**machine.reasons, "distributions": why}), None, remarks
    if target not in collected:
        collected[target] = collect(target, known.environ)
    return collected[target], target, remarks


def _nothing_to_judge(error: NothingInspectedError) -> NothingInspectedError:
    from compatcheck.project.projects import package_lists

    here = package_lists(os.curdir)
    advice = _("activate an environment, pass one with --python, or pass requirements or a --snapshot")
    if here:
        advice = _("activate an environment, pass one with --python, or check {file} with `compatcheck .`").format(
            file=here[0]
        )
    return NothingInspectedError("judging", os.getcwd(), error.seen, advice)


def _recorded(snapshot: str | Mapping[str, Any]) -> Environment:
    from compatcheck.environment.snapshot import load_snapshot, read_snapshot

    if isinstance(snapshot, Mapping):
        import json

        return load_snapshot(json.dumps(snapshot), "the snapshot")
    return read_snapshot(snapshot or "-")


def _movable(target: Target | None, names: Collection[str]) -> Collection[str]:
    from compatcheck.installed import declared

    return declared.movable(target, names) if target else ()


def _with_imports(environment: Environment, target: Target, project: Project | None, *, examine: bool) -> Environment:
    """The environment with the imports that fail in it: remembered ones, or found now, with progress."""
    from compatcheck.import_check import with_imports

    if not examine:
        return with_imports(environment, target)
    from compatcheck.terminal.progress import imports_progress

    paths = [source.path for source, root in project.inputs if root is None] if project is not None else []
    with imports_progress() as show:
        return with_imports(environment, target, paths, examine=True, on_module=show)


def with_read_releases(known: Matrix, target: Target | None) -> tuple[Matrix, tuple[Remark, ...]]:
    """The matrix with what installed files say of releases that the interface tables lack, read with progress.

    A remark stands for each such release that cannot be read.
    """
    if target is None:
        return known, ()
    from compatcheck.installed import read_releases
    from compatcheck.terminal.progress import reading_progress

    with reading_progress() as show:
        read = read_releases.with_read_releases(known.table, target, show)
    text = _("{package} is not in the interface tables, and its files cannot be read: {why}")
    remarks = (Remark(text.format(package=package, why=why)) for package, why in read.unread.items())
    return known._replace(table=read.table), tuple(remarks)


def _pins_mode(request: Request, target: Target | None) -> Pins:
    """What requirements mean beside an environment.

    One that is named counts as it is. The pins will be installed into one that is active, found or recorded; where
    there is none, they stand for it.
    """
    if request.python is not None:
        return "ignored"
    return "over" if target is not None or request.snapshot is not None else "instead"
