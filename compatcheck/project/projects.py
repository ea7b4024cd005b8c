"""Which files are judged together: those of one project."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from compatcheck.errors import InputError
from compatcheck.files.path_lists import listed
from compatcheck.language import gettext as _
from compatcheck.project import requirements, scripts, training
from compatcheck.project.sources import Input, Source, identify, is_model, scan

_NAME_ONE = "choose one of these projects, or pass its files"


class Project(NamedTuple):
    """Files that are judged together.

    ``folder`` is the folder that lists the packages, or that was named; empty where only files were named.
    """

    folder: str
    inputs: tuple[Input, ...]

    @property
    def folders(self) -> tuple[str, ...]:
        """Where its environment may be: its folder, or those of the named files other than models."""
        files = (os.path.dirname(source.path) or os.curdir for source, _ in self.inputs if source.kind != "model")
        return (self.folder,) if self.folder else tuple(dict.fromkeys(files)) or (os.curdir,)

    @property
    def lists_packages(self) -> bool:
        return any(_lists_packages(each.source) for each in self.inputs)

    @property
    def trains(self) -> bool:
        return any(is_training(each.source) for each in self.inputs)


def is_training(source: Source) -> bool:
    """Whether a file is a training of its own: a configuration, a launch script or a program, but no module of one."""
    if source.kind == scripts.KIND and not training.trains(source.path):
        return False
    return source.kind in training.readers() and training.role_of(source.kind) in ("config", "script", "program")


def nearest(path: str, top: str, lists_packages: Callable[[str], object]) -> str:
    """The project of a file: the nearest folder at or above it that lists packages, up to ``top``, where none does."""
    folder = os.path.dirname(path) or os.curdir
    while folder != top and not lists_packages(folder):
        above = os.path.dirname(folder) or os.curdir
        if above == folder:
            return top
        folder = above
    return folder


def package_lists(folder: str) -> tuple[str, ...]:
    """The files of a folder that list packages."""
    paths = (os.path.normpath(os.path.join(folder, name)) for name in sorted(os.listdir(folder)))
    return tuple(path for path in paths if os.path.isfile(path) and requirements.identify(path))


def projects(paths: Sequence[str]) -> tuple[Project, ...]:
    """The projects of the paths, in their order.

    Files and model folders that are named belong together, and to the project of each folder that is named. In a folder
    every file belongs to its `nearest` project, and a Dockerfile beside no training to the one above. What lists no
    packages and trains nothing is part of every project, as is the only one that lists packages where it trains nothing
    itself. Raises `InputError` where a path is missing or a named file is not recognised.
    """
    named: list[Input] = []
    found: dict[str, dict[Source, Input]] = {}
    for path in paths:
        if os.path.isdir(path) and not is_model(path):
            found.setdefault(os.path.normpath(path), {})
            for folder, each in _members(path):
                found.setdefault(folder, {}).setdefault(each.source, each)
        else:
            named.append(Input((_broken(path) if len(paths) > 1 else None) or identify(path)))
    if not found:
        return (Project("", tuple(named)),)
    _join_images(found)
    whole = [Project(folder, tuple(inputs.values())) for folder, inputs in found.items()]
    apart, shared = _apart(whole)
    common = (*named, *(each for project in shared for each in project.inputs))
    return tuple(project._replace(inputs=(*common, *project.inputs)) for project in apart)


def project(paths: Sequence[str]) -> Project:
    """The one project of the paths: of several in a folder the one that the folder itself lists packages for.

    Raises `InputError` as `projects` does, and where it cannot be told which of several to take.
    """
    several = projects(paths)
    top = {os.path.normpath(path) for path in paths}
    meant = [each for each in several if each.folder in top and each.lists_packages] if len(several) > 1 else several
    if len(meant) != 1:
        folders = listed([each.folder for each in several])
        seen = _("there are {count} projects: {folders}").format(count=len(several), folders=folders)
        raise InputError("reading", listed(paths), seen, _NAME_ONE)
    return meant[0]


def _members(top: str) -> Iterator[tuple[str, Input]]:
    """What a folder holds, each with the folder of its project."""
    sources = list(scan(top))
    listing = {os.path.dirname(each.path) or os.curdir for each in sources if _lists_packages(each)}
    for source in sources:
        inner = os.path.join(source.path, "") if source.kind == "model" else source.path
        yield nearest(inner, os.path.normpath(top), listing.__contains__), Input(source, top)


def _join_images(found: dict[str, dict[Source, Input]]) -> None:
    """Let the Dockerfile of a folder that trains nothing belong to the project above it, where there is one."""
    for folder in [folder for folder, inputs in found.items() if _is_image(inputs)]:
        above = os.path.dirname(folder) or os.curdir
        while above not in found and os.path.dirname(above) not in ("", above):
            above = os.path.dirname(above)
        above = above if above in found else os.curdir
        if above != folder and any(is_training(each) or _lists_packages(each) for each in found.get(above, ())):
            found[above].update(found.pop(folder))


def _is_image(inputs: Iterable[Source]) -> bool:
    lists = [each.kind for each in inputs if _lists_packages(each)]
    return set(lists) == {"dockerfile"} and not any(map(is_training, inputs))


def _lists_packages(source: Source) -> bool:
    return source.kind in requirements.readers()


def _broken(path: str) -> Source | None:
    """A script that cannot be parsed costs itself alone where other files are named too."""
    if path.endswith(training.OF_CODE) and os.path.isfile(path):
        try:
            training.identify(path)
        except InputError:
            return Source(training.BROKEN, path)
    return None


def _apart(found: Iterable[Project]) -> tuple[list[Project], list[Project]]:
    """The projects to be judged each for itself, and those that are part of each of them."""
    whole = list(found)
    listing = [each for each in whole if each.lists_packages]
    alone = listing[0] if len(listing) == 1 and not listing[0].trains else None
    apart = [each for each in whole if each.trains or (each.lists_packages and each is not alone)]
    if not apart:
        return [Project(whole[0].folder, ())], whole
    return apart, [each for each in whole if each not in apart]
