"""What a rule is given: one script that trains with transformers, what its own Trainers override and what it makes."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from compatcheck.facts._syntax import Function, calls, inside, is_super, methods, nodes_of

TRAINERS = ("Trainer", "Seq2SeqTrainer")
ARGUMENTS = ("TrainingArguments", "Seq2SeqTrainingArguments")
OF_TRL = (
    *("SFTConfig", "DPOConfig", "KTOConfig", "ORPOConfig", "CPOConfig", "BCOConfig", "GRPOConfig", "RLOOConfig"),
    "RewardConfig",
)
"""The configurations of trl that are TrainingArguments of transformers with more fields."""

_FROM = {"transformers": (*TRAINERS, *ARGUMENTS), "trl": OF_TRL}
_ASKS = ("version", "signature", "hasattr", "fields")


class OwnTrainer(NamedTuple):
    """A class that goes on from the Trainer, and the methods that it or an ancestor in the same file overrides."""

    name: str
    methods: Mapping[str, Function]


class Script(NamedTuple):
    """The Trainers of a script's own, and the Trainers and their arguments that it makes whatever is installed."""

    trainers: tuple[OwnTrainer, ...]
    made: tuple[tuple[str, ast.Call], ...]

    def first(self, line_of: Callable[[OwnTrainer], int | None]) -> int | None:
        """The first line that shows a trait of one of the script's own Trainers."""
        return min((line for each in self.trainers if (line := line_of(each)) is not None), default=None)

    def given(self, classes: tuple[str, ...], keywords: frozenset[str]) -> int | None:
        """The first line on which one of these keywords is given to one of these classes."""
        named = (keyword for name, call in self.made if name in classes for keyword in call.keywords)
        return min((keyword.value.lineno for keyword in named if keyword.arg in keywords), default=None)


def script_of(tree: ast.Module) -> Script | None:
    """What a file trains with, by its imports; None where it has no Trainer of transformers and makes none."""
    names, modules = _imported(tree)
    trainers, made = tuple(_own_trainers(tree, names, modules)), tuple(_made(tree, names, modules))
    return Script(trainers, made) if trainers or made else None


def _imported(tree: ast.Module) -> tuple[dict[str, str], set[str]]:
    """The classes by the names under which a file knows them, and the names of transformers and trl themselves."""
    names: dict[str, str] = {}
    modules: set[str] = set()
    for node in nodes_of(tree):
        if isinstance(node, ast.ImportFrom) and not node.level:
            offered = _FROM.get((node.module or "").partition(".")[0], ())
            names |= {each.asname or each.name: each.name for each in node.names if each.name in offered}
        elif isinstance(node, ast.Import):
            modules |= {each.asname or each.name for each in node.names if each.name in _FROM}
    return names, modules


def _class_of(node: ast.expr, names: Mapping[str, str], modules: set[str]) -> str | None:
    if isinstance(node, ast.Name):
        return names.get(node.id)
    if not isinstance(node, ast.Attribute) or not isinstance(node.value, ast.Name) or node.value.id not in modules:
        return None
    return node.attr if any(node.attr in offered for offered in _FROM.values()) else None


def _own_trainers(tree: ast.Module, names: Mapping[str, str], modules: set[str]) -> Iterator[OwnTrainer]:
    found: dict[str, OwnTrainer] = {}
    for node in (each for each in nodes_of(tree) if isinstance(each, ast.ClassDef)):
        for base in node.bases:
            ancestor = found.get(base.id) if isinstance(base, ast.Name) else None
            if ancestor or _class_of(base, names, modules) in TRAINERS:
                found[node.name] = OwnTrainer(node.name, {**(ancestor.methods if ancestor else {}), **methods(node)})
                break
    yield from found.values()


def _made(tree: ast.Module, names: Mapping[str, str], modules: set[str]) -> Iterator[tuple[str, ast.Call]]:
    """The calls of the classes, but for those that are tried or hang on what is installed."""
    asking = (each for each in nodes_of(tree) if isinstance(each, ast.If) and _asks(each.test))
    guarded = inside((*asking, *(each for each in nodes_of(tree) if isinstance(each, ast.Try))))
    for call in (each for each in nodes_of(tree) if isinstance(each, ast.Call) and id(each) not in guarded):
        if name := _class_of(call.func, names, modules):
            yield name, call


def _asks(test: ast.expr) -> bool:
    return any(word in ast.unparse(test).lower() for word in _ASKS)


def takes_positional(function: Function, count: int) -> bool:
    """Whether a method can be called with so many positional arguments, ``self`` not counted."""
    given = [*function.args.posonlyargs, *function.args.args]
    return function.args.vararg is not None or len(given) > count


def calls_inherited(function: Function) -> list[ast.Call]:
    """The calls of the method that it overrides, through ``super()``."""
    return [
        call
        for call in calls(function, function.name)
        if isinstance(call.func, ast.Attribute) and is_super(call.func.value)
    ]
