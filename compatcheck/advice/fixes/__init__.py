"""Write remedies into the user's files: each remedy as the edits that may do it, likeliest first.

An edit is a proposal: `pipelines.fix` judges the files with it, and keeps it if the finding is gone and no other came.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice, product
from typing import Any, NamedTuple

from packaging.specifiers import SpecifierSet
from packaging.version import InvalidVersion, Version

from compatcheck.advice.fixes import _python, _requirements, _scalars
from compatcheck.environment import Environment, Location
from compatcheck.interfaces.history import Interfaces, is_in
from compatcheck.results.findings import Finding, Remedy

_MOST = 12
"""How many ways to write one remedy are tried."""
_HARMLESS = ("training.save_safetensors", "training.arguments.load_best_model_at_end")
"""Settings that change neither what is computed nor its memory and time."""


class Change(NamedTuple):
    """A change to one file: from its text to the new one, None where it does not fit."""

    file: str
    apply: Callable[[str], str | None]


class Known(NamedTuple):
    """Of packages: their releases by name, by release of torch what belongs to it, and what their calls take."""

    releases: Mapping[str, Collection[str]]
    companions: Mapping[str, Mapping[str, str]]
    interfaces: Interfaces


class Place(NamedTuple):
    """Where remedies are written: the facts with their places, and the texts of files."""

    environment: Environment
    read: Callable[[str], str | None]
    known: Known


def candidates(finding: Finding, remedy: Remedy, place: Place, *, unsafe: bool) -> Iterator[Mapping[str, str]]:
    """The new texts of files by name, for each way to write the remedy; nothing where it is no edit.

    Without ``unsafe``, only edits that leave the results, memory and cost of a healthy run as they are: a pin that
    stays in the same major version and does not go back, a keyword under its new name, an import from another module
    of its package, a setting of `_HARMLESS`.
    """
    parts = [*_of_pins(remedy, place, unsafe=unsafe)]
    if unsafe or all(path.startswith(_HARMLESS) for path in remedy.config):
        parts += _of_settings(remedy, place.environment)
    else:
        parts.append([])
    if remedy.environ:
        variables = [_of_variable(name, value, place.environment) for name, value in remedy.environ.items()]
        parts += variables if unsafe else [[]]
    if remedy.code:
        parts.append(list(_of_code(remedy.code, finding, place.environment, unsafe=unsafe)))
    if remedy.action and not parts and unsafe:
        parts.append(list(_without_refused(finding, place)))
    if not remedy.config and not parts:
        return
    for changes in islice(product(*parts), _MOST):
        texts = _applied(changes, place.read)
        if texts:
            yield texts


def _applied(changes: Sequence[Change], read: Callable[[str], str | None]) -> dict[str, str] | None:
    texts: dict[str, str] = {}
    for change in changes:
        before = texts.get(change.file) or read(change.file)
        after = change.apply(before) if before is not None else None
        if after is None or after == before:
            return None
        texts[change.file] = after
    return texts


def _of_pins(remedy: Remedy, place: Place, *, unsafe: bool) -> Iterator[list[Change]]:
    for name, specifier in remedy.pins.items():
        at = place.environment.locations.get(f"distributions.{name}")
        now = str(place.environment.get(f"distributions.{name}"))
        version = nearest_release(now, specifier, place.known.releases.get(name, ()))
        if at is None or version is None or not (unsafe or _is_near(now, version)):
            yield []
            continue
        yield [Change(at.file, _requirements.pinned(at.line, name, version, specifier))]
        if name == "torch":
            yield from _of_companions(version, {*remedy.pins}, place)


def _of_companions(torch: str, pinned: Collection[str], place: Place) -> Iterator[list[Change]]:
    """torchvision and torchaudio, where they are pinned as well, go with torch; no edit where theirs is not known."""
    for name in ("torchvision", "torchaudio"):
        at = place.environment.locations.get(f"distributions.{name}")
        if at is not None and name not in pinned:
            version = place.known.companions.get(torch, {}).get(name)
            if version != place.environment.get(f"distributions.{name}"):
                change = _requirements.pinned(at.line, name, version, f"=={version}") if version else None
                yield [Change(at.file, change)] if change else []


def nearest_release(now: str, specifier: str, releases: Iterable[str]) -> str | None:
    """The release in the range that comes nearest to the present one; the version that the range names if none does."""
    wanted = SpecifierSet(specifier)
    fitting = sorted(Version(each) for each in releases if each in wanted)
    if not fitting:
        return _requirements.named_version(specifier)
    try:
        later = [each for each in fitting if each >= Version(now)]
    except InvalidVersion:
        later = []
    return str(later[0] if later else fitting[-1])


def _of_settings(remedy: Remedy, environment: Environment) -> Iterator[list[Change]]:
    for path, value in remedy.config.items():
        yield [*_replacements(path, value, environment), *_insertions(path, value, environment)]


def _replacements(path: str, value: Any, environment: Environment) -> Iterator[Change]:
    """The value on the line that states the fact."""
    at = _place(path, environment)
    if at is None or at.line is None:
        return
    if at.file.endswith((".py", ".ipynb")):
        for change in _python.replacements(at.line, path, value):
            yield Change(at.file, change)
    else:
        for change in _scalars.replacements(at.file, at.line, path, value):
            yield Change(at.file, change)


def _insertions(path: str, value: Any, environment: Environment) -> Iterator[Change]:
    """The setting where the files do not state it yet."""
    files = dict.fromkeys(at.file for fact, at in environment.locations.items() if fact.startswith("training"))
    for file in files:
        if file.endswith(".py"):
            for change in _python.insertions(path, value):
                yield Change(file, change)
        else:
            for change in _scalars.insertions(file, path, value):
                yield Change(file, change)


def _of_variable(name: str, value: str, environment: Environment) -> list[Change]:
    at = environment.locations.get(f"environ.{name}")
    scripts = dict.fromkeys(each.file for each in environment.locations.values() if _scalars.is_shell(each.file))
    files = [at.file] if at is not None and _scalars.is_shell(at.file) else scripts
    return [Change(file, _scalars.exported(name, value)) for file in files]


def _of_code(code: str, finding: Finding, environment: Environment, *, unsafe: bool) -> Iterator[Change]:
    """An import or keyword for the one on the finding's line, a keyword more for its call, or a generation setting."""
    call, at = _python.call_with(code), finding.location
    if at is not None and at.line is not None and re.fullmatch(r"from [\w.]+ import \w+( as \w+)?", code):
        yield Change(at.file, _python.imported(at.line, code, from_another_package=unsafe))
    generation = re.fullmatch(r"model\.generation_config\.(\w+) = (True|False)", code)
    if generation and at is not None and at.file.endswith("generation_config.json"):
        yield Change(at.file, _scalars.with_key(generation[1], generation[2] == "True"))
    if call is None:
        return
    if at is not None and at.line is not None and at.file.endswith(".py"):
        for change in _python.renames(at.line, call.keyword):
            yield Change(at.file, change)
    if unsafe and call.value != "...":
        for file in dict.fromkeys(each.file for each in environment.locations.values() if each.file.endswith(".py")):
            yield Change(file, _python.with_keyword(*call))


