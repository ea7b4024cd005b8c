"""What a rule is given: one script that trains with transformers, what its own Trainers override and what it makes."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from compatcheck.files.python_syntax import Function, calls, inside, is_super, last_name, methods, nodes_of

TRAINERS = ("Trainer", "Seq2SeqTrainer")
ARGUMENTS = ("TrainingArguments", "Seq2SeqTrainingArguments")
TRL_CONFIGS = (
    *("SFTConfig", "DPOConfig", "KTOConfig", "ORPOConfig", "CPOConfig", "BCOConfig", "GRPOConfig", "RLOOConfig"),
    "RewardConfig",
)
"""The configurations of trl that are TrainingArguments of transformers with more fields."""

_CLASSES_OF = {"transformers": (*TRAINERS, *ARGUMENTS), "trl": TRL_CONFIGS}
_VERSION_CHECKS = frozenset(
    ("__version__", "is_transformers_version", "check_min_version", "signature", "get_version", "require_version")
)
LOOPS = frozenset(("train", "_inner_training_loop", "_run_epoch"))
"""The methods of the Trainer that hold its loop: where one is the user's own, it calls the others as it likes."""

_CATCHING = ("TypeError", "Exception", "BaseException")


class OwnTrainer(NamedTuple):
    """A class that goes on from the Trainer, and the methods that it or an ancestor in the same file overrides."""

    methods: Mapping[str, Function]


class Script(NamedTuple):
    """The Trainers of a script's own, and the Trainers and their arguments that it makes."""

    trainers: tuple[OwnTrainer, ...]
    calls: tuple[tuple[str, ast.Call], ...]

    def first(self, line_of: Callable[[OwnTrainer], int | None]) -> int | None:
        """The first line that shows a trait of one of the script's own Trainers."""
        return min((line for each in self.trainers if (line := line_of(each)) is not None), default=None)

    def keyword_line(self, classes: tuple[str, ...], keywords: frozenset[str]) -> int | None:
        """The first line on which one of these keywords is given to one of these classes."""
        named = (keyword for name, call in self.calls if name in classes for keyword in call.keywords)
        return min((keyword.value.lineno for keyword in named if keyword.arg in keywords), default=None)


def script_of(tree: ast.Module) -> Script | None:
    """What a file trains with, by its imports; None where it has no Trainer of transformers and makes none.

    One that asks for versions or signatures may suit any release, and what it has is not judged: None, too.
    """
    if any(_checks_versions(node) for node in nodes_of(tree)):
        return None
    bound = _binding_counts(tree)
    names, modules = _imported(tree, bound)
    trainers, made = tuple(_own_trainers(tree, names, modules, bound)), tuple(_constructor_calls(tree, names, modules))
    return Script(trainers, made) if trainers or made else None


def _checks_versions(node: ast.AST) -> bool:
    if isinstance(node, ast.ImportFrom):
        return any(each.name in _VERSION_CHECKS for each in node.names)
    name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
    return name in _VERSION_CHECKS


def _binding_counts(tree: ast.Module) -> Counter[str]:
    """How often each name is bound anywhere in a file, by an import, a definition or an assignment."""
    bound: Counter[str] = Counter()
    for node in nodes_of(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            bound.update((each.asname or each.name).partition(".")[0] for each in node.names)
        elif isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            bound[node.name] += 1
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            bound[node.id] += 1
    return bound


def _imported(tree: ast.Module, bound: Counter[str]) -> tuple[dict[str, str], set[str]]:
    """The classes by the names that a file has for them alone, and those of transformers and trl themselves."""
    names: dict[str, str] = {}
    modules: set[str] = set()
    for node in nodes_of(tree):
        if isinstance(node, ast.ImportFrom) and not node.level:
            offered = _CLASSES_OF.get((node.module or "").partition(".")[0], ())
            names |= {each.asname or each.name: each.name for each in node.names if each.name in offered}
        elif isinstance(node, ast.Import):
            modules |= {each.asname or each.name for each in node.names if each.name in _CLASSES_OF}
    return {name: known for name, known in names.items() if bound[name] == 1}, modules


def _class_of(node: ast.expr, names: Mapping[str, str], modules: set[str]) -> str | None:
    if isinstance(node, ast.Name):
        return names.get(node.id)
    if not isinstance(node, ast.Attribute) or not isinstance(node.value, ast.Name) or node.value.id not in modules:
        return None
    return node.attr if any(node.attr in offered for offered in _CLASSES_OF.values()) else None


def _own_trainers(
    tree: ast.Module, names: Mapping[str, str], modules: set[str], bound: Counter[str]
) -> Iterator[OwnTrainer]:
    """The classes that nothing in the file derives from or changes, with a Trainer for their only base."""
    changed = {
        node.value.id
        for node in nodes_of(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and isinstance(node.value, ast.Name)
    }
    found: dict[str, OwnTrainer] = {}
    parents: set[str] = set()
    for node in (each for each in nodes_of(tree) if isinstance(each, ast.ClassDef)):
        parents |= {base.id for base in node.bases if isinstance(base, ast.Name)}
        if len(node.bases) != 1 or bound[node.name] > 1 or node.decorator_list:
            continue
        base = node.bases[0]
        ancestor = found.get(base.id) if isinstance(base, ast.Name) else None
        if ancestor or _class_of(base, names, modules) in TRAINERS:
            found[node.name] = OwnTrainer({**(ancestor.methods if ancestor else {}), **methods(node)})
    yield from (trainer for name, trainer in found.items() if name not in parents | changed)


def _constructor_calls(tree: ast.Module, names: Mapping[str, str], modules: set[str]) -> Iterator[tuple[str, ast.Call]]:
    """The calls of the classes, but for those whose failure is caught."""
    tried = (each for each in nodes_of(tree) if isinstance(each, ast.Try) and any(map(_catches, each.handlers)))
    caught = inside(statement for each in tried for statement in each.body)
    for node in nodes_of(tree):
        if isinstance(node, ast.Call) and id(node) not in caught and (name := _class_of(node.func, names, modules)):
            yield name, node


def _catches(handler: ast.ExceptHandler) -> bool:
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(kind is None or last_name(kind) in _CATCHING for kind in kinds)


def undecorated(trainer: OwnTrainer, name: str) -> Function | None:
    """A method that the Trainer overrides as it stands, without a decorator that may take more."""
    own = trainer.methods.get(name)
    return own if own and not own.decorator_list else None


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
