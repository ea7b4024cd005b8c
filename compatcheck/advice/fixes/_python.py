"""Arguments of calls in a Python script, changed where they stand: comments and layout stay as they are."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

from compatcheck.advice.fixes._scalars import names
from compatcheck.environment import vocabulary

_CALL = re.compile(r"([\w.]+)\(\.\.\., (\w+)=([^()]+)\)")
_TWINS = {"bf16": "fp16", "fp16": "bf16"}

Apply = Callable[[str], "str | None"]


class Call(NamedTuple):
    """Code such as `from_pretrained(..., attn_implementation='sdpa')`; `...` is the value that is there."""

    function: str
    keyword: str
    value: str


def call_with(code: str) -> Call | None:
    """The call that a remedy's code is, None where it is something else."""
    found = _CALL.fullmatch(code)
    return Call(*found.groups()) if found else None


def imported(line: int, statement: str, *, from_another_package: bool) -> Apply:
    """Import a name by this statement, such as `from torch.optim import AdamW`, instead of by the one on the line."""
    new = ast.parse(statement).body[0]
    assert isinstance(new, ast.ImportFrom)
    return partial(_imported, line=line, new=new, from_another_package=from_another_package)


def renames(line: int, keyword: str) -> Iterator[Apply]:
    """The name of each keyword on the line, in the place of the old one."""
    for place in range(4):
        yield partial(_renamed, line=line, keyword=keyword, place=place)


def replacements(line: int, path: str, value: Any) -> Iterator[Apply]:
    """The value of each keyword on the line; those named like the fact come first."""
    for place in range(4):
        yield partial(_replaced, line=line, path=path, value=value, place=place)
    if path in ("training.dtype", "training.mixed_precision"):
        yield partial(_with_other_precision, line=line)


def insertions(path: str, value: Any) -> Iterator[Apply]:
    """The setting as a keyword of the call that takes it."""
    fact = vocabulary.fact_at(path)
    found = re.fullmatch(r"([\w.]+)\(\.\.\., (\w+)=(torch\.)?\{\}\)", fact.python) if fact and fact.python else None
    if found is not None:
        spelled = f"torch.{value}" if found[3] else repr(value)
        yield with_keyword(found[1], found[2], spelled)


def with_keyword(function: str, keyword: str, value: str) -> Apply:
    """Set a keyword of the only call of the function, or of the class that is derived from it by name."""

    def apply(text: str) -> str | None:
        tree = _parsed(text)
        if tree is None:
            return None
        calls = [each for each in ast.walk(tree) if isinstance(each, ast.Call) and _is_of(each, function)]
        if function == "from_pretrained":
            calls = [each for each in calls if "Tokenizer" not in ast.unparse(each.func)]
        if len(calls) != 1:
            return None
        call = calls[0]
        same = next((each for each in call.keywords if each.arg == keyword), None)
        if same is not None:
            return _with_span(text, same.value, value)
        if value.startswith("torch.") and not re.search(r"^import torch\b", text, re.M):
            value_here = f'"{value.removeprefix("torch.")}"'
        else:
            value_here = value
        return _with_argument(text, call, f"{keyword}={value_here}")

    return apply


def without(line: int, is_refused: Callable[[str, str], bool]) -> Apply:
    """Remove the keywords that are refused from the call that has one of them on this line."""

    def apply(text: str) -> str | None:
        tree = _parsed(text)
        for call in ast.walk(tree) if tree else ():
            if isinstance(call, ast.Call) and any(_is_on(line, each) for each in call.keywords):
                function = ast.unparse(call.func).rpartition(".")[2]
                refused = [each for each in call.keywords if each.arg and is_refused(function, each.arg)]
                if any(_is_on(line, each) for each in refused):
                    for each in reversed(refused):
                        text = _without_argument(text, call, each)
                    return text
        return None

    return apply


def _is_on(line: int, node: ast.keyword) -> bool:
    return node.lineno <= line <= (node.end_lineno or node.lineno)


