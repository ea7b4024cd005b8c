"""Which tables that are still open are worth telling, by what `matrix/tables/relevance.toml` says people leave out."""

from __future__ import annotations

from collections.abc import Mapping, Set
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from compatcheck.environment import Environment
from compatcheck.environment.paths import distribution_of, variable_of
from compatcheck.packages.frameworks import framework_of_distribution
from compatcheck.packages.shipped_tables import shipped_table

if TYPE_CHECKING:
    from compatcheck.matrix.matching.match import Verdict

_STATED_BY_TRAINING_ALONE = ("traits", "training.predict_with_generate", "training.use_cache")
_SUBJECTS = ("model.", "traits", "training.calls.", "training.observed.", "every_gpu.", "torch_build.hip")
_KINDS = {
    "gpu": "hardware",
    "every_gpu": "hardware",
    "cuda.driver": "hardware",
    "cuda.driver_api": "hardware",
    "training": "setting",
    "model": "model",
    "environ": "variable",
    "traits": "relation",
}
_COMMON = ("training.framework", "training.runs_on", "training.objective", "training.method")
"""Settings that nearly every report states."""


class Relevance(NamedTuple):
    """The table; its comments explain each part."""

    set_by_others: frozenset[str]
    off_unless_asked: Mapping[str, tuple[str, ...]]
    chosen_by_few: Mapping[str, frozenset[str | int]]
    switches: Mapping[str, str]
    own_settings: Mapping[str, str]


@cache
def relevance() -> Relevance:
    table = shipped_table("relevance")
    return Relevance(
        frozenset(table["set_by_others"]),
        {path: tuple(suggesting) for path, suggesting in table["off_unless_asked"].items()},
        {path: frozenset(values) for path, values in table["chosen_by_few"].items()},
        table["switches"],
        table["own_settings"],
    )


@cache
def _subjects() -> tuple[str, ...]:
    """What an entry is about: where it is unknown, the entry is not suspected unless something suggests it."""
    return (*_SUBJECTS, *relevance().off_unless_asked)


def rare_choices(conditions: Mapping[str, object]) -> frozenset[str]:
    """The facts of which a table asks for what few choose: each value it allows, or a variable that has to be set.

    Conditions on a GPU are judged together, under the name ``gpu``.
    """
    chosen_by_few = relevance().chosen_by_few
    return frozenset(
        "gpu" if path.startswith("gpu.") else path
        for path, condition in conditions.items()
        if (variable_of(path) and condition != "absent")
        or (path in chosen_by_few and chosen_by_few[path].issuperset(_allowed(condition)))
    )


def is_left_off(path: str, condition: object) -> bool:
    """Whether a table requires that a setting, which is off unless somebody turns it on, is off.

    A setting of DeepSpeed's own says nothing where it is not known whether DeepSpeed runs.
    """
    own = path.startswith("training.deepspeed.")
    return path in relevance().off_unless_asked and (condition == "absent" or (condition is False and not own))


def _allowed(condition: object) -> list[object]:
    return condition if isinstance(condition, list) else [condition]


def is_narrowed(parts: Mapping[str, Verdict], rare: frozenset[str], environment: Environment) -> bool:
    """Whether a table that is still open is worth telling.

    It is where a trait was seen or certainly holds. Otherwise something singular must hold (a setting, a version below
    an upper bound; more than the GPU, and more than the model where a run with training would state what is missing),
    and each fact that is missing must be one that people leave out.
    """
    trait = parts.get("traits")
    if trait and (trait.occurrences or (trait.holds and trait.narrowed)):
        return True
    open_still = {path for path, part in parts.items() if part.holds is None}
    singular = {path for path, part in parts.items() if part.holds is not False and part.narrowed}
    kinds = {_kind(path) for path in singular}
    if kinds <= {"hardware"} or (open_still.difference(_STATED_BY_TRAINING_ALONE) and kinds <= {"model", "relation"}):
        return False
    certain = {_kind(path) for path in singular - open_still} - {None}
    missing = (path for path in open_still - singular if not parts[path].expected)
    return all(path not in rare and _may_lack(path, singular, len(certain) > 1, environment) for path in missing)


def _may_lack(path: str, singular: Set[str], is_singled_out: bool, environment: Environment) -> bool:
    """Whether people leave a fact out though it is so.

    Not what an entry is about, nor what is off by default and nothing suggests; a package only where the run uses it,
    one of its own settings is stated, or facts of two kinds single the case out already.
    """
    if path.startswith(_subjects()):
        return not singular.isdisjoint(relevance().off_unless_asked.get(path, ()))
    package = distribution_of(path)
    return package is None or is_singled_out or _is_used(package, singular, environment)


def _is_used(name: str, singular: Set[str], environment: Environment) -> bool:
    """Whether the run is known to go through the package, of which only the version is not known."""
    table = relevance()
    settings = table.own_settings.get(name)
    if settings is not None and any(path.startswith(settings) for path in singular):
        return True
    if name in table.switches:
        return environment.get(table.switches[name]) is True
    framework = framework_of_distribution(name)
    if framework is None or not (framework.commands or framework.scripts):
        return False
    return bool(environment.get("training.framework") == framework.name)


def _kind(path: str) -> str | None:
    """What a fact is about: the machine, a setting, the model; None for versions and for what nearly all state."""
    if path in _COMMON:
        return None
    return _KINDS.get(path) or _KINDS.get(path.partition(".")[0])
