"""A release is known to import a name that the stated release of another package lacks, where nobody followed them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from packaging.version import Version

from compatcheck.environment import Environment, Unknown
from compatcheck.matrix._traits import Table
from compatcheck.matrix.matching.match import Occurrence, TraitVerdict
from compatcheck.packages.frameworks import framework_of_distribution
from compatcheck.packages.versions import contains, final_release, parse_range

_FOLLOWED = "unresolved_imports"
_ALWAYS_IMPORTED = frozenset({"accelerate", "datasets", "huggingface-hub", "peft", "tokenizers", "transformers", "trl"})
"""What a training run imports wherever it is installed: Trainer imports peft and datasets as soon as they are there."""
_OBJECTIVES = {"from trl import DPOTrainer": "dpo", "from trl import SFTTrainer": "sft"}
"""Statements that only the runs with one objective reach."""
_SWITCHES = {"liger-kernel": "training.use_liger_kernel"}
"""The setting without which nothing imports a package."""

_version = cache(Version)


class _Row(NamedTuple):
    """Releases ``first`` to ``last`` of a package end at ``statement`` beside a provider in the range.

    ``entry`` is the entry that says so itself.
    """

    first: str
    last: str
    range: str
    name: str
    statement: str
    entry: str = ""

    def holds(self, package: Version, provider: Version) -> bool:
        between = _version(self.first) <= package <= _version(self.last)
        return between and contains(parse_range(self.range), provider)


class _Found(NamedTuple):
    package: str
    provider: str
    row: _Row


def find(environment: Environment, table: Table) -> TraitVerdict:
    """Certain of what a run surely imports; a package that may only be installed, or a part of one, is left open.

    Where the installed files were followed, `import-name-missing` knows. A build of a vendor, a pre-release and a
    release that was not followed are passed over.
    """
    if not isinstance(environment.get(_FOLLOWED), Unknown):
        return TraitVerdict(False)
    distributions = environment.get("distributions")
    if isinstance(distributions, Unknown) or not distributions:
        return TraitVerdict(None, missing=(_FOLLOWED,))
    known = table("import-failures")
    versions = {name: version for name in known["releases"] if (version := final_release(distributions.get(name)))}
    switched_off = {name for name, path in _SWITCHES.items() if environment.get(path) is False}
    found = tuple(each for each in _found(known, versions) if each.package not in switched_off)
    certain = tuple(each for each in found if _is_run(each, environment))
    occurrences = tuple(_occurrence(each, known, versions) for each in certain or found)
    return TraitVerdict(True, occurrences) if certain else TraitVerdict(None, occurrences, (_FOLLOWED,))


def _found(known: Mapping[str, Any], versions: Mapping[str, Version]) -> Iterator[_Found]:
    for package in sorted(versions):
        for provider, rows in known.get(package, {}).items():
            if provider in versions:
                row = _failing(rows, versions[package], versions[provider])
                if row is not None and not row.entry:
                    yield _Found(package, provider, row)


def _failing(rows: Sequence[Sequence[str]], package: Version, provider: Version) -> _Row | None:
    return next((row for row in (_Row(*each) for each in rows) if row.holds(package, provider)), None)


def _is_run(found: _Found, environment: Environment) -> bool:
    """Whether the statement that fails is surely reached: the package is used, and used that way."""
    framework = environment.get("training.framework")
    if found.row.statement in _OBJECTIVES:
        return bool(environment.get("training.objective") == _OBJECTIVES[found.row.statement])
    own = framework_of_distribution(found.package)
    if own and own.program:
        return isinstance(framework, Unknown) or framework == own.name
    return found.package in _ALWAYS_IMPORTED or bool(framework == found.package)


def _occurrence(found: _Found, known: Mapping[str, Any], versions: Mapping[str, Version]) -> Occurrence:
    package, provider, row = found
    here, there = versions[package], versions[provider]
    rows = known[package][provider]
    others = (_version(each) for each in known["releases"][provider].split())
    selves = (_version(each) for each in known["releases"][package].split())
    summary = f"`{row.statement}` fails: {package} {here} imports {row.name}, which {provider} {there} does not have"
    pins = _nearest(others, there, lambda other: _failing(rows, here, other) is None)
    instead = _nearest(selves, here, lambda other: _failing(rows, other, there) is None)
    return Occurrence(
        summary,
        (provider, package),
        {provider: pins} if pins else {package: instead} if instead else {},
        {package: instead} if pins and instead else {},
    )


def _nearest(releases: Iterable[Version], here: Version, is_good: Callable[[Version], bool]) -> str | None:
    """The good release that is fewest releases away from this one, as a range towards it."""
    ordered = sorted(releases)
    newer = [each for each in ordered if each > here]
    older = [each for each in reversed(ordered) if each < here]
    for step in range(max(len(newer), len(older))):
        if step < len(newer) and is_good(newer[step]):
            return f">={newer[step]}"
        if step < len(older) and is_good(older[step]):
            return f"<={older[step]}"
    return None
