"""What a script takes from libraries: its imports, the attributes it reads and the calls it makes, by their place."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

_ASKS = re.compile(r"available|version|TYPE_CHECKING|hasattr|find_spec|signature|platform", re.IGNORECASE)
"""A condition with one of these words asks what is installed."""

_EXPECTS_FAILURE = re.compile(r"raises|suppress|xfail|skip", re.IGNORECASE)
_CAUGHT = {"ImportError", "ModuleNotFoundError", "AttributeError", "TypeError", "Exception", "BaseException"}

Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
Scope = ast.Module | ast.ClassDef | Function


class Reference(NamedTuple):
    """A module and the attributes that lead from it to what is meant; the import itself takes the first ``bound``."""

    module: str
    chain: tuple[str, ...] = ()
    bound: int = 0


class Keyword(NamedTuple):
    name: str
    line: int


class Use(NamedTuple):
    """One thing that a script takes from a library, on the lines from ``line`` to ``end``.

    An import has the ``statement`` that is to be run. A call has its arguments. A ``method`` is called on an object,
    and a ``member`` is read of one, whose class is that of ``reference`` without the last attribute.
    """

    kind: Literal["import", "attribute", "call", "method", "member"]
    line: int
    end: int
    reference: Reference
    statement: str = ""
    positional: int = 0
    keywords: tuple[Keyword, ...] = ()


class _Binding(NamedTuple):
    """What a name is bound to: something imported, an object that ``made`` made, or neither."""

    imported: Reference | None = None
    made: ast.Call | None = None
    guarded: bool = False


class _Place(NamedTuple):
    """A node with the scopes it is in, the innermost last, and whether a failure there is expected."""

    node: ast.AST
    scopes: tuple[Scope, ...]
    guarded: bool


def read_uses(text: str) -> list[Use]:
    """The unguarded uses of libraries in the text of a script. Raises `SyntaxError`."""
    places = list(_places(ast.parse(text), (), False))
    names = _bindings(places)
    uses: dict[Use, None] = {}
    inner = {
        id(place.node.value)
        for place in places
        if isinstance(place.node, ast.Attribute) and names.reference(place.node, place.scopes) is not None
    }
    inner |= {id(place.node.func) for place in places if isinstance(place.node, ast.Call)}
    replaced = set(_replaced(places, names))
    for place in places:
        if place.guarded:
            continue
        for use in _uses(place, names, id(place.node) in inner):
            if use.kind == "import" or not replaced & set(_prefixes(use.reference)):
                uses[use] = None
    return sorted(uses, key=lambda use: (use.line, use.end, use.kind, use.reference))


def _replaced(places: Sequence[_Place], names: _Names) -> Iterator[Reference]:
    """Classes and modules of which a test replaces an attribute."""
    for node, scopes, _ in places:
        if isinstance(node, ast.Call) and node.args and ast.unparse(node.func).endswith(("patch.object", ".setattr")):
            reference = names.reference(node.args[0], scopes)
            if reference is not None:
                yield reference


def _prefixes(reference: Reference) -> Iterator[Reference]:
    for length in range(len(reference.chain) + 1):
        yield reference._replace(chain=reference.chain[:length])


def _uses(place: _Place, names: _Names, is_inner: bool) -> Iterator[Use]:
    node = place.node
    kind: Literal["attribute", "member"]
    if isinstance(node, ast.Import | ast.ImportFrom):
        yield from _imports(node)
    elif isinstance(node, ast.Call):
        yield from _call(node, place.scopes, names)
    elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load) and not is_inner:
        reference, kind = names.reference(node, place.scopes), "attribute"
        if reference is None:
            reference, kind = names.member(node, place.scopes), "member"
        if reference is not None:
            yield Use(kind, node.lineno, node.end_lineno or node.lineno, reference)


def _imports(node: ast.Import | ast.ImportFrom) -> Iterator[Use]:
    end = node.end_lineno or node.lineno
    for alias in node.names:
        if isinstance(node, ast.Import):
            yield Use("import", node.lineno, end, Reference(alias.name), f"import {alias.name}")
        elif not node.level and node.module and node.module != "__future__" and alias.name != "*":
            statement = f"from {node.module} import {alias.name}"
            yield Use("import", node.lineno, end, Reference(node.module, (alias.name,), 1), statement)


def _call(node: ast.Call, scopes: tuple[Scope, ...], names: _Names) -> Iterator[Use]:
    if any(isinstance(each, ast.Starred) for each in node.args) or any(each.arg is None for each in node.keywords):
        return
    kind: Literal["call", "method"] = "call"
    reference = names.reference(node.func, scopes)
    if reference is None:
        kind, reference = "method", names.member(node.func, scopes)
    if reference is not None:
        keywords = tuple(Keyword(each.arg, each.lineno) for each in node.keywords if each.arg)
        end = node.end_lineno or node.lineno
        yield Use(kind, node.lineno, end, reference, positional=len(node.args), keywords=keywords)


class _Names(NamedTuple):
    """What each scope binds."""

    bound: dict[int, dict[str, list[_Binding]]]

    def reference(self, node: ast.expr, scopes: tuple[Scope, ...]) -> Reference | None:
        """What of a library a dotted name means, None for anything else."""
        chain: list[str] = []
        while isinstance(node, ast.Attribute):
            chain.append(node.attr)
            node = node.value
        binding = self._only(node, scopes)
        if binding is None or binding.imported is None or binding.guarded:
            return None
        found = binding.imported
        return found._replace(chain=(*found.chain, *reversed(chain)))

    def member(self, node: ast.expr, scopes: tuple[Scope, ...]) -> Reference | None:
        """What of a library an attribute of an object is, if the name of the object is only ever bound to that one."""
        if not isinstance(node, ast.Attribute) or not isinstance(node.value, ast.Name):
            return None
        binding = self._only(node.value, scopes)
        made = self.reference(binding.made.func, scopes) if binding is not None and binding.made is not None else None
        return made._replace(chain=(*made.chain, node.attr)) if made is not None else None

    def _only(self, node: ast.expr, scopes: tuple[Scope, ...]) -> _Binding | None:
        if not isinstance(node, ast.Name):
            return None
        for scope in reversed(scopes):
            if isinstance(scope, ast.ClassDef) and scope is not scopes[-1]:
                continue
            found = self.bound.get(id(scope), {}).get(node.id)
            if found:
                return found[0] if all(each == found[0] for each in found) else None
        return None


def _bindings(places: Sequence[_Place]) -> _Names:
    names = _Names({})
    for node, scopes, guarded in places:
        inside: tuple[Scope, ...] = scopes
        found: list[tuple[str, _Binding]] = []
        match node:
            case ast.Import():
                for alias in node.names:
                    whole = alias.name if alias.asname else alias.name.partition(".")[0]
                    found.append((alias.asname or whole, _Binding(Reference(whole), guarded=guarded)))
            case ast.ImportFrom():
                for alias in node.names:
                    outside = Reference(node.module or "", (alias.name,), 1) if not node.level else None
                    found.append((alias.asname or alias.name, _Binding(outside, guarded=guarded)))
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call() as call):
                found.append((name, _Binding(made=call)))
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                found.append((node.name, _Binding()))
            case ast.arg():
                found.append((node.arg, _Binding()))
            case ast.ExceptHandler(name=str() as name) | ast.MatchAs(name=str() as name):
                found.append((name, _Binding()))
            case ast.Name(ctx=ast.Store() | ast.Del()):
                found.append((node.id, _Binding()))
        for name, binding in found:
            names.bound.setdefault(id(inside[-1]), {}).setdefault(name, []).append(binding)
    return names


def _places(node: ast.AST, scopes: tuple[Scope, ...], guarded: bool) -> Iterator[_Place]:
    """Every node below this one with its scopes; what a plain assignment of a call stores is its own place."""
    if isinstance(node, ast.Module):
        for each in node.body:
            yield from _places(each, (node,), guarded)
        return
    yield _Place(node, scopes, guarded)
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
        yield from _scope_places(node, scopes, guarded)
        return
    for field, value in ast.iter_fields(node):
        stored = isinstance(node, ast.Assign) and field == "targets" and _is_made(node)
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, ast.AST) and not stored:
                yield from _places(each, scopes, guarded or _guards(node, field))


def _scope_places(node: ast.ClassDef | Function, scopes: tuple[Scope, ...], guarded: bool) -> Iterator[_Place]:
    decorators = [] if isinstance(node, ast.Lambda) else node.decorator_list
    expected = guarded or any(_EXPECTS_FAILURE.search(ast.unparse(each)) for each in decorators)
    for each in decorators:
        yield from _places(each, scopes, guarded)
    if isinstance(node, ast.ClassDef):
        for outer in (*node.bases, *node.keywords):
            yield from _places(outer, scopes, guarded)
    else:
        for default in (*node.args.defaults, *filter(None, node.args.kw_defaults)):
            yield from _places(default, scopes, guarded)
        for argument in ast.walk(node.args):
            if isinstance(argument, ast.arg):
                yield _Place(argument, (*scopes, node), expected)
    for inner in [node.body] if isinstance(node, ast.Lambda) else node.body:
        yield from _places(inner, (*scopes, node), expected)


def _is_made(node: ast.Assign) -> bool:
    return len(node.targets) == 1 and isinstance(node.targets[0], ast.Name) and isinstance(node.value, ast.Call)


def _guards(node: ast.AST, field: str) -> bool:
    """Whether a failure in this part of a statement is expected, or asked about beforehand."""
    match node:
        case ast.If() | ast.IfExp():
            return field != "test" and bool(_ASKS.search(ast.unparse(node.test)))
        case ast.Try():
            return field in {"body", "handlers"} and any(_catches(each) for each in node.handlers)
        case ast.With() | ast.AsyncWith():
            return field == "body" and any(_EXPECTS_FAILURE.search(ast.unparse(each)) for each in node.items)
    return False


def _catches(handler: ast.ExceptHandler) -> bool:
    if handler.type is None:
        return True
    return bool(_CAUGHT & {each.id for each in ast.walk(handler.type) if isinstance(each, ast.Name)})


def is_library(module: str) -> bool:
    """Whether a module may come from a package: neither Python's own nor one that lies beside the scripts."""
    top = module.partition(".")[0]
    return top not in sys.stdlib_module_names and top not in {"tests", "test", "utils", "examples", "scripts", "src"}
