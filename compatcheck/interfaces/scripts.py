"""What a script of the user's own asks of packages, each thing with its place.

A script is followed wherever it may go: into functions inside of functions and behind conditions of its own. What
stands behind a question for what is installed, or where its failure is expected, is asked under that condition or not
at all. A name that a scope binds in several ways leads nowhere.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from compatcheck.files.python_syntax import Function, last_name
from compatcheck.interfaces.conditions import NEVER, UNTOLD
from compatcheck.interfaces.reading import _constants, _future_annotations, _Reader, _Where
from compatcheck.interfaces.summary import Ask

MAIN = "__main__"
_ASKS = re.compile(r"available|version|TYPE_CHECKING|hasattr|find_spec|signature|platform|installed", re.IGNORECASE)
"""A condition with one of these words asks what is installed."""
_EXPECTS_FAILURE = re.compile(r"raises|suppress|xfail|skip", re.IGNORECASE)
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_CALLED = frozenset(("call", "method", "super"))


class Asked(NamedTuple):
    """An ask with the names that are given by place, where an argument is one, and the line of each keyword."""

    ask: Ask
    given: tuple[str, ...] = ()
    lines: tuple[int, ...] = ()


def asked_by(tree: ast.Module, loaded: bool = False) -> list[Asked]:
    """Everything that a script asks, in the order of its lines; the tree stays as it is.

    Of code that is ``loaded`` by others, what stands behind any condition is left out: it may never be called.
    A script that is nested too deeply to be followed asks nothing.
    """
    reader = _Script(tree, loaded)
    try:
        reader.block(tree.body, _Where("", (), None, reader.aliases))
    except RecursionError:
        return []
    found = {Asked(ask, *reader.details.get(at, ())): None for at, ask in enumerate(reader.asks)}
    return sorted(found, key=lambda each: each.ask.line)


class _Script(_Reader):
    def __init__(self, tree: ast.Module, loaded: bool) -> None:
        super().__init__(MAIN, False, _future_annotations(tree))
        self.loaded = loaded
        self.constants = _constants(tree)
        self.details: dict[int, tuple[tuple[str, ...], tuple[int, ...]]] = {}
        self.unclear = {"": _ambiguous(tree.body)}

    def sides(self, test: ast.expr, where: _Where) -> tuple[Sequence[str], Sequence[str]]:
        sides = super().sides(test, where)
        if not self.loaded and any(UNTOLD in each for each in sides) and not _ASKS.search(ast.unparse(test)):
            return (), ()
        return sides

    def statement(self, node: ast.stmt, where: _Where) -> None:
        if isinstance(node, (ast.With, ast.AsyncWith)) and any(
            _EXPECTS_FAILURE.search(ast.unparse(each)) for each in node.items
        ):
            where = where.when((NEVER,))
        if isinstance(node, ast.ImportFrom) and node.level:
            return
        super().statement(node, where)
        for name in self.unclear[where.scope]:
            where.aliases.pop(name, None)

    def function(self, node: Function, where: _Where) -> None:
        for each in (*node.decorator_list, *node.args.defaults, *filter(None, node.args.kw_defaults)):
            self.expression(each, where)
        if any(_EXPECTS_FAILURE.search(ast.unparse(each)) for each in node.decorator_list):
            return
        scope = ".".join(filter(None, (where.scope, where.owner, node.name, str(node.lineno))))
        given = {each.arg for each in ast.walk(node.args) if isinstance(each, ast.arg)}
        own = given | set(_bindings(node.body))
        self.unclear[scope] = _ambiguous(node.body) | given
        aliases = {name: target for name, target in where.aliases.items() if name not in own}
        self.block(node.body, where._replace(scope=scope, aliases=aliases))

    def class_(self, node: ast.ClassDef, where: _Where) -> None:
        if any(_EXPECTS_FAILURE.search(ast.unparse(each)) for each in node.decorator_list):
            return
        for each in (*node.decorator_list, *node.bases, *(each.value for each in node.keywords)):
            self.expression(each, where)
        self.bases[node.name] = tuple(filter(None, (self.dotted(each, where) for each in node.bases)))
        scope = f"{where.scope}.{node.name}.{node.lineno}"
        self.unclear[scope] = _ambiguous(node.body)
        self.block(node.body, where._replace(scope=scope, owner=node.name, aliases=dict(where.aliases)))

    def assigned(self, node: ast.Assign, where: _Where) -> None:
        super().assigned(node, where)
        for target in node.targets:
            if isinstance(target, ast.Name) and target.id in self.unclear[where.scope]:
                self.made.pop(f"{where.scope}:{target.id}", None)
            elif isinstance(target, ast.Attribute):
                self.made.pop(f".{where.owner}.{target.attr}", None)

    def called(self, node: ast.Call, where: _Where) -> None:
        before = len(self.asks)
        super().called(node, where)
        at = len(self.asks) - 1
        if at >= before and at not in self.details and self.asks[at].kind in _CALLED:
            named = {each.arg: each.value.lineno for each in node.keywords if each.arg}
            lines = tuple(named[name] for name in sorted(named))
            self.details[at] = tuple(last_name(each) or "" for each in node.args), lines


def _ambiguous(body: Sequence[ast.stmt]) -> set[str]:
    """The names that a scope binds to more than one thing."""
    return {name for name, what in _bindings(body).items() if len(what) > 1}


def _bindings(body: Sequence[ast.stmt]) -> dict[str, dict[str, None]]:
    """What a scope binds each name to: an import's full name, or the place of anything else."""
    found: dict[str, dict[str, None]] = {}
    for node in _nodes(body):
        names: Iterator[tuple[str, str]] = iter(())
        if isinstance(node, ast.Import):
            names = (
                (each.asname or each.name.partition(".")[0], each.asname and each.name or "") for each in node.names
            )
        elif isinstance(node, ast.ImportFrom):
            names = ((each.asname or each.name, f"{node.module}.{each.name}") for each in node.names)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.ExceptHandler)) and node.name:
            names = iter([(node.name, str(node.lineno))])
        elif isinstance(node, ast.Name) and isinstance(node.ctx, (ast.Store, ast.Del)):
            names = iter([(node.id, f"{node.lineno}:{node.col_offset}")])
        for name, what in names:
            found.setdefault(name, {})[what] = None
    return found


def _nodes(body: Sequence[ast.AST]) -> Iterator[ast.AST]:
    """The nodes of a scope, without those of the scopes inside it."""
    waiting = list(body)
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, _SCOPES):
            waiting += ast.iter_child_nodes(node)