def _parsed(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except SyntaxError:
        return None


def _is_of(call: ast.Call, function: str) -> bool:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    last = function.rpartition(".")[2]
    return name == last or (last == "TrainingArguments" and name.endswith(("TrainingArguments", "Config")))


def _keywords(text: str, line: int) -> list[ast.keyword]:
    tree = _parsed(text)
    found = [] if tree is None else [each for each in ast.walk(tree) if isinstance(each, ast.keyword) and each.arg]
    return [each for each in found if _is_on(line, each)]


def _imported(text: str, line: int, new: ast.ImportFrom, from_another_package: bool) -> str | None:
    tree = _parsed(text)
    bound = new.names[0].asname or new.names[0].name
    for node in ast.walk(tree) if tree else ():
        if isinstance(node, ast.ImportFrom) and node.lineno <= line <= (node.end_lineno or node.lineno):
            at = next((place for place, each in enumerate(node.names) if each.name == bound), None)
            stays = (node.module or "").partition(".")[0] == (new.module or "").partition(".")[0]
            if at is not None and (stays or from_another_package):
                return _with_import(text, node, at, new)
    return None


def _replaced(text: str, line: int, path: str, value: Any, place: int) -> str | None:
    keywords = _keywords(text, line)
    known = names(path)
    keywords.sort(key=lambda each: each.arg not in known)
    if place >= len(keywords):
        return None
    node = keywords[place].value
    if isinstance(node, (ast.Call, ast.Dict, ast.List, ast.Tuple)):
        return None
    old = ast.unparse(node)
    new = f"torch.{value}" if old.startswith("torch.") and isinstance(value, str) else repr(value)
    return _with_span(text, node, new)


def _renamed(text: str, line: int, keyword: str, place: int) -> str | None:
    keywords = [each for each in _keywords(text, line) if each.lineno == line]
    if place >= len(keywords):
        return None
    node = keywords[place]
    start = _offset(text, node.lineno, node.col_offset)
    assert node.arg is not None
    return text[:start] + keyword + text[start + len(node.arg) :]


def _with_other_precision(text: str, line: int) -> str | None:
    for node in _keywords(text, line):
        if node.arg in _TWINS:
            start = _offset(text, node.lineno, node.col_offset)
            return text[:start] + _TWINS[node.arg] + text[start + len(node.arg) :]
    return None


def _with_import(text: str, node: ast.ImportFrom, at: int, new: ast.ImportFrom) -> str | None:
    """The statement without the name at this place, and one of its own for it on the next line.

    None where another statement stands on the last line.
    """
    name = node.names[at]
    bound = name.asname or name.name
    own = f"from {new.module} import {new.names[0].name}" + (f" as {bound}" if bound != new.names[0].name else "")
    start, end = _offset(text, node.lineno, node.col_offset), _offset(text, *_end(node))
    if len(node.names) == 1:
        return text[:start] + own + text[end:]
    rest = text[end:].partition("\n")[0]
    if rest.strip() and not rest.lstrip().startswith("#"):
        return None
    if at + 1 < len(node.names):
        following = node.names[at + 1]
        gap = (_offset(text, name.lineno, name.col_offset), _offset(text, following.lineno, following.col_offset))
    else:
        gap = (_offset(text, *_end(node.names[at - 1])), _offset(text, *_end(name)))
    line_end, indent = end + len(rest), " " * node.col_offset
    return f"{text[: gap[0]]}{text[gap[1] : line_end]}\n{indent}{own}{text[line_end:]}"


def _with_span(text: str, node: ast.expr, new: str) -> str:
    start = _offset(text, node.lineno, node.col_offset)
    end = _offset(text, node.end_lineno or node.lineno, node.end_col_offset or node.col_offset)
    return text[:start] + new + text[end:]


def _with_argument(text: str, call: ast.Call, argument: str) -> str:
    """The call with one more argument, on a line of its own where the last one has that."""
    last = max((*call.args, *(each.value for each in call.keywords)), key=_end, default=None)
    close = _offset(text, call.end_lineno or 0, call.end_col_offset or 0) - 1
    if last is None:
        return f"{text[:close]}{argument}{text[close:]}"
    end = _offset(text, *_end(last))
    first = next((each for each in call.keywords if each.value is last), None)
    start_line, start_column = (first.lineno, first.col_offset) if first else (last.lineno, last.col_offset)
    row = text.split("\n")[start_line - 1]
    indent = row[:start_column]
    if start_line != call.lineno and not indent.strip():
        return f"{text[:end]},\n{indent}{argument}{text[end:]}"
    return f"{text[:end]}, {argument}{text[end:]}"


def _without_argument(text: str, call: ast.Call, gone: ast.keyword) -> str:
    """The call without an argument, and without the lines that it has for itself.

    Arguments behind it may be gone already.
    """
    start, end = _offset(text, gone.lineno, gone.col_offset), _offset(text, *_end(gone))
    ends = (*map(_end, call.args), *map(_end, call.keywords))
    before = max((each for each in ends if each < _end(gone)), default=None)
    comma = re.compile(r"\s*,[ \t]*").match(text, end)
    after = comma.end() if comma else end
    line_start = text.rfind("\n", 0, start) + 1
    rest = text[after:].partition("\n")[0]
    if not text[line_start:start].strip() and (not rest.strip() or rest.startswith("#")):
        return text[:line_start] + text[after + len(rest) + 1 :]
    if comma and not text[after:].lstrip().startswith(")"):
        return (text[:start] if rest.strip() else text[:start].rstrip(" ")) + text[after:]
    return text[: _offset(text, *before) if before else start] + text[end:]


def _end(node: ast.expr | ast.stmt | ast.alias | ast.keyword) -> tuple[int, int]:
    return node.end_lineno or node.lineno, node.end_col_offset or node.col_offset


def _offset(text: str, line: int, column: int) -> int:
    """The index in the text of a position that `ast` gives in bytes of UTF-8."""
    lines = text.split("\n")
    before = sum(len(each) + 1 for each in lines[: line - 1])
    return before + len(lines[line - 1].encode()[:column].decode())
