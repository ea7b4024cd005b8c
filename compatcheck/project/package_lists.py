"""What the lists of packages of a project say together, and where they contradict one another."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from compatcheck.environment import Environment, Location
from compatcheck.errors import InputError
from compatcheck.files.path_lists import listed, more_than_one
from compatcheck.language import gettext as _
from compatcheck.language import ngettext
from compatcheck.project import requirements
from compatcheck.project.overlay import PINNED, Reading
from compatcheck.project.projects import Project
from compatcheck.project.requirements._markers import in_range
from compatcheck.project.sources import Input, Source
from compatcheck.results.findings import Remark

_FOUNDATION = "torch"
_BESIDE = ("python", "platform", "image", "cuda", "environ")


class _Wish(NamedTuple):
    """What one file asks of a package: the version that it pins, if it pins one, and the range."""

    version: str | None
    range: str
    at: Location


def read_lists(inputs: Sequence[Input], python: str | None) -> Reading:
    """What the files say that list packages: wishes first, locks over them, named files over found.

    A found file that cannot be read is left out, with a remark. Raises `InputError` where a named one is broken.
    """
    chosen, several = _chosen(inputs)
    environment, beside = Environment({}, several), Environment()
    remarks = [Remark(_unchosen(kind, inputs)) for kind in several]
    read: dict[Source, Environment] = {}
    for source, root in chosen:
        try:
            read[source] = requirements.readers()[source.kind].read(source.path, python)
        except InputError as error:
            if root is None:
                raise
            remarks.append(Remark(str(error)))
            environment = environment.overlay(Environment({}, {"distributions": str(error)}))
    for pins in read.values():
        environment = environment.overlay(pins.without(*_BESIDE))
        beside = beside.overlay(pins.without(*PINNED))
    if required := _requirements_in(read):
        environment = environment.with_fact("requirements", required)
    return Reading(environment, tuple(read), beside, (*remarks, *_contradictions([*read.values()])))


def _chosen(inputs: Sequence[Input]) -> tuple[list[Input], dict[str, str]]:
    """The lists that count, the last one most, and why those of a kind do not.

    Of several files of one format found in a folder the topmost counts; where two stand beside each other none does,
    and the reason names them. Requirements files of one folder belong together.
    """
    lists = [each for each in inputs if each.source.kind in requirements.readers()]
    several: dict[str, str] = {}
    for kind in {each.source.kind for each in lists} - {requirements.PLAIN}:
        alike = [each for each in lists if each.source.kind == kind]
        named = [each for each in alike if each.root is None]
        top = min(each.source.path.count(os.sep) for each in alike)
        chosen = named or [each for each in alike if each.source.path.count(os.sep) == top]
        if len(chosen) > 1 and not named:
            several[kind] = more_than_one([each.source.path for each in chosen])
            chosen = []
        lists = [each for each in lists if each.source.kind != kind or each in chosen]
    lists.sort(key=lambda each: (each.root is None, "lock" in each.source.kind, each.source.kind != "dockerfile"))
    return lists, several


def _requirements_in(lists: Mapping[Source, Environment]) -> list[Mapping[str, Any]]:
    """What all the lists require; a file that a Dockerfile installs counts as it is installed there."""
    found = {source: each.facts.get("requirements", []) for source, each in lists.items()}
    in_image = {
        os.path.realpath(each["file"])
        for source, listed in found.items()
        if source.kind == "dockerfile"
        for each in listed
    }
    return [
        each
        for source, listed in found.items()
        if source.kind == "dockerfile" or os.path.realpath(source.path) not in in_image
        for each in listed
    ]


def _unchosen(kind: str, inputs: Sequence[Input]) -> str:
    files = listed([each.source.path for each in inputs if each.source.kind == kind])
    return _("none of {files} was read; pass the file that is in use").format(files=files)


def _contradictions(lists: Sequence[Environment]) -> Iterator[Remark]:
    """For each two files that state different versions of a package, where, and which of them counts."""
    wishes: dict[str, list[_Wish]] = {}
    for each in lists:
        for name, wish in _wishes(each):
            wishes.setdefault(name, []).append(wish)
    apart: dict[tuple[str, str], list[tuple[str, _Wish, _Wish]]] = {}
    for name, several in wishes.items():
        counting = next((wish for wish in reversed(several) if wish.version), None)
        for other in several if counting else ():
            if counting and _contradicts(other, counting.version or ""):
                apart.setdefault((counting.at.file, other.at.file), []).append((name, counting, other))
    for (_file, file), rows in apart.items():
        name, counting, other = min(rows, key=lambda row: row[0] != _FOUNDATION)
        text = _("{name} {version} is used here, but {place} requires {range}")
        text = text.format(name=name, version=counting.version, place=other.at, range=other.range)
        if len(rows) > 1:
            more = ngettext(
                "{file} differs in {count} more package", "{file} differs in {count} more packages", len(rows) - 1
            )
            text = f"{text}; {more.format(file=file, count=len(rows) - 1)}"
        yield Remark(text, counting.at)


def _wishes(list_: Environment) -> Iterator[tuple[str, _Wish]]:
    versions = {name: version for name, version in list_.section("distributions").items() if version}
    ranges = {name: asked for name, asked in list_.section("distribution_ranges").items() if asked}
    for name in {**ranges, **versions}:
        at = list_.locations.get(f"distributions.{name}")
        if at is not None:
            version = versions.get(name)
            yield name, _Wish(version, f"=={version}" if version else ranges[name], at)


def _contradicts(wish: _Wish, version: str) -> bool:
    """Whether a version is not what a file asks for; a build of the release it names is."""
    return not (in_range(version, wish.range) or (wish.version and in_range(wish.version, f"=={version}")))


def requirements_of(project: Project) -> tuple[str, ...]:
    """The files of a project that say what is to be installed.

    Requirements count before a ``pyproject.toml``, and in a folder a ``requirements.in`` before what is made of it.
    """
    lists, _several = _chosen(project.inputs)
    named = [each.source.path for each in lists if each.root is None]
    sources = [each.source for each in lists]
    plain = [source.path for source in sources if source.kind == requirements.PLAIN]
    if not plain:
        return tuple(source.path for source in sources if source.kind == "pyproject")
    made_of = {path: f"{os.path.splitext(path)[0]}.in" for path in plain if path not in named}
    return tuple(made_of[path] if os.path.isfile(made_of.get(path, "")) else path for path in plain)
