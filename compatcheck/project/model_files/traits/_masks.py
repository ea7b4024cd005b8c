"""With which arguments a model's own code calls the mask functions of transformers."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from compatcheck.files.python_syntax import calls, inside, last_name
from compatcheck.project.model_files.traits._code import Code

_FUNCTIONS = ("create_causal_mask", "create_sliding_window_causal_mask", "create_chunked_causal_mask")
_SPEAKS_OF_RELEASES = ("version", "signature", "param", "transformers")


def line_of_mask_argument(code: Code, arguments: Collection[str]) -> int | None:
    """The line of a call that surely gives one of the arguments by its name.

    A mapping that is handed over as ``**name`` counts where it is written out in the file and nothing else is done to
    it. What is tried, and what stands under a condition that asks for a release or a signature, is let be, as is a
    function that the file calls without these arguments too, or defines itself.
    """
    functions = _imported(code)
    if not functions:
        return None
    let_be = inside(filter(_asks, code.nodes))
    written = _mappings(code, let_be)
    for function in functions:
        found = [call for call in calls(code.tree, function) if isinstance(call.func, ast.Name)]
        giving = [call for call in found if not set(arguments).isdisjoint(_names(call, written))]
        sure = [call for call in giving if id(call) not in let_be]
        if sure and giving == found:
            return sure[0].lineno
    return None


def _imported(code: Code) -> list[str]:
    """The names under which the file has the functions of transformers, less those that it binds again.

    Only an import outside of functions and conditions counts: the rest is tried, or made for some releases.
    """
    names = [
        each.asname or each.name
        for node in code.tree.body
        if isinstance(node, ast.ImportFrom) and node.module == "transformers.masking_utils" and not node.level
        for each in node.names
        if each.name in _FUNCTIONS
    ]
    bound = {
        each.name for each in code.nodes if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
    }
    bound |= {each.id for each in code.nodes if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}
    return [name for name in names if name not in bound]


def _asks(node: ast.AST) -> bool:
    if isinstance(node, (ast.If, ast.IfExp)):
        condition = ast.unparse(node.test).lower()
        return any(word in condition for word in _SPEAKS_OF_RELEASES)
    return isinstance(node, ast.Try)


def _mappings(code: Code, let_be: Collection[int]) -> dict[str, set[str]]:
    """The keys of mappings that are written out, by the variable that holds them.

    Keys that are taken out anywhere do not count, nor do variables that hold something else as well.
    """
    found: dict[str, set[str]] = {}
    others: set[str] = set()
    for node in (each for each in code.nodes if isinstance(each, ast.Assign)):
        for target in node.targets:
            if isinstance(target, ast.Name) and isinstance(node.value, ast.Dict) and id(node) not in let_be:
                found.setdefault(target.id, set()).update(_constants(node.value.keys))
            elif isinstance(target, ast.Name):
                others.add(target.id)
    taken = _taken_out(code)
    return {name: keys - taken.get(name, set()) for name, keys in found.items() if name not in others}


def _taken_out(code: Code) -> dict[str, set[str]]:
    """The keys that ``name.pop("key")`` and ``del name["key"]`` take, by the variable."""
    found: dict[str, set[str]] = {}
    for call in calls(code.tree, "pop"):
        if isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name):
            found.setdefault(call.func.value.id, set()).update(_constants(call.args[:1]))
    for node in (each for each in code.nodes if isinstance(each, ast.Delete)):
        for gone in node.targets:
            if isinstance(gone, ast.Subscript) and isinstance(gone.value, ast.Name):
                found.setdefault(gone.value.id, set()).update(_constants([gone.slice]))
    return found


def _constants(nodes: Collection[ast.expr | None]) -> set[str]:
    return {each.value for each in nodes if isinstance(each, ast.Constant) and isinstance(each.value, str)}


def _names(call: ast.Call, written: dict[str, set[str]]) -> Iterator[str]:
    for keyword in call.keywords:
        if keyword.arg:
            yield keyword.arg
        else:
            yield from written.get(last_name(keyword.value) or "", ())
