"""Expressions are compiled only where a text may match them, and their marks leave out no match."""

from __future__ import annotations

import importlib
import pkgutil
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from compatcheck import bug_report
from compatcheck.files.lazy_patterns import LazyPattern

parser = importlib.import_module("re._parser" if sys.version_info >= (3, 11) else "sre_parse")


def lazy_patterns() -> Iterator[tuple[str, LazyPattern]]:
    for found in pkgutil.walk_packages(bug_report.__path__, f"{bug_report.__name__}."):
        for name, value in vars(importlib.import_module(found.name)).items():
            for number, each in enumerate(flat(value)):
                if isinstance(each, LazyPattern):
                    yield f"{found.name}.{name}.{number}", each


def flat(value: object) -> Iterator[object]:
    """What a constant is, or holds at any depth."""
    if isinstance(value, (tuple, list)):
        for each in value:
            yield from flat(each)
    else:
        yield value


PATTERNS = dict(lazy_patterns())


def always_has(parts: Iterable[Any], marks: tuple[str, ...], literal: str = "") -> bool:
    """Whether every text that a parsed expression matches contains one of the marks, ``literal`` standing before it."""
    for kind, value in (*parts, (None, None)):
        name = str(kind)
        if name == "LITERAL":
            literal += chr(value).lower()
            continue
        if any(mark in literal for mark in marks):
            return True
        if name in ("AT", "ASSERT_NOT"):
            continue
        before, literal = literal, ""
        inner: list[Any] = []
        if name == "SUBPATTERN":
            inner = [value[3]]
        elif name == "BRANCH":
            inner = value[1]
        elif name == "ASSERT":
            inner = [value[1]]
        elif name.endswith("REPEAT") and value[0]:
            inner = [value[2]]
        elif name == "IN" and all(str(each) == "LITERAL" for each, _ in value):
            inner = [[each] for each in value]
        if inner and all(always_has(each, marks, before) for each in inner):
            return True
    return False


@pytest.mark.parametrize("name", PATTERNS)
def test_each_match_has_a_mark(name: str) -> None:
    lazy = PATTERNS[name]
    assert lazy.marks == tuple(mark.lower() for mark in lazy.marks)
    assert always_has(parser.parse(lazy.pattern, lazy.flags), lazy.marks)


def test_marks_that_miss_a_match_are_noticed() -> None:
    for pattern, marks in ((r"torch|numpy", ("torch",)), (r"(?:torch)?\d", ("torch",)), (r"to\wch", ("torch",))):
        assert not always_has(parser.parse(pattern), marks)


def test_a_lazy_pattern_matches_as_the_expression_does() -> None:
    lazy, regex = LazyPattern(r"(NumPy) (\d)", re.I, marks=("numpy",)), re.compile(r"(NumPy) (\d)", re.I)
    for text in ("", "numpy", "numpy 1 NUMPY 2", "with NumPy 2, numpy 1"):
        assert [match.span() for match in lazy.finditer(text)] == [match.span() for match in regex.finditer(text)]
        for ours, theirs in ((lazy.search(text), regex.search(text)), (lazy.match(text), regex.match(text))):
            assert (ours and ours.groups()) == (theirs and theirs.groups())
        assert lazy.sub(r"\2", text, 1) == regex.sub(r"\2", text, count=1)


COUNTED = """
import re, sys
module = sys.modules["re._compiler" if sys.version_info >= (3, 11) else "sre_compile"]
compiled, compile_one = [], module.compile
module.compile = lambda *given: compiled.append(given) or compile_one(*given)
from compatcheck import bug_report, matrix, symptoms
matrix.load()
before, loaded = len(compiled), set(sys.modules)
text = sys.stdin.read()
symptoms.read_words(text, "-"), symptoms.read_text(text, "-", ()), bug_report.read_account(text, "-")
print(len(compiled) - before, *set(sys.modules) - loaded)
"""


@pytest.mark.parametrize(
    "text",
    [
        "After going to transformers 4.46.0 the loss is far higher, 4.45.2 was fine.\nPython 3.10, one RTX 4090, LoRA.",
        "训练 qwen2 的时候 loss 一直是 nan，torch 2.5.0，换回 2.4.1 就好了。显卡是 A100，LoRA 微调。",
    ],
)
def test_a_short_report_compiles_a_part_of_the_expressions(text: str) -> None:
    """Of some 650 expressions for reports: each costs a tenth of a millisecond, where the whole answer may cost 300."""
    done = subprocess.run([sys.executable, "-c", COUNTED], input=text, capture_output=True, text=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    count, *loaded = done.stdout.split()
    assert int(count) < 530
    assert not {"statistics", "compatcheck.project.scripts", "compatcheck.project.requirements"} & set(loaded)
