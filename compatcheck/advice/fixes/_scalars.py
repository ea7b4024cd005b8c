"""A scalar on a known line of YAML, JSON, TOML or a shell script, replaced or added; all else stays as it is."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from compatcheck.environment import vocabulary

_PAIR = re.compile(
    r"(?P<head>(?P<quote>[\"']?)(?P<key>[\w.-]+)(?P=quote)\s*(?P<sign>[:=])\s*)"
    r"(?P<value>\"(?:[^\"\\]|\\.)*\"|'[^']*'|[^\s,#{}\[\]]+)"
)
_FLAG = re.compile(r"(?P<head>--(?P<key>[\w.-]+)(?:=|[ \t]+))(?P<value>\"[^\"]*\"|'[^']*'|(?!-)[^\s\\]+)")
_TRUE, _FALSE = ("true", "True", "yes", "on"), ("false", "False", "no", "off")
_TWINS = {"bf16": "fp16", "fp16": "bf16"}


def is_shell(file: str) -> bool:
    return file.endswith((".sh", ".bash", ".slurm", ".sbatch"))


def replacements(file: str, line: int, path: str, value: Any) -> Iterator[Callable[[str], str | None]]:
    """The value of each key on the line; keys that are named like the fact come first."""
    pattern = _FLAG if is_shell(file) else _PAIR
    for place in range(4):
        yield partial(_replaced, pattern=pattern, line=line, path=path, value=value, place=place)
    if path in ("training.dtype", "training.mixed_precision"):
        yield partial(_with_other_precision, pattern=pattern, line=line)


def insertions(file: str, path: str, value: Any) -> Iterator[Callable[[str], str | None]]:
    """The setting under each name that it may have in a file of this kind."""
    fact = vocabulary.fact_at(path)
    if file.endswith(".json"):
        if path.startswith("training.deepspeed."):
            keys = fact.deepspeed if fact and fact.deepspeed else path.removeprefix("training.deepspeed.")
            yield partial(_with_json, keys=keys.split("."), value=value)
        return
    for name in names(path):
        if is_shell(file):
            yield partial(_with_flag, name=name, value=value)
        elif file.endswith((".yaml", ".yml")):
            yield partial(_with_line, line=f"{name}: {_spelled(value, '')}")


def with_key(key: str, value: Any) -> Callable[[str], str | None]:
    """The value of a key that stands once in a JSON."""

    def apply(text: str) -> str | None:
        found = list(re.finditer(rf"(\"{re.escape(key)}\"\s*:\s*)(\"[^\"]*\"|[\w.+-]+)", text))
        if len(found) != 1:
            return None
        return text[: found[0].start(2)] + json.dumps(value) + text[found[0].end(2) :]

    return apply


def exported(name: str, value: str) -> Callable[[str], str | None]:
    """An `export` of the variable: its line with the new value, else a line before the first command."""

    def apply(text: str) -> str | None:
        present = re.compile(rf"^(\s*export\s+{re.escape(name)}=)\S*", re.M)
        if present.search(text):
            return present.sub(lambda found: found[1] + value, text, count=1)
        lines = text.splitlines(keepends=True)
        at = next((i for i, each in enumerate(lines) if each.strip() and not re.match(r"\s*(#|set\b)", each)), None)
        if at is None:
            return None
        return "".join([*lines[:at], f"export {name}={value}\n", *lines[at:]])

    return apply


def names(path: str) -> list[str]:
    """What the setting may be called: the keyword of the code that sets it, then its own name."""
    fact = vocabulary.fact_at(path)
    keyword = re.search(r"(\w+)=(?:torch\.)?\{\}", fact.python) if fact and fact.python else None
    return list(dict.fromkeys(filter(None, [keyword[1] if keyword else "", path.rpartition(".")[2]])))


def _replaced(text: str, pattern: re.Pattern[str], line: int, path: str, value: Any, place: int) -> str | None:
    lines = text.splitlines(keepends=True)
    if line > len(lines):
        return None
    pairs = list(pattern.finditer(lines[line - 1]))
    known = {each.lower() for each in names(path)}
    pairs.sort(key=lambda pair: pair["key"].rpartition(".")[2].lower() not in known)
    if place >= len(pairs):
        return None
    pair = pairs[place]
    new = _spelled(value, pair["value"], quoted=pattern is _PAIR and pair["sign"] == "=")
    lines[line - 1] = lines[line - 1][: pair.start("value")] + new + lines[line - 1][pair.end("value") :]
    return "".join(lines)


def _with_other_precision(text: str, pattern: re.Pattern[str], line: int) -> str | None:
    lines = text.splitlines(keepends=True)
    pair = next((each for each in pattern.finditer(lines[line - 1]) if each["key"] in _TWINS), None)
    if pair is None or _TWINS[pair["key"]] in "".join(lines):
        return None
    start, end = pair.span("key")
    lines[line - 1] = lines[line - 1][:start] + _TWINS[pair["key"]] + lines[line - 1][end:]
    return "".join(lines)


def _spelled(value: Any, old: str, *, quoted: bool = False) -> str:
    """The value in the style of the old one: its quotes, and its way to write true and false."""
    mark = old[0] if old[:1] in "\"'" and old else ""
    if isinstance(value, bool):
        known = next((words for words in zip(_TRUE, _FALSE) if old.strip("\"'") in words), ("true", "false"))
        return f"{mark}{known[0 if value else 1]}{mark}"
    if isinstance(value, str):
        mark = mark or ('"' if quoted else "")
        return f"{mark}{value}{mark}"
    return json.dumps(value)


def _with_flag(text: str, name: str, value: Any) -> str | None:
    """At the end of the last command that has flags."""
    lines = text.splitlines(keepends=True)
    ends = [i for i, each in enumerate(lines) if "--" in each and not each.rstrip().endswith("\\")]
    ends = ends or [i for i, each in enumerate(lines) if re.search(r"\.py\b", each)]
    if not ends:
        return None
    spelled = str(value) if isinstance(value, bool) else _spelled(value, "")
    body = lines[ends[-1]].rstrip("\n")
    lines[ends[-1]] = f"{body} --{name} {spelled}\n"
    return "".join(lines)


def _with_line(text: str, line: str) -> str | None:
    """At the end of a flat YAML."""
    if re.search(rf"^{re.escape(line.partition(':')[0])}\s*:", text, re.M):
        return None
    return f"{text}{'' if text.endswith(chr(10)) or not text else chr(10)}{line}\n"


def _with_json(text: str, keys: list[str], value: Any) -> str | None:
    """In the object that the keys lead to, as its first member."""
    start = 0
    for at, key in enumerate(keys[:-1]):
        found = re.compile(rf"\"{re.escape(key)}\"\s*:\s*\{{").search(text, start)
        if found is None:
            inner = json.dumps(value)
            for rest in reversed(keys[at + 1 :]):
                inner = f"{{{json.dumps(rest)}: {inner}}}"
            return _as_member(text, start if at else text.find("{") + 1, key, inner)
        start = found.end()
    return _as_member(text, start or text.find("{") + 1, keys[-1], json.dumps(value))


def _as_member(text: str, at: int, key: str, value: str) -> str | None:
    if at <= 0:
        return None
    indent = re.match(r"\s*", text[at:])
    space = indent[0] if indent else ""
    is_empty = text[at + len(space) : at + len(space) + 1] == "}"
    comma = "" if is_empty else ","
    return f"{text[:at]}{space}{json.dumps(key)}: {value}{comma}{space or ' '}{text[at + len(space) :]}"
