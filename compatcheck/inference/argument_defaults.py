"""What arguments are worth that a call was not given: the default of the installed release of its package."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from packaging.version import Version

from compatcheck.environment import Environment, Unknown
from compatcheck.inference._releases import release_in
from compatcheck.inference.inferred import Inference, InferredFacts, Table
from compatcheck.language import marked
from compatcheck.packages.versions import contains, parse_range

CALLS = "training.calls"
_TABLE = "tables/argument-defaults"
_OF_FOUR_BITS = "bnb_4bit_"
_PRECISIONS = ("bf16", "fp16")
_LAUNCHERS_OF_THEIR_OWN = ("python", "torchrun")
"""These leave the precision to the arguments; accelerate may give one of its own."""


_WHY = {
    "transformers": marked("default of this transformers release"),
    "trl": marked("default of this TRL release"),
    "peft": marked("default of this PEFT release"),
}
_LAST_WITH = {"transformers.TrainingArguments": {"group_by_length": "5.1.0"}}
"""The last release with an argument that has no default in the table.

https://github.com/huggingface/transformers/blob/v5.2.0/src/transformers/training_args.py"""
_REPLACED_BY = {"group_by_length": "train_sampling_strategy"}
_IS_REMOVED = marked("this release no longer has the argument")
_OF_UNKNOWN_RELEASE = {
    "transformers": marked("not set, and its default depends on the transformers release"),
    "trl": marked("not set, and its default depends on the TRL release"),
    "peft": marked("not set, and its default depends on the PEFT release"),
}


class _Default(NamedTuple):
    """The value of an argument, with the packages whose releases decide; `Unknown` where one is not known."""

    argument: str
    value: object
    packages: tuple[str, ...]


def argument_defaults(view: Environment, table: Table) -> InferredFacts:
    """The facts of arguments that a call seen whole was not given, where nothing is said of them.

    A fact that several arguments state has no default where one of them is given.
    """
    known = table("argument-defaults")
    facts: Mapping[str, str] = known["facts"]
    for callee, given in view.section(CALLS).items():
        decided = {facts[name] for name in given if name in facts}
        for each in _defaults(view, callee, given, known):
            path = facts.get(each.argument)
            if path and path not in decided and view.get(path) == Unknown() and _matters(view, each.argument, path):
                decided.add(path)
                yield path, _inference(callee, each)
        for each in _removed(view, callee, known):
            path = facts.get(each.argument)
            if (
                path
                and path not in decided
                and _REPLACED_BY.get(each.argument) not in given
                and view.get(path) == Unknown()
            ):
                decided.add(path)
                yield path, _inference(callee, each)._replace(why=_IS_REMOVED)


def _removed(view: Environment, callee: str, known: Mapping[str, Any]) -> Iterator[_Default]:
    """The arguments that a class had in earlier releases and no longer has: a call that runs does not give them."""
    class_: str | None = callee
    while class_ is not None:
        package = class_.partition(".")[0]
        rows: Mapping[str, Sequence[Sequence[Any]]] = known["defaults"].get(class_, {})
        release = release_in(view, package)
        newest = max((Version(row[1]) for runs in rows.values() for row in runs), default=None)
        if release is not None and newest is not None and release <= newest:
            last = {argument: max(Version(row[1]) for row in runs) for argument, runs in rows.items()}
            last.update((argument, Version(end)) for argument, end in _LAST_WITH.get(class_, {}).items())
            yield from (_Default(argument, None, (package,)) for argument, end in last.items() if release > end)
        class_ = _base(view, class_, known["bases"])


def precision(view: Environment, table: Table) -> InferredFacts:
    """The autocast of arguments that give none: bfloat16 where their class turns it on by itself, else none.

    That there is none is sure only where no launcher and no DeepSpeed configuration brings one; what a model then
    computes in is the dtype that it was loaded in.
    """
    for callee, given in view.section(CALLS).items():
        if any(name in given for name in _PRECISIONS) or not isinstance(view.get("training.mixed_precision"), Unknown):
            continue
        for each in _defaults(view, callee, given, table("argument-defaults")):
            if each.argument != "bf16" or isinstance(each.value, Unknown):
                continue
            inference = _inference(callee, each)
            if each.value is True:
                yield "training.mixed_precision", inference._replace(value="bf16")
                if isinstance(view.get("training.dtype"), Unknown):
                    yield "training.dtype", inference._replace(value="bfloat16")
            elif _is_left_alone(view):
                yield "training.mixed_precision", inference._replace(value="no")


def _is_left_alone(view: Environment) -> bool:
    launcher = view.get("training.launcher")
    return (
        launcher in _LAUNCHERS_OF_THEIR_OWN
        and view.get("training.deepspeed") is None
        and not isinstance(view.get("environ.ACCELERATE_MIXED_PRECISION"), str)
    )


def _matters(view: Environment, argument: str, path: str) -> bool:
    """Whether the part of a training that an argument is about is in use."""
    if argument.startswith(_OF_FOUR_BITS):
        return bool(view.get("training.quantization.bits") == 4)
    return not path.startswith("training.lora.") or isinstance(view.get("training.lora"), Mapping)


def _inference(callee: str, default: _Default) -> Inference:
    sources = (f"{CALLS}.{callee}", *(f"distributions.{name}" for name in default.packages), _TABLE)
    if isinstance(default.value, Unknown):
        return Inference(default.value, str(default.value.reason), sources)
    return Inference(default.value, _WHY[default.packages[0]], sources)


def _defaults(view: Environment, callee: str, given: Collection[str], known: Mapping[str, Any]) -> Iterator[_Default]:
    """The default of each argument that a class was not given: its own, then those of its base class."""
    seen = set(given)
    class_: str | None = callee
    while class_ is not None:
        rows: Mapping[str, Sequence[Sequence[Any]]] = known["defaults"].get(class_, {})
        for argument in (each for each in rows if each not in seen):
            for default in _default(view, class_.partition(".")[0], argument, rows[argument]):
                seen.add(argument)
                yield default
        class_ = _base(view, class_, known["bases"])


def _base(view: Environment, class_: str, bases: Mapping[str, Sequence[Sequence[str]]]) -> str | None:
    """The base class of a configuration class, or None for a release in which the class is unknown."""
    release = release_in(view, class_.partition(".")[0])
    rows = bases.get(class_, ())
    found = (base for first, last, base in rows if release is None or Version(first) <= release <= Version(last))
    return next(found, None)


def _default(view: Environment, package: str, argument: str, rows: Sequence[Sequence[Any]]) -> Iterator[_Default]:
    """What an argument is worth in the release that is installed; unknown, with the reason, where that is not known."""
    values = [row[2] if len(row) > 2 else None for row in rows]
    release = release_in(view, package)
    if release is None:
        why = _OF_UNKNOWN_RELEASE[package]
        yield _Default(argument, Unknown(why), (package,))
        return
    for row, value in zip(rows, values):
        if not Version(row[0]) <= release <= Version(row[1]):
            continue
        other, needed = re.split(r"(?=[<>=])", row[3], maxsplit=1) if len(row) > 3 else ("", "")
        beside = release_in(view, other) if other else None
        if not other or (beside is not None and contains(parse_range(needed), beside)):
            yield _Default(argument, value, (package, other) if other else (package,))
