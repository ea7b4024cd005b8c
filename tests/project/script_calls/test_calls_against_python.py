"""What is read of a script agrees with what Python does: small random scripts are read, and run with stubs."""

from __future__ import annotations

import contextlib
import random
import re
import sys
import types
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from compatcheck.project.python_values import Open
from compatcheck.project.script_calls.calls import Call
from compatcheck.project.script_calls.reader import read_calls_in

HEAD = """\
import functools
import lib
from transformers import TrainingArguments
a, b, c = 1, 2, 3
d = {"x": 1}
e = dict(y=2, z=a)
p = [1]
q = p
class C:
    k = 5
    def __init__(self, x=1):
        self.x = x
        self.d = {"x": x}
    def set(self, x):
        self.x = x
        return self
    @property
    def more(self):
        return self.x
o = C()
r = o
def f(x, y=a, *rest, **others):
    return x
g = f
"""
NAMES = {
    "n": "abc",
    "n2": "abc",
    "m": "de",
    "m2": "de",
    "l": "pq",
    "l2": "pq",
    "o": "or",
    "o2": "or",
    "f": "fg",
    "f2": "fg",
}
EXPRESSIONS = (
    *("{n}", "{k}", "{n} + {k}", "-{n}", "not {n}", "{m}.get('x', 7)", "{m}.get('w')", "len({l})", "{o}.x", "{o}.more"),
    *("{n} if {t} else {k}", "({n} or {k})", "({n} and {k})", "{f}({n})", "{f}({n}, y={k})", "lib.number()"),
    *("max({n}, {k})", "getattr({o}, 'x')", "int(str({k}))", "(lambda x: x)({n})", "functools.partial({f}, {n})()"),
    *("{o}.set({n}).x", "C({n}).x", "C.k", "{l}[0]", "{m}['x']", "sum([{n}])", "{o}.d['x']"),
)
TESTS = ("{n} > {k}", "{n} == {k}", "lib.maybe()", "'x' in {m}", "{n} is None", "not {l}", "lib.maybe() and {n}", "{m}")
SIMPLE = (
    *("{n} = {v}", "{n} += {k}", "{n}, {n2} = {v}, {n}", "{m}['x'] = {v}", "{m}['y'] = {n}", "{m}.update(x={v})"),
    *("{m} = {{**{m2}, 'x': {v}}}", "{m} = {m2}", "{m} = dict({m2}, z={v})", "{m}.pop('x', None)", "{m} = {m2}.copy()"),
    *("{m}.setdefault('w', {v})", "del {n}", "{l}.append({v})", "{l} += [{v}]", "{l} = {l2} + [{v}]", "{l} = {l2}"),
    *(
        "{l} = [x + 1 for x in {l2} if x > 1]",
        "{l}.clear()",
        "{o}.x = {v}",
        "{o} = C({v})",
        "{o}.set({v})",
        "{o} = {o2}",
    ),
    *(
        "lib.change({m})",
        "lib.change({o}.__dict__)",
        "lib.change({l})",
        "lib.call({f})",
        "lib.call({o}.set)",
        "{o}.d = {m}",
    ),
    *("{f} = {f2}", "{f} = lambda x, y=2, *z, **w: {n}", "lib.fail()", "raise ValueError", "{m}.update(vars({o}))"),
    *("{n} = {v} if {t} else {k}", "lib.call(lambda: {m}.update(x={k}))", "{m} |= {m2}", "C.k = {v}", "{f}({v})"),
    *(
        "setattr({o}, 'x', {v})",
        "{m} = {{'x': {v}, 'y': {l}}}",
        "{n}: int = {v}",
        "assert {t}",
        "global {n}; {n} = {v}",
    ),
    *("TrainingArguments(x={v}, **{m})", "TrainingArguments(a={n}, l={l}, m={m})", "{n} = (c := {v})", "{m} = {o}.d"),
    *(
        "TrainingArguments(x={o}.x, y={v})",
        "TrainingArguments(z={m}, **lib.mapping())",
        "TrainingArguments(**vars({o}))",
    ),
)
BLOCKS = (
    *("if {t}:", "for {n} in list({l}):", "for i in range(3):", "for {n} in lib.numbers():", "while lib.maybe():"),
    *(
        "with lib.context():",
        "def {f}(x, y={n}, *z, **w):",
        "try:",
        "for {n} in (1, 2):",
        "for {n} in list({m}.values()):",
    ),
)
LEAVING = ("return {v}", "break", "continue", "return", "if lib.maybe(): return {v}", "if lib.maybe(): break")


ERRORS = (TypeError, ValueError, NameError, KeyError, IndexError, AttributeError, AssertionError, RecursionError)


SOMETHING = "an object, or what is nested too deeply"


