"""What is cut from a source file before it is followed: bodies that never are, and nothing else."""

from __future__ import annotations

import argparse
import ast
import dataclasses
import difflib
import logging
import typing
import unittest.mock

import pytest

from compatcheck.import_check import _source

ODD = {
    "a signature of many lines": (
        "class A:\n    def f(\n        self,\n        x: int = 1,\n    ) -> int:\n        return x\n\n    y = 1\n"
    ),
    "a remark after the colon": (
        "class A:\n    def f(self):  # why: so\n        if self:\n            return 1\n    y = 1\n"
    ),
    "a body on the same line": (
        "class A:\n    def f(self): return {1: 2}\n    def g(self):\n        return 2\n    y = 1\n"
    ),
    "a text of shallow lines": (
        'class A:\n    def f(self):\n        return """\ny = 1\n    def g():\n"""\n    z = 1\nw = 1\n'
    ),
    "a text that ends on a shallow line": "class A:\n    def f(self):\n        '''\n    x\n    '''\n    z = 1\n",
    "two texts that end on shallow lines": (
        "class A:\n    def f(self):\n        '''\n    x\n    '''\n"
        "    def g(self):\n        '''\n    y\n    '''\n    z = 1\n"
    ),
    "remarks of any depth": (
        "class A:\n    def f(self):\n# one\n        a = 1\n  # two\n        return a\n    z = 1\n"
    ),
    "a bracket closed on a shallow line": "class A:\n    def f(self):\n        return g(\n    )\n    z = 1\n",
    "a class in a class": (
        "class A:\n    class B:\n        def f(self):\n            return 1\n        z = 1\n    y = 1\n"
    ),
    "a class in a function": "def f():\n    class A:\n        def g(self):\n            return 1\n    return A\n",
    "a method in a branch": "class A:\n    if True:\n        def f(self):\n            return 1\n    y = 1\n",
    "a coroutine": (
        "async def f():\n    await g()\n\nclass A:\n    async def h(self):\n        await g()\n    y = 1\n"
    ),
    "indented with tabs": "class A:\n\tdef f(self):\n\t\treturn 1\n\ty = 1\n",
    "no last line end": "class A:\n    def f(self):\n        return 1",
}
REAL = {module.__name__: module for module in (argparse, dataclasses, difflib, logging, typing, unittest.mock)}


class _Uncut(ast.NodeTransformer):
    """The same by Python's own parser alone."""

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        return self._visited(node, True)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        long = (node.end_lineno or 0) - node.lineno > 100
        if self.in_class or long:
            node.body = []
            return node
        return self._visited(node, False)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        node.body = []
        return node

    in_class = False

    def _visited(self, node: ast.AST, in_class: bool) -> ast.AST:
        before, self.in_class = self.in_class, in_class
        self.generic_visit(node)
        self.in_class = before
        return node


def shape(tree: ast.AST | None) -> tuple[str, list[int]]:
    assert tree is not None
    return ast.dump(tree), [node.lineno for node in ast.walk(tree) if isinstance(node, ast.stmt)]


@pytest.mark.parametrize("name", ODD)
def test_only_bodies_that_are_never_followed_go(name: str) -> None:
    assert shape(_source.parse(ODD[name])) == shape(_Uncut().visit(ast.parse(ODD[name])))


@pytest.mark.parametrize("name", REAL)
def test_a_module_of_the_standard_library_keeps_all_else(name: str) -> None:
    source = _source.read(REAL[name].__file__ or "")
    assert shape(_source.parse(source)) == shape(_Uncut().visit(ast.parse(source)))


@typing.no_type_check
def test_bodies_of_methods_are_not_even_parsed() -> None:
    tree = _source.parse("class A:\n    def f(self):\n        this is no Python\n\n    y = 1\n")
    assert tree.body[0].body[1].lineno == 5


def test_what_is_no_python_has_no_tree() -> None:
    assert _source.parse("this is no Python") is None