def _without_refused(finding: Finding, place: Place) -> Iterator[Change]:
    """The call on the finding's line without the keywords that the release does not take."""
    at = finding.location
    if at is None or at.line is None or not at.file.endswith(".py"):
        return
    versions = {
        name: Version(found)
        for name in finding.packages
        if isinstance(found := place.environment.get(f"distributions.{name}"), str)
    }
    interfaces = place.known.interfaces

    def is_refused(function: str, keyword: str) -> bool:
        for package, key in interfaces.named(function):
            if package in versions:
                runs = tuple(interfaces.accepting(package, key, -1, (keyword,), versions))
                if runs and not is_in(versions[package], runs):
                    return not interfaces.renamed(package, key, keyword)
        return False

    yield Change(at.file, _python.without(at.line, is_refused))


def _place(path: str, environment: Environment) -> Location | None:
    """Where the fact is stated, or the section that holds it."""
    while path:
        if path in environment.locations:
            return environment.locations[path]
        path = path.rpartition(".")[0]
        if path in ("training", "model"):
            return None
    return None


def _is_near(now: str, then: str) -> bool:
    """Whether a version is at least the present one, and of its major version."""
    try:
        old, new = Version(now), Version(then)
    except InvalidVersion:
        return False
    return new.major == old.major and new.release >= old.release
