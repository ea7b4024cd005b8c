"""What holds where a function of a package returns true, such as ``is_torchao_available``, by the paths of its text."""

from __future__ import annotations

import ast
from collections.abc import Sequence, Set

from compatcheck.files.python_syntax import Function
from compatcheck.interfaces.conditions import (
    AVAILABLE,
    NEVER,
    UNTOLD,
    Names,
    atoms_of,
    distribution,
    opposite,
    version_in,
)

Atoms = tuple[str, ...]


def returned(node: Function, names: Names) -> Atoms:
    """What holds wherever a function that is given nothing returns true; of one with a default version, that version.

    With ``?`` where more than that has to hold; empty where nothing can be read.
    """
    given = _defaults(node)
    if given is None:
        return ()
    least = next((value for name, value in given.items() if "min" in name and "version" in name), None)
    available = AVAILABLE.fullmatch(node.name.lower())
    if least is not None and available and (version := version_in(least, names)):
        return (f"{distribution(available[1])}>={version}",)
    paths = _Paths({**names, **given}, _stored_once(node))
    paths.follow(node.body, ())
    first, *others = dict.fromkeys(paths.true) or [()]
    shared = [atom for atom in first if all(atom in path for path in others)]
    if all(atom == UNTOLD for atom in shared):
        return ()
    return tuple(dict.fromkeys([*shared, UNTOLD] if others else shared))


def _stored_once(node: Function) -> frozenset[str]:
    stored = [each.id for each in ast.walk(node) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)]
    return frozenset(name for name in stored if stored.count(name) == 1)


def _defaults(node: Function) -> dict[str, ast.expr] | None:
    """What the parameters are where nothing is given; None where one has to be."""
    placed = [*node.args.posonlyargs, *node.args.args]
    by_name = {each.arg: value for each, value in zip(node.args.kwonlyargs, node.args.kw_defaults) if value}
    if len(node.args.defaults) < len(placed) or len(by_name) < len(node.args.kwonlyargs):
        return None
    return {**dict(zip((each.arg for each in placed), node.args.defaults)), **by_name}


class _Paths:
    """Follows a function through its branches; ``true`` is what holds on each path that may return true."""

    def __init__(self, values: dict[str, ast.expr], stored_once: Set[str]) -> None:
        self.values, self.stored_once = values, stored_once
        self.true: list[Atoms] = []

    def follow(self, body: Sequence[ast.stmt], held: Atoms) -> Atoms | None:
        """What holds behind these statements; None where nothing gets there."""
        for node in body:
            after = self._after(node, held)
            if after is None:
                return None
            held = after
        return held

    def _after(self, node: ast.stmt, held: Atoms) -> Atoms | None:
        if isinstance(node, ast.Return):
            self._return(node, held)
            return None
        if isinstance(node, ast.Raise):
            return None
        if isinstance(node, ast.If):
            atoms = atoms_of(node.test, self.values)
            sides = ((node.body, atoms), (node.orelse, opposite(atoms)))
            return _shared([self.follow(body, (*held, *more)) for body, more in sides if NEVER not in more])
        if isinstance(node, ast.Try):
            ends = [self.follow([*node.body, *node.orelse], held)]
            ends += [self.follow(each.body, held) for each in node.handlers]
            return _shared(ends)
        if isinstance(node, (ast.For, ast.While, ast.With, ast.Match)):
            for each in ast.walk(node):
                if isinstance(each, ast.Return):
                    self.true.append((*held, UNTOLD))
        elif isinstance(node, ast.Assign):
            self._assign(node)
        return held

    def _return(self, node: ast.Return, held: Atoms) -> None:
        atoms = atoms_of(node.value, self.values) if node.value else (NEVER,)
        if NEVER not in atoms:
            self.true.append((*held, *atoms))

    def _assign(self, node: ast.Assign) -> None:
        for target in node.targets:
            for each in ast.walk(target):
                if isinstance(each, ast.Name):
                    self.values.pop(each.id, None)
            if isinstance(target, ast.Name) and target.id in self.stored_once:
                self.values[target.id] = node.value


def _shared(ends: Sequence[Atoms | None]) -> Atoms | None:
    """What holds on every path that goes on; None where none does."""
    going = list(dict.fromkeys(each for each in ends if each is not None))
    if len(going) < 2:
        return going[0] if going else None
    return (*(atom for atom in going[0] if all(atom in each for each in going)), UNTOLD)
