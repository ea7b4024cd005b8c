"""The two environments: an interpreter as it stands, or one that is built from a file."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack
from typing import NamedTuple

from compatcheck import probes
from compatcheck.advice import resolver, wanted
from compatcheck.advice.environment import build, change
from compatcheck.advice.model import Demands, Line, Place, Solution, Unsolvable, Wanted
from compatcheck.advice.requirement_text import with_version
from compatcheck.environment import Target
from compatcheck.environment.snapshot import read_snapshot
from compatcheck.errors import InputError
from compatcheck.inference.torch_builds import backend_of
from compatcheck.installed.collect import collect
from compatcheck.installed.target import find_target, own_target
from compatcheck.pipelines.check import OnProbe

Building = Callable[[], AbstractContextManager[Callable[[str], None]]]
Probing = Callable[[], AbstractContextManager[OnProbe]]

PRIMARY = ("transformers", "trl", "peft", "accelerate", "torch", "deepspeed", "bitsandbytes", "liger-kernel")
"""What trains, the likeliest cause first."""

_FILES = (".txt", ".in", ".toml")


class Stack(NamedTuple):
    """An environment to record: ``target`` is None where it has to be built from ``pins`` first."""

    name: str
    target: Target | None
    pins: Mapping[str, str]
    place: Place
    torch_backend: str | None = None


def read(named: str, environ: Mapping[str, str]) -> Stack:
    """The environment that a word of the command line names, with the versions it has or is to have.

    Raises InputError where it is none, and what the resolver raises for requirements that do not fit.
    """
    stack = _read(named, environ)
    _require_training(named, stack.pins)
    return stack


def _require_training(named: str, versions: Mapping[str, str]) -> None:
    if not {"torch", "transformers"} <= versions.keys():
        seen = "the environment lacks torch or transformers"
        raise InputError("comparing", named, seen, "pass an environment that trains with transformers")


def _read(named: str, environ: Mapping[str, str]) -> Stack:
    if os.path.isfile(named) and named.endswith(".json"):
        return _snapshot(named)
    if os.path.isfile(named) and named.endswith(_FILES) and not os.access(named, os.X_OK):
        return _requirements(named, environ)
    target = find_target(named, environ)
    found = collect(target, architectures=False).section("distributions")
    pins = {name: str(version) for name, version in found.items() if version}
    return Stack(named, target, pins, Place(target.executable), _backend(pins))


def _snapshot(path: str) -> Stack:
    environment = read_snapshot(path)
    versions = {name: str(each) for name, each in environment.section("distributions").items() if each}
    _require_training(path, versions)
    roots = [name for name in PRIMARY if name in versions]
    place = Place(sys.executable, _python(environment.facts.get("python")))
    asked = Wanted(tuple(Line(name, name, name) for name in roots), versions)
    return _resolved(path, asked, place, {name: f"=={_release(versions[name])}" for name in roots})


def _requirements(path: str, environ: Mapping[str, str]) -> Stack:
    return _resolved(path, _exact(wanted.read([path], None)), Place(own_target(environ).executable), {})


def _exact(asked: Wanted) -> Wanted:
    """The same with each exact pin as it stands in the file, where `pin` could move it."""
    pins = {name: asked.preferred[name] for name in asked.stated}
    lines = [
        line._replace(asked=with_version(line.asked, pins[line.name]))
        if line.asked and line.name in pins and not line.kept
        else line
        for line in asked.lines
    ]
    named = {line.name for line in lines if line.asked}
    limits = (f"{name}=={version}" for name, version in pins.items() if name not in named)
    return asked._replace(lines=tuple(lines), constraints=(*asked.constraints, *limits))


def _resolved(path: str, asked: Wanted, place: Place, specifiers: Mapping[str, str]) -> Stack:
    backend = _backend(asked.preferred)
    try:
        solution = resolver.resolve(asked, Demands(specifiers, backend), place)
    except Unsolvable as error:
        raise InputError("resolving", path, error.seen, error.advice) from None
    return Stack(path, None, pinned(solution), place, backend)


def pinned(solution: Solution) -> dict[str, str]:
    """The versions of a solution that can be installed."""
    return {name: version for name, version in solution.versions.items() if name not in solution.kept}


class Bench:
    """The temporary environments of one comparison: one for each Python, changed from stack to stack.

    So what two stacks share is installed and compiled once. All of them are removed when the context ends.
    """

    def __init__(self, building: Building) -> None:
        self.building = building
        self.entered = ExitStack()
        self.pythons: dict[Place, str] = {}

    def __enter__(self) -> Bench:
        return self

    def __exit__(self, *_: object) -> None:
        self.entered.close()

    def recording(self, stack: Stack, label: str, request: Mapping[str, object], probing: Probing) -> probes.Recording:
        """What is recorded in a stack, shown as ``label``."""
        target = self._target(stack)
        with probing() as show:
            return probes.record(
                target, request, on_stage=lambda stage, _: show(label, stage, 0.0), bytecode=stack.target is None
            )

    def _target(self, stack: Stack) -> Target:
        if stack.target is not None:
            return stack.target
        pins = [f"{name}=={version}" for name, version in sorted(stack.pins.items())]
        with self.building() as on_line:
            on_line(stack.name)
            if stack.place in self.pythons:
                change(self.pythons[stack.place], pins, torch_backend=stack.torch_backend, on_line=on_line)
            else:
                built = build(pins, stack.place, torch_backend=stack.torch_backend, on_line=on_line)
                self.pythons[stack.place] = self.entered.enter_context(built)
        return find_target(self.pythons[stack.place], {})


def _python(version: object) -> str | None:
    return ".".join(version.split(".")[:2]) if isinstance(version, str) else None


def _release(version: str) -> str:
    return version.partition("+")[0]


def _backend(versions: Mapping[str, str]) -> str | None:
    """The build of torch that a label tells, unless the user's own configuration of uv chooses one."""
    return None if "UV_TORCH_BACKEND" in os.environ else backend_of(versions.get("torch", ""))
