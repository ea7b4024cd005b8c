"""What the user's files say over what is installed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Literal, NamedTuple

from compatcheck.environment import Environment
from compatcheck.project.requirements._markers import in_range
from compatcheck.project.sources import Source
from compatcheck.results.findings import Remark

PINNED = ("distributions", "distributions_complete", "distribution_ranges", "requirements")
OF_TORCH = ("torch_build", "cuda.runtime", "cuda.cudnn", "cuda.nccl")
_OF_VERSIONS = ("unmet_requirements", "unresolved_imports")
_INSTALLED = ("target", "distributions_requested", "distribution_problems", *_OF_VERSIONS, *OF_TORCH)
_OF_THE_HOST = ("python", "platform.libc", "cuda.toolkit")
_NOT_OF_TORCH = (*PINNED, "python", "platform", "image", "environ", "cuda.toolkit")

Pins = Literal["ignored", "over", "instead"]
Movable = Callable[[Collection[str]], Collection[str]]


class Reading(NamedTuple):
    """What the user's files say, and which were read.

    ``beside`` is what files that describe a whole environment, as a Dockerfile does, say of it besides its packages.
    ``remarks`` are on lists of packages that contradict one another or cannot be read.
    """

    environment: Environment
    sources: tuple[Source, ...]
    beside: Environment = Environment()
    remarks: tuple[Remark, ...] = ()


def with_paths(environment: Environment, paths: Sequence[str], *, pins: Pins = "instead") -> Environment:
    """The environment with what the user's own files of one project say, as `over` joins them."""
    from compatcheck.project.reading import read_paths

    return over(environment, read_paths(paths, python=environment.facts.get("python")), pins)


def over(environment: Environment, reading: Reading, pins: Pins, movable: Movable = lambda names: ()) -> Environment:
    """An environment with what the files say in place of its own.

    Where requirements pin versions, ``pins`` says how these meet the installed ones: they are left out, they
    take the place of what they name, or they stand for the whole, as do ranges then, and what a Dockerfile or the like
    says besides. What is installed is left as it is where it already meets the pins and most of the ranges, and by
    ranges in any case where they do not stand for the whole. What moves along with the pins, as ``movable`` tells of
    those that move, is of any version then.
    """
    said = reading.environment
    pinned = said.facts.get("distributions")
    in_image = "image" in reading.beside.facts
    if pins == "instead" and (in_image or not _is_met(said, environment)):
        gone = (*PINNED, *_INSTALLED, *(_OF_THE_HOST if in_image else ()))
        emptied = environment.without(*gone)
        return emptied.overlay(said).overlay(reading.beside)
    if pins == "ignored":
        return environment.overlay(said.without(*PINNED))
    if not pinned:
        listed = said.facts.get("requirements")
        rest = environment.overlay(said.without(*PINNED))
        return rest.with_fact("requirements", listed) if listed else rest
    installed = environment.section("distributions")
    moved = {name for name, version in pinned.items() if installed.get(name) != version}
    stale: tuple[str, ...] = _OF_VERSIONS if moved else ()
    stale += OF_TORCH if "torch" in moved else ()
    if "torch" in moved:
        said = said.overlay(reading.beside.without(*_NOT_OF_TORCH))
    others = installed.keys() - pinned.keys()
    along = {name: "" for name in movable(moved) if name in others} if moved else {}
    kept = {name: version for name, version in installed.items() if name not in along}
    merged = {**said.facts, "distributions": {**kept, **pinned}}
    if along:
        merged["distribution_ranges"] = {**along, **said.section("distribution_ranges")}
        environment = environment.with_fact("distributions", kept)
    merged["distributions_complete"] = bool(environment.facts.get("distributions_complete"))
    return environment.without(*stale).overlay(said._replace(facts=merged))


def _is_met(said: Environment, environment: Environment) -> bool:
    pinned, ranges = said.section("distributions"), said.section("distribution_ranges")
    installed = environment.section("distributions")
    fitting = sum(bool(installed.get(name)) and in_range(installed[name], asked) for name, asked in ranges.items())
    same = all(installed.get(name) == version for name, version in pinned.items())
    return same and 2 * (fitting + len(pinned)) >= len(ranges) + len(pinned)
