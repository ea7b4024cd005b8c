"""Which files hold a Trainer of the user's own, and the traits that the rules of this folder find there."""

from __future__ import annotations

import ast
import functools
import importlib
import os
from collections.abc import Iterator, Sequence
from types import ModuleType

from compatcheck.errors import InputError
from compatcheck.facts._several import listed
from compatcheck.facts._syntax import parse_code
from compatcheck.facts._text import read_text
from compatcheck.facts.trainer_code._trainers import OwnTrainer, own_trainers
from compatcheck.model import Facts, Location

KIND = "trainer"
TITLE = "a script with a Trainer of its own"
_LARGEST = 1 << 20
_MARKS = ("class ", "Trainer", "transformers")


@functools.cache
def rules() -> tuple[ModuleType, ...]:
    folder = os.path.dirname(os.path.abspath(__file__))
    names = sorted(name[:-3] for name in os.listdir(folder) if name.endswith(".py") and not name.startswith("_"))
    return tuple(importlib.import_module(f"compatcheck.facts.trainer_code.{name}") for name in names)


def recognised(path: str) -> bool:
    """Whether a file is Python that makes a Trainer of its own; raises `InputError` where it cannot be read."""
    if not path.endswith(".py"):
        return False
    text = read_text(path, _LARGEST)
    return all(mark in text for mark in _MARKS) and bool(own_trainers(parse_code(text) or ast.Module([], [])))


def met(path: str) -> bool:
    """As `recognised`, of a file that nobody named: one that cannot be read is none of ours."""
    try:
        return recognised(path)
    except InputError:
        return False


def traits_in(text: str) -> dict[str, int] | None:
    """The traits of the Trainers in a piece of code, each with its line; None where it has none or cannot be parsed."""
    tree = parse_code(text) if all(mark in text for mark in _MARKS) else None
    trainers = own_trainers(tree) if tree else []
    return dict(_found(trainers)) if trainers else None


def _found(trainers: Sequence[OwnTrainer]) -> Iterator[tuple[str, int]]:
    for rule in rules():
        lines = [line for trainer in trainers if (line := rule.find(trainer)) is not None]
        if lines:
            yield rule.TRAIT, min(lines)


def read(paths: Sequence[str]) -> Facts:
    """``trainer.traits`` with the line of each; where several files differ, they are only ``trainer.suspected``.

    Raises `InputError` where one cannot be read.
    """
    found = {path: traits_in(read_text(path, _LARGEST)) or {} for path in paths}
    if not found:
        return Facts({})
    locations: dict[str, Location] = {}
    for path, traits in found.items():
        for trait, line in traits.items():
            locations.setdefault(f"trainer.traits.{trait}", Location(path, line))
    seen = sorted(path.rpartition(".")[2] for path in locations)
    if all(sorted(traits) == seen for traits in found.values()):
        return Facts({"trainer": {"traits": seen}}, {}, locations)
    why = f"there are {len(found)} scripts with a Trainer of their own, name the one that is meant: "
    return Facts({"trainer": {"suspected": seen}}, {"trainer.traits": why + listed(list(found))}, locations)
