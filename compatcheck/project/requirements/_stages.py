"""The instructions of a Dockerfile that make its last stage, with variables put in; no shell is run.

Reference: https://docs.docker.com/reference/dockerfile/
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

_DIRECTIVE = re.compile(r"#\s*escape\s*=\s*([\\`])\s*\Z", re.I)
_HEREDOC = re.compile(r"<<-?\s*([\"']?)([A-Za-z_]\w*)\1")
_VARIABLE = re.compile(r"(\\\$)|\$(?:(\w+)|\{(\w+)(?:(:?[-+])([^{}]*))?\})")
_ARGUMENT = re.compile(r"(\w+)(?:=(\"(?:[^\"\\]|\\.)*\"|'[^']*'|(?:[^\s\"'\\]|\\.)+|))?")


_COPIED = re.compile(
    r"--from=([\w.-]+).*(?:conda|venv|site-packages|dist-packages|/usr/local(?:/lib\S*)?\s|/opt/\S*py)", re.I
)


class Instruction(NamedTuple):
    """One instruction: its word in capitals, what follows it, and the line it begins on."""

    word: str
    text: str
    line: int


class Stage(NamedTuple):
    """What one ``FROM`` starts: an image or an earlier stage, by name or number, and the instructions that follow."""

    base: str
    name: str
    line: int
    instructions: tuple[Instruction, ...]


class Build(NamedTuple):
    """The image that the last stage goes back to, where it is named, and all instructions on the way from there."""

    image: str
    line: int
    instructions: tuple[Instruction, ...]
    arguments: Mapping[str, str]


def build_of(text: str) -> Build | None:
    """What the last stage is made of, or None where the file has no ``FROM``."""
    found = list(_instructions(text))
    first = next((at for at, each in enumerate(found) if each.word == "FROM"), None)
    if first is None:
        return None
    arguments: dict[str, str] = {}
    for each in found[:first]:
        if each.word == "ARG":
            arguments.update((name, value) for name, value in assignments(each.text, arguments) if value is not None)
    stages = list(_stages(found[first:], arguments))
    by_name = {stage.name.lower(): at for at, stage in enumerate(stages) if stage.name}
    chain = [len(stages) - 1]
    while True:
        base = stages[chain[-1]].base
        before = by_name.get(base.lower(), int(base) if base.isdigit() else len(stages))
        if before >= chain[-1]:
            break
        chain.append(before)
    steps = [each for at in reversed(chain) for each in _add_copied(stages, by_name, at)]
    start = stages[chain[-1]]
    return Build(start.base, start.line, tuple(steps), arguments)


def _add_copied(stages: list[Stage], by_name: Mapping[str, int], at: int) -> Iterator[Instruction]:
    """A stage's instructions; where it copies an environment out of an earlier stage, what that installs before it."""
    for each in stages[at].instructions:
        copied = _COPIED.search(each.text) if each.word == "COPY" else None
        before = by_name.get(copied[1].lower(), at) if copied else at
        if before < at:
            yield from (step for step in stages[before].instructions if step.word in ("ARG", "RUN"))
        yield each


def _stages(found: list[Instruction], arguments: Mapping[str, str]) -> Iterator[Stage]:
    heads = [at for at, each in enumerate(found) if each.word == "FROM"]
    for head, end in zip(heads, [*heads[1:], len(found)]):
        words = [word for word in expand(found[head].text, arguments).split() if not word.startswith("--")]
        name = words[2] if len(words) > 2 and words[1].upper() == "AS" else ""
        yield Stage(words[0] if words else "", name, found[head].line, tuple(found[head + 1 : end]))


def _instructions(text: str) -> Iterator[Instruction]:
    """Each instruction with its continuation lines and heredocs; comments between the lines are dropped."""
    lines = text.splitlines()
    directive = _DIRECTIVE.match(lines[0].strip()) if lines else None
    escape = directive[1] if directive else "\\"
    at = 0
    while at < len(lines):
        start, kept = at, ""
        while at < len(lines):
            line = lines[at].rstrip()
            at += 1
            if line.lstrip().startswith("#") or (kept and not line.strip()):
                continue
            kept += line.removesuffix(escape) if line.endswith(escape) else line
            if not line.endswith(escape):
                break
            kept += " "
        word, _, rest = kept.strip().partition(" ")
        if word.upper() in ("RUN", "COPY"):
            for _, ending in _HEREDOC.findall(rest):
                while at < len(lines):
                    at += 1
                    if lines[at - 1].strip() == ending:
                        break
                    rest += "\n" + lines[at - 1]
        if word:
            yield Instruction(word.upper(), rest.strip(), start + 1)


def assignments(text: str, variables: Mapping[str, str]) -> Iterator[tuple[str, str | None]]:
    """The names and values of an ``ENV`` or ``ARG``; None where there is no value, or one that is not known."""
    old_form = re.match(r"(\w+)\s+([^=]+)\Z", text)
    pairs = [(old_form[1], old_form[2])] if old_form else _ARGUMENT.findall(text)
    given = {match[1]: match[2] for match in _ARGUMENT.finditer(text)} if not old_form else {old_form[1]: old_form[2]}
    for name, raw in pairs:
        stated = given.get(name)
        if stated is None:
            yield name, None
            continue
        bare = raw[1:-1] if raw[:1] in ("'", '"') and raw[-1:] == raw[:1] and len(raw) > 1 else raw
        value = bare if raw.startswith("'") else expand(bare, variables)
        yield name, None if "$" in value and not raw.startswith("'") else value


def expand(text: str, variables: Mapping[str, str]) -> str:
    """The text with the variables that are known put in; the others stay as they are written."""

    def value(found: re.Match[str]) -> str:
        name = found[2] or found[3]
        if not name:
            return found[0]
        operator, word = (found[4] or "")[-1:], found[5] or ""
        if operator == "+":
            return word if variables.get(name) else ""
        if name in variables and not (operator and not variables[name]):
            return variables[name]
        return word if operator == "-" else found[0]

    for _ in range(4):
        text, before = _VARIABLE.sub(value, text), text
        if text == before:
            break
        if len(text) > 1 << 16:
            return before
    return text