class Writer:
    """Writes a random script."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._left = 24

    def script(self) -> str:
        lines = self._block("", "")
        if self._random.random() < 0.5:
            lines += ["def main(x=a):", *self._block("    ", "f"), "main()"]
        return HEAD + "\n".join([*lines, "TrainingArguments(a=a, b=b, p=p, **d)", ""])

    def _filled(self, template: str, depth: int = 1) -> str:
        fields = {letter: self._random.choice(names) for letter, names in NAMES.items()}
        fields |= {f"{letter}2": self._random.choice(names) for letter, names in NAMES.items()}
        fields["k"] = str(self._random.randrange(4))
        if "{v}" in template:
            fields["v"] = self._filled(self._random.choice(EXPRESSIONS), depth - 1) if depth else fields["n"]
        if "{t}" in template:
            fields["t"] = self._filled(self._random.choice(TESTS), depth - 1) if depth else "lib.maybe()"
        return template.format(**fields)

    def _block(self, indent: str, inside: str) -> list[str]:
        lines: list[str] = []
        for _ in range(self._random.randrange(1, 6)):
            self._left -= 1
            if self._left < 0:
                break
            kind = self._random.randrange(10)
            if kind >= 7 and len(indent) < 12:
                lines += self._compound(indent, inside)
            elif kind == 0 and inside:
                lines += self._leaving(indent, inside)
            else:
                lines.append(indent + self._filled(self._random.choice(SIMPLE)))
        return lines or [f"{indent}pass"]

    def _leaving(self, indent: str, inside: str) -> list[str]:
        word = self._random.choice(LEAVING)
        fits = "f" in inside if "return" in word else "l" in inside
        return [indent + self._filled(word)] if fits else []

    def _compound(self, indent: str, inside: str) -> list[str]:
        head = self._filled(self._random.choice(BLOCKS))
        deeper = f"{indent}    "
        within = "f" if head.startswith("def") else inside
        if head.startswith(("for", "while")):
            within += "l"
        lines = [indent + head, *self._block(deeper, within)]
        other = self._random.random() < 0.5
        if head == "try:":
            lines += [f"{indent}except ValueError:", *self._block(deeper, inside)]
            last = [line for line in self._block(deeper, "") if "TrainingArguments" not in line]
            lines += [f"{indent}finally:", *last, f"{deeper}pass"] if other else []
        elif head.startswith(("if", "for", "while")) and other:
            lines += [f"{indent}else:", *self._block(deeper, inside)]
        elif head.startswith("def") and other:
            lines.append(f"{indent}{self._filled('{n} = {f}({v})')}")
        return lines


class Lib(types.ModuleType):
    """Code that is not read: it answers and changes what it is given as a seed has it."""

    def __init__(self, seed: int) -> None:
        super().__init__("lib")
        self._random = random.Random(seed)
        self._left = 40

    def maybe(self) -> bool:
        self._left -= 1
        return self._left > 0 and self._random.random() < 0.5

    def number(self) -> int:
        return self._random.randrange(4)

    def numbers(self) -> list[int]:
        return [self.number() for _ in range(self._random.randrange(3))]

    def mapping(self) -> dict[str, int]:
        return {"w": self.number()}

    def change(self, value: Any) -> None:
        if isinstance(value, dict) and self.maybe():
            value["x"] = 77
        elif isinstance(value, list) and self.maybe():
            value.append(77)

    def call(self, function: Any) -> None:
        self._left -= 5
        if self.maybe():
            with contextlib.suppress(TypeError):
                function() if getattr(function, "__name__", "") == "<lambda>" else function(self.number())

    def fail(self) -> None:
        if self.maybe():
            raise ValueError

    @contextlib.contextmanager
    def context(self) -> Iterator[None]:
        yield


class Recorded:
    def __init__(self) -> None:
        self.calls: list[tuple[int, Mapping[str, object]]] = []

    def __call__(self, **given: object) -> Any:
        frame = sys._getframe(1)
        self.calls.append((frame.f_lineno, {name: plain(value) for name, value in given.items()}))
        return types.SimpleNamespace()


def plain(value: Any, depth: int = 5) -> object:
    if isinstance(value, (list, tuple)) and depth:
        return [plain(each, depth - 1) for each in value]
    if isinstance(value, dict) and depth:
        return {key: plain(each, depth - 1) for key, each in value.items()}
    return value if isinstance(value, (int, str, type(None))) else SOMETHING


def run(code: str, seed: int) -> tuple[list[tuple[int, Mapping[str, object]]], bool]:
    """The calls that Python makes, and whether it came to the end."""
    recorded = Recorded()
    transformers = types.ModuleType("transformers")
    transformers.TrainingArguments = recorded  # type: ignore[attr-defined]
    with pytest.MonkeyPatch.context() as patched:
        patched.setitem(sys.modules, "lib", Lib(seed))
        patched.setitem(sys.modules, "transformers", transformers)
        limit = sys.getrecursionlimit()
        sys.setrecursionlimit(250)
        try:
            exec(compile(code, "train.py", "exec"), {"__name__": "__main__"})
        except ERRORS:
            return recorded.calls, False
        finally:
            sys.setrecursionlimit(limit)
    return recorded.calls, True


def agrees(known: object, made: object) -> bool:
    if isinstance(known, (Open, Call)) or made == SOMETHING:
        return True
    if isinstance(known, list) and isinstance(made, list):
        return len(known) == len(made) and all(map(agrees, known, made))
    if isinstance(known, dict) and isinstance(made, dict):
        return made.keys() <= known.keys() and all(agrees(known[key], made.get(key)) for key in known)
    return type(known) is type(made) and known == made


def fits(call: Call, made: Mapping[str, object]) -> bool:
    """Whether a call that is read may be the one that Python made."""
    if not (call.gap or made.keys() <= call.keywords.keys()):
        return False
    return all(
        isinstance(value, Open) if name not in made else agrees(value, made[name])
        for name, value in call.keywords.items()
    )


@pytest.mark.parametrize("seed", range(200))
def test_no_value_is_other_than_what_python_has(seed: int) -> None:
    code = Writer(seed).script()
    try:
        compile(code, "train.py", "exec")
    except SyntaxError:
        return
    calls = [call for call in read_calls_in(code, "train.py").calls if call.callee == "transformers.TrainingArguments"]
    for answers in range(3):
        made, ended = run(code, answers)
        for line, keywords in made:
            assert any(call.at.line == line and fits(call, keywords) for call in calls), (code, line, keywords, calls)
        for call in calls:
            certain = ended and not call.doubt and not re.search(r"\b(for|while|try)\b", code)
            assert not certain or any(line == call.at.line and fits(call, each) for line, each in made), (code, call)
