"""What to pin, read from the user's files or from what is installed."""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from compatcheck import matrix
from compatcheck.advice import resolver, wanted
from compatcheck.advice.model import Place, Wanted
from compatcheck.environment import Environment, Target
from compatcheck.environment.assumptions import assume_all
from compatcheck.environment.snapshot import read_snapshot
from compatcheck.errors import NothingInspectedError
from compatcheck.inference.torch_builds import backend_of
from compatcheck.installed import trust
from compatcheck.installed.collect import collect, collect_machine
from compatcheck.installed.declared import marker_environment, top_level
from compatcheck.installed.target import NoEnvironmentError, find_target, is_active, own_target
from compatcheck.project.overlay import over
from compatcheck.project.package_lists import requirements_of
from compatcheck.project.projects import Project, project
from compatcheck.project.reading import read_project

BY_HAND_COSTS = {"nearest": 101, "pins": 10**6, "config": 0}


class Task(NamedTuple):
    """What to pin: the machine and the run it is for, what is asked for, where, and what is to steer.

    ``torch_backend`` is the build of torch to stay with, ``unreached`` that build where its index does not answer;
    ``insists`` that no other will do. ``strict`` lets findings steer that are only possible. ``latest`` starts from the
    newest versions rather than from those at hand.
    """

    environment: Environment
    known: matrix.Matrix
    wanted: Wanted
    place: Place
    torch_backend: str | None = None
    unreached: str | None = None
    insists: bool = False
    strict: bool = False
    latest: bool = False
    ignore: Collection[str] = ()
    by_hand_cost: int = BY_HAND_COSTS["nearest"]


class Subject(NamedTuple):
    """What there is to pin: the environment that is installed where that is what the pins are for, else the files.

    ``place`` names it for people.
    """

    task: Task
    installed: Target | None
    sources: tuple[str, ...]
    place: str


def subject(
    known: matrix.Matrix,
    paths: Sequence[str],
    *,
    python: str | None = None,
    snapshot: str | None = None,
    python_version: str | None = None,
    platform: str | None = None,
    torch_backend: str | None = None,
    assume: Sequence[str] = (),
    output: str | None = None,
    offline: bool = False,
    build: bool = False,
    verify: bool = False,
    strict: bool = False,
    latest: bool = False,
    ignore: Sequence[str] = (),
    prefer: str | None = None,
    texts: Mapping[str, str] = MappingProxyType({}),
) -> Subject:
    """What to pin: of the files, of ``texts`` by the names of their places, or else of the environment.

    Raises NothingInspectedError where none of them asks for anything, or where to ``verify`` the pins takes an
    interpreter that may not be started.
    """
    asking = project(paths) if paths else None
    target, here = (None, read_snapshot(snapshot)) if snapshot else _machine(known, asking, python)
    context = over(here, read_project(asking, python=here.facts.get("python")), "ignored") if asking else here
    environment = assume_all(context, assume)
    versions = here.section("distributions")
    sources = requirements_of(asking) if asking else ()
    resolving = None if snapshot else target or own_target(os.environ)
    folders = asking.folders if asking else ()
    if verify and resolving:
        trust.require(resolving, "verifying pins with", os.environ, folders)
    started = resolving if resolving and trust.may_start(resolving, folders, os.environ) else None  # uv starts it
    if sources or texts:
        asked = wanted.read(sources, _markers(resolving, python_version), texts)
        asked = wanted.preferring(asked, wanted.pins_in(output) if output and os.path.isfile(output) else {})
        asked = wanted.preferring(asked, versions)
    else:
        asked = wanted.installed(top_level(target) if target else versions, versions)
        asked = asked._replace(complete=bool(here.facts.get("distributions_complete")))
    place = target.prefix if target else str(snapshot or os.getcwd())
    if not any(line.asked for line in asked.lines):
        seen = "the input names nothing to pin"
        advice = "pass packages, a requirements file or pyproject.toml, or an environment with --python"
        raise NothingInspectedError("pinning", ", ".join((*sources, *texts)) or place, seen, advice)
    backend = backend_of(asked.preferred.get("torch", "")) if torch_backend is None else torch_backend
    task = Task(
        environment,
        known,
        asked,
        _place(environment, started, python_version, platform)._replace(offline=offline, builds=build),
        None if backend == "index" or "UV_TORCH_BACKEND" in os.environ else backend,
        insists=torch_backend is not None,
        strict=strict,
        latest=latest,
        ignore=matrix.require_ids(known, ignore),
        by_hand_cost=BY_HAND_COSTS[prefer or "nearest"],
    )
    named = ", ".join((*sources, *texts))
    return Subject(task, None if named else target, sources, named or f"what is installed in {place}")


def _markers(target: Target | None, python_version: str | None) -> dict[str, str] | None:
    """The values of environment markers where the versions will be installed; None where they are not known."""
    if target is None:
        return None
    version = python_version or ""
    stated = {"python_version": ".".join(version.split(".")[:2]), "python_full_version": version} if version else {}
    return {**marker_environment(target), **stated}


def _machine(known: matrix.Matrix, asking: Project | None, python: str | None) -> tuple[Target | None, Environment]:
    """The interpreter that the pins are for with what is installed; where none is found, this machine with our Python.

    Raises `NothingInspectedError` where an environment is broken that was asked for or that nothing can stand for.
    """
    try:
        target = find_target(python, os.environ, asking.folders if asking else (os.curdir,))
    except NothingInspectedError as error:
        if not isinstance(error, NoEnvironmentError) and (python or not asking or is_active(os.environ)):
            raise
        machine = collect_machine(known.environ)
        return None, machine.with_fact("python", own_target(os.environ).version)
    return target, collect(target, known.environ)


def _place(environment: Environment, target: Target | None, python_version: str | None, platform: str | None) -> Place:
    if target is None:
        python_version = python_version or environment.facts.get("python")
        platform = platform or resolver.platform_of(environment.section("platform"))
    return Place(target.executable if target else sys.executable, python_version, platform)
