"""Traits of a model's own code, read from its syntax tree; the code is never run."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator

_ENABLE = "gradient_checkpointing_enable"
_SETTER = "_set_gradient_checkpointing"
_HEADS = ("ForCausalLM", "ForConditionalGeneration", "LMHeadModel")


def parse_code(source: str) -> ast.Module | None:
    """The syntax tree, or ``None`` where this Python cannot parse it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)
            return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def traits_of(name: str, tree: ast.Module) -> Iterator[str]:
    """The traits that one file of code gives the model; ``name`` tells a model from a tokenizer."""
    classes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    if name.startswith("modeling_") and any(map(_checkpointing_does_nothing, classes)):
        yield "gradient-checkpointing-noop"
    if name.startswith("modeling_") and any(map(_takes_no_kwargs, classes)):
        yield "forward-takes-no-kwargs"
    if name.startswith("tokenization_") and any(map(_pad_lacks_padding_side, classes)):
        yield "tokenizer-pad-lacks-padding-side"


def _checkpointing_does_nothing(node: ast.ClassDef) -> bool:
    """The class overrides the switch with one that turns nothing on (zai-org/ChatGLM3 issue 1057)."""
    methods = {item.name: item for item in node.body if isinstance(item, ast.FunctionDef)}
    return _ENABLE in methods and _SETTER not in methods and not _turns_on(methods[_ENABLE])


def _turns_on(method: ast.FunctionDef) -> bool:
    return any(_acts_on_checkpointing(node) for statement in method.body for node in ast.walk(statement))


def _acts_on_checkpointing(node: ast.AST) -> bool:
    """An assignment to an attribute named for checkpointing, or a call or mention of what could make one."""
    if isinstance(node, ast.Attribute):
        if isinstance(node.ctx, ast.Store):
            return "checkpoint" in node.attr
        return node.attr in (_ENABLE, _SETTER, "apply")
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "setattr"


def _takes_no_kwargs(node: ast.ClassDef) -> bool:
    """A language-model head whose ``forward`` takes labels and no ``**kwargs``.

    The Trainer of transformers 4.46 and later tells by these whether the model divides the loss itself.
    """
    if not node.name.endswith(_HEADS):
        return False
    for item in node.body:
        if isinstance(item, ast.FunctionDef) and item.name == "forward":
            names = [each.arg for each in (*item.args.posonlyargs, *item.args.args, *item.args.kwonlyargs)]
            return "labels" in names and item.args.kwarg is None
    return False


def _pad_lacks_padding_side(node: ast.ClassDef) -> bool:
    """``_pad`` cannot take the argument that transformers 4.45.0 and later pass (ChatGLM3 issue 1324)."""
    for item in node.body:
        if isinstance(item, ast.FunctionDef) and item.name == "_pad":
            arguments = [*item.args.posonlyargs, *item.args.args, *item.args.kwonlyargs]
            return item.args.kwarg is None and all(each.arg != "padding_side" for each in arguments)
    return False
