"""What a rule is given: one class that goes on from the transformers Trainer, with what it overrides."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import NamedTuple

from compatcheck.facts._syntax import Function, calls, is_super, methods

_TRAINERS = ("Trainer", "Seq2SeqTrainer")
_LIBRARY = "transformers"


class OwnTrainer(NamedTuple):
    """A class and the methods that it overrides, itself or in an ancestor of the same file."""

    name: str
    methods: Mapping[str, Function]


def own_trainers(tree: ast.Module) -> list[OwnTrainer]:
    """The classes of a file whose Trainer is transformers' own, by the file's imports."""
    trainers, modules = _imported(tree)
    found: dict[str, OwnTrainer] = {}
    for node in (each for each in ast.walk(tree) if isinstance(each, ast.ClassDef)):
        for base in node.bases:
            ancestor = found.get(base.id) if isinstance(base, ast.Name) else None
            if ancestor or _is_trainer(base, trainers, modules):
                inherited = ancestor.methods if ancestor else {}
                found[node.name] = OwnTrainer(node.name, {**inherited, **methods(node)})
                break
    return list(found.values())


def _imported(tree: ast.Module) -> tuple[set[str], set[str]]:
    """The names under which a file knows the Trainers, and transformers itself."""
    trainers: set[str] = set()
    modules: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and not node.level and (node.module or "").split(".")[0] == _LIBRARY:
            trainers |= {each.asname or each.name for each in node.names if each.name in _TRAINERS}
        elif isinstance(node, ast.Import):
            modules |= {each.asname or each.name for each in node.names if each.name == _LIBRARY}
    return trainers, modules


def _is_trainer(base: ast.expr, trainers: set[str], modules: set[str]) -> bool:
    if isinstance(base, ast.Name):
        return base.id in trainers
    if not isinstance(base, ast.Attribute) or base.attr not in _TRAINERS:
        return False
    return isinstance(base.value, ast.Name) and base.value.id in modules


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
