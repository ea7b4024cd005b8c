"""The tokenizer creates what its vocabulary is read from only after the inherited ``__init__``.

From transformers 4.34.0 that ``__init__`` adds the special tokens and asks for the vocabulary, which fails with an
AttributeError such as "has no attribute 'sp_model'": https://github.com/InternLM/InternLM/issues/400

A class that adds them in a loop of its own asks for nothing where there are none, as with the published Qwen-VL; a copy
saved with a padding token has one: https://github.com/QwenLM/Qwen-VL/issues/387
"""

from __future__ import annotations

import ast
from collections.abc import Mapping

from compatcheck.files.python_syntax import Function, base_names, inside, is_self, is_super, methods, parameters
from compatcheck.project.model_files.traits._code import Code, classes

KIND = "tokenizer"
_VOCABULARY, _ADDS = "get_vocab", "_add_tokens"


def find(code: Code) -> int | None:
    for node in classes(code):
        own = methods(node)
        start = own.get("__init__")
        if "PreTrainedTokenizer" in base_names(node) and start and _VOCABULARY in own:
            inherited = _inherited_call(start)
            if inherited and _asked_too_early(node, own, inherited, _idle(code, own, inherited)):
                return inherited.lineno
    return None


def _inherited_call(start: Function) -> ast.Call | None:
    """An unconditional ``super().__init__(...)``."""
    for statement in start.body:
        call = statement.value if isinstance(statement, ast.Expr) else None
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "__init__":
            return call if is_super(call.func.value) else None
    return None


def _idle(code: Code, own: Mapping[str, Function], inherited: ast.Call) -> set[int]:
    """What lies in a loop over the tokens to add, where neither the files nor the inherited call name one."""
    named = any(keyword.arg and keyword.arg.endswith("_token") for keyword in inherited.keywords)
    if code.names_special_tokens or named or _ADDS not in own:
        return set()
    given = parameters(own[_ADDS])
    loops = (each for each in ast.walk(own[_ADDS]) if isinstance(each, ast.For))
    return inside(each for each in loops if isinstance(each.iter, ast.Name) and each.iter.id in given)


def _asked_too_early(node: ast.ClassDef, own: Mapping[str, Function], inherited: ast.Call, idle: set[int]) -> bool:
    """Whether the vocabulary reads an attribute that ``__init__`` sets only below the line of the inherited call."""
    start, line_of_call = own["__init__"], inherited.lineno
    assigned: dict[str, int] = {}
    for each in ast.walk(start):
        if isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Store) and is_self(each.value):
            assigned[each.attr] = min(each.lineno, assigned.get(each.attr, each.lineno))
    late = {name for name, line in assigned.items() if line > line_of_call}
    of_class = {target.id for item in node.body for target in _targets(item) if isinstance(target, ast.Name)}
    asked = _ADDS if _ADDS in own else _VOCABULARY
    return bool((late - of_class - _given_elsewhere(start, line_of_call)) & _read_by(own, asked, idle))


def _targets(item: ast.stmt) -> list[ast.expr]:
    if isinstance(item, ast.Assign):
        return item.targets
    return [item.target] if isinstance(item, ast.AnnAssign) and item.value is not None else []


def _given_elsewhere(start: Function, inherited: int) -> set[str]:
    """Attributes set by ``setattr`` or by a method called before the inherited one: nothing is known of them."""
    early = [each for each in ast.walk(start) if isinstance(each, ast.Call) and each.lineno < inherited]
    unclear = any(
        (isinstance(call.func, ast.Name) and call.func.id == "setattr")
        or (isinstance(call.func, ast.Attribute) and is_self(call.func.value))
        for call in early
    )
    stored = (each for each in ast.walk(start) if isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Store))
    return {each.attr for each in stored} if unclear else set()


def _read_by(own: Mapping[str, Function], method: str, idle: set[int]) -> set[str]:
    """The attributes of ``self`` that a method reads, through the class's other methods and properties as well."""
    read: set[str] = set()
    waiting, seen = [method], {method}
    while waiting:
        function = own[waiting.pop()]
        if any(isinstance(each, ast.Try) for each in ast.walk(function)):
            continue
        for each in (inner for inner in ast.walk(function) if id(inner) not in idle):
            if isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Load) and is_self(each.value):
                if each.attr in own and each.attr not in seen:
                    seen.add(each.attr)
                    waiting.append(each.attr)
                read.add(each.attr)
    return read
