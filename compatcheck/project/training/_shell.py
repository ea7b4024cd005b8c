"""The commands of a shell script with their variables filled in as far as the script itself gives them.

Nothing is run. What a command substitution, an argument or the surroundings would give stays open. A variable that is
set in a branch or loop is known there, and open after it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from compatcheck.files import limits
from compatcheck.files.reading import OversizeError

OPEN = "\0"
"""Stands in a word for what nobody can know without running the script."""

_OPENING = frozenset(("if", "for", "while", "until", "case", "select", "{"))
_CLOSING = frozenset(("fi", "done", "esac", "}"))
_BRANCHING = frozenset(("else", "elif", ";;"))
_LEADING = frozenset(("then", "do", "else", "elif", "if", "while", "until", "!", "time", "{"))
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)(\+?)=", re.ASCII)
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_HEREDOC = re.compile(r"<<(-?)\s*(['\"]?)([A-Za-z_]\w*)\2", re.ASCII)
_BRACED = re.compile(r"([A-Za-z_]\w*)(?:\[[@*]\])?(?:(:?[-=])(.*))?\Z", re.ASCII | re.DOTALL)
_EXPR = re.compile(r"\s*expr\s+(.*)", re.DOTALL)
_SUM = re.compile(r"\s*(\w+)\s*(?:([*+/-])\s*(\w+)\s*)?\Z", re.ASCII)


class Word(NamedTuple):
    """A word of a command after expansion, with its line."""

    text: str
    line: int


class Command(NamedTuple):
    """The words of a command, and the environment that the script gives it."""

    words: tuple[Word, ...]
    environ: dict[str, Word]


class _Scope(NamedTuple):
    before: dict[str, str]
    changed: set[str]


def commands(text: str, path: str) -> Iterator[Command]:
    """Each command of a script in order. Raises `OversizeError` where it is out of all proportion."""
    yield from _Script(text.replace("\r\n", "\n"), path).commands()


class _Script:
    """A script that is read from front to back."""

    def __init__(self, text: str, path: str) -> None:
        self.text, self.path = text, path
        self.at, self.line = 0, 1
        self.variables: dict[str, str] = {}
        self.exported: dict[str, Word] = {}
        self.scopes: list[_Scope] = []
        self.heredocs: list[tuple[str, bool]] = []
        self.words_seen = 0

    def commands(self) -> Iterator[Command]:
        words: list[Word] = []
        raw: list[str] = []
        while self.at < len(self.text):
            char = self.text[self.at]
            if char in " \t":
                self.at += 1
            elif self.text.startswith("\\\n", self.at):
                self.at, self.line = self.at + 2, self.line + 1
            elif char == "#":
                self._skip_to("\n")
            elif char in "\n;&|()":
                yield from self._end_command(words, raw)
                words, raw = [], []
                self._operator()
            elif char in "<>":
                self._redirection()
            else:
                self._word_into(words, raw)
        yield from self._end_command(words, raw)

    def _operator(self) -> None:
        if self.text.startswith(";;", self.at):
            self._branch()
            self.at += 2
        elif self.text.startswith("&>", self.at):
            self.at += 1
        else:
            newline = self.text[self.at] == "\n"
            self.at += 1
            if newline:
                self.line += 1
                self._skip_heredocs()

    def _skip_heredocs(self) -> None:
        for mark, tabs in self.heredocs:
            while self.at < len(self.text):
                end = self.text.find("\n", self.at)
                end = len(self.text) if end < 0 else end
                line = self.text[self.at : end]
                self.at, self.line = min(end + 1, len(self.text)), self.line + 1
                if (line.lstrip("\t") if tabs else line).rstrip() == mark:
                    break
        self.heredocs = []

    def _redirection(self) -> None:
        match = _HEREDOC.match(self.text, self.at)
        if match and not self.text.startswith("<<<", self.at):
            self.heredocs.append((match[3], bool(match[1])))
            self.at = match.end()
            return
        while self.at < len(self.text) and self.text[self.at] in "<>&":
            self.at += 1
        while self.at < len(self.text) and self.text[self.at] in " \t":
            self.at += 1
        if self.at < len(self.text) and self.text[self.at] not in "\n;|()":
            self._word_into([], [])

    def _skip_to(self, mark: str) -> None:
        end = self.text.find(mark, self.at)
        end = len(self.text) if end < 0 else end
        self.line += self.text.count("\n", self.at, end)
        self.at = end

    def _word_into(self, words: list[Word], raw: list[str]) -> None:
        """Read one word; an unquoted variable may fall into several, or none."""
        start, line = self.at, self.line
        self.words_seen += 1
        if self.words_seen > limits.SHELL_WORDS:
            raise OversizeError(
                "reading the script", self.path, "the script has too many words", "pass an ordinary script"
            )
        assigned = _ASSIGNMENT.match(self.text, self.at)
        if assigned and self.text.startswith("(", assigned.end()):
            self._array(assigned)
            return
        pieces = self._pieces(splits=assigned is None)
        if self.text[self.at : self.at + 1] in ("<", ">") and len(pieces) == 1 and pieces[0].isdigit():
            return
        raw.append(self.text[start : self.at])
        words += [Word(piece, line) for piece in pieces]

    def _array(self, assigned: re.Match[str]) -> None:
        """``NAME=( … )``: its words, joined by spaces."""
        self.at = assigned.end() + 1
        words: list[Word] = []
        while self.at < len(self.text) and self.text[self.at] != ")":
            char = self.text[self.at]
            if char == "#":
                self._skip_to("\n")
            elif char in " \t\n":
                self.line += char == "\n"
                self.at += 1
            elif self.text.startswith("\\\n", self.at):
                self.at, self.line = self.at + 2, self.line + 1
            elif char in ";&|(<>":
                self.at += 1
            else:
                words += [Word(piece, self.line) for piece in self._pieces(splits=True)]
        self.at += 1
        before = self.variables.get(assigned[1], "") if assigned[2] else ""
        self._assign(assigned[1], " ".join([*([before] if before else []), *(word.text for word in words)]))

    def _pieces(self, splits: bool) -> list[str]:
        """The word at the present place, expanded."""
        pieces, whole, quoted = [""], False, False
        while self.at < len(self.text):
            char = self.text[self.at]
            if char in " \t\n;&|()<>":
                break
            if self.text.startswith("\\\n", self.at):
                self.at, self.line = self.at + 2, self.line + 1
            elif char == "\\":
                pieces[-1] += self.text[self.at + 1 : self.at + 2]
                self.at += 2
            elif char == "'":
                quoted = True
                pieces[-1] += self._single()
            elif char == '"':
                quoted = True
                parts = self._double()
                pieces[-1] += parts[0]
                pieces += parts[1:]
            elif char in "$`":
                value = self._expansion()
                parts = value.split() if splits else [value]
                if parts:
                    pieces[-1] += parts[0]
                    pieces += parts[1:]
            else:
                pieces[-1] += char
                self.at += 1
            whole = whole or bool(pieces[-1]) or len(pieces) > 1
        return [piece[: limits.SHELL_WORD_CHARACTERS] for piece in pieces] if whole or quoted else []

    def _single(self) -> str:
        start = self.at + 1
        self.at += 1
        self._skip_to("'")
        self.at += 1
        return self.text[start : self.at - 1]

    def _double(self) -> list[str]:
        """The inside of double quotes; only a list such as ``"${ARGS[@]}"`` makes several words of it."""
        self.at += 1
        result = ""
        while self.at < len(self.text) and self.text[self.at] != '"':
            char = self.text[self.at]
            if char == "\\" and self.text[self.at + 1 : self.at + 2] in ('"', "\\", "$", "`", "\n"):
                following = self.text[self.at + 1]
                result += "" if following == "\n" else following
                self.line += following == "\n"
                self.at += 2
            elif char in "$`":
                several = self.text.startswith("${", self.at) and "[@]}" in self.text[self.at : self.at + 80]
                value = self._expansion()
                if several and not result and self.text.startswith('"', self.at):
                    self.at += 1
                    return value.split() or [""]
                result += value
            else:
                self.line += char == "\n"
                result += char
                self.at += 1
        self.at += 1
        return [result]

    def _expansion(self) -> str:
        """What ``$…`` at the present place becomes."""
        if self.text[self.at] == "`":
            self.at += 1
            self._skip_to("`")
            self.at += 1
            return OPEN
        if self.text.startswith("$((", self.at):
            return self._compute(self._read_enclosed("(", ")")[1:-1])
        if self.text.startswith("$(", self.at):
            sum_of = _EXPR.fullmatch(self._read_enclosed("(", ")"))
            return self._compute(sum_of[1].replace("\\*", "*")) if sum_of else OPEN
        if self.text.startswith("${", self.at):
            return self._expand_braces(self._read_enclosed("{", "}"))
        name = _NAME.match(self.text, self.at + 1)
        if name:
            self.at = name.end()
            return self.variables.get(name[0], OPEN)
        following = self.text[self.at + 1 : self.at + 2]
        self.at += 2 if following and following in "0123456789@*#?$!-" else 1
        if following in ("@", "*"):
            return ""
        return OPEN if following and following in "0123456789#?$!-" else "$"

    def _read_enclosed(self, opening: str, closing: str) -> str:
        """The text between brackets after a ``$``, which may hold others of their kind."""
        start, depth = self.at + 2, 0
        while self.at < len(self.text):
            char = self.text[self.at]
            self.at += 1
            self.line += char == "\n"
            depth += (char == opening) - (char == closing)
            if char == closing and depth == 0:
                return self.text[start : self.at - 1]
        return self.text[start:]

    def _expand_braces(self, inside: str) -> str:
        match = _BRACED.match(inside)
        if not match:
            return OPEN
        name, operator, default = match[1], match[2], match[3]
        known = self.variables.get(name)
        if operator is None:
            return OPEN if known is None else known
        if known is not None and (known or not operator.startswith(":")):
            return known
        value = self._expand(default)
        if operator.endswith("="):
            self._assign(name, value)
        return value

    def _expand(self, source: str) -> str:
        inner = _Script(source[: limits.SHELL_WORD_CHARACTERS], self.path)
        inner.variables = self.variables
        return " ".join(inner._pieces(splits=False) or [""]) if source.count("${") < 20 else OPEN

    def _compute(self, inside: str) -> str:
        match = _SUM.match(inside.replace("$", "").replace("{", "").replace("}", ""))
        values = [self.variables.get(each, each) for each in (match[1], match[3]) if each] if match else []
        if not match or not values or not all(re.fullmatch(r"\d{1,9}", each) for each in values):
            return OPEN
        numbers = [int(each) for each in values]
        if len(numbers) == 1:
            return str(numbers[0])
        left, right = numbers
        if match[2] == "/":
            return str(left // right) if right else OPEN
        return str({"*": left * right, "+": left + right, "-": left - right}[match[2]])

    def _assign(self, name: str, value: str) -> None:
        self.variables[name] = value if len(value) < limits.SHELL_WORD_CHARACTERS else OPEN
        for scope in self.scopes:
            scope.changed.add(name)
        if name in self.exported:
            self.exported[name] = Word(self.variables[name], self.line)

    def _branch(self) -> None:
        if self.scopes:
            self.variables = dict(self.scopes[-1].before)

    def _end_command(self, words: list[Word], raw: list[str]) -> Iterator[Command]:
        """A command is complete: keep its assignments, or hand it out."""
        while words and raw and self._keyword(words[0].text):
            words, raw = words[1:], raw[1:]
        inline: dict[str, Word] = {}
        while words and (assigned := _ASSIGNMENT.match(words[0].text)):
            value = words[0].text[assigned.end() :]
            if assigned[2]:
                value = self.variables.get(assigned[1], "") + value
            inline[assigned[1]] = Word(value, words[0].line)
            words, raw = words[1:], raw[1:]
        if not words:
            for name, word in inline.items():
                self._assign(name, word.text)
                if name in self.exported:
                    self.exported[name] = word
        elif words[0].text in ("for", "select"):
            for word in words[1:2]:
                self._assign(word.text, OPEN)
        elif words[0].text in ("export", "declare", "typeset", "local", "readonly", "read", "unset"):
            self._declare(words)
        else:
            yield Command(tuple(words), {**self.exported, **inline})

    def _keyword(self, word: str) -> bool:
        """Whether a word is one of the shell's own, which opens, parts or closes a block."""
        if word in _CLOSING and self.scopes:
            scope = self.scopes.pop()
            after = dict(scope.before)
            after.update((name, OPEN) for name in scope.changed)
            self.variables = after
            return True
        if word in _OPENING:
            self.scopes.append(_Scope(dict(self.variables), set()))
        elif word in _BRANCHING:
            self._branch()
        return word in _LEADING or word == "function"

    def _declare(self, words: list[Word]) -> None:
        verb = words[0].text
        for word in words[1:]:
            name, equals, value = word.text.partition("=")
            if not _NAME.fullmatch(name):
                continue
            if verb in ("read", "unset"):
                self._assign(name, OPEN)
                continue
            if equals:
                self._assign(name, value)
            if verb == "export" and name in self.variables:
                self.exported[name] = Word(self.variables[name], word.line)


def is_open(text: str) -> bool:
    """Whether part of a word cannot be known."""
    return OPEN in text
