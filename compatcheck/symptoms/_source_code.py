"""Which lines of a short text are source code that somebody quotes: what is written there did not happen."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Literal

from compatcheck.symptoms._tracebacks import without_prefix

Quoted = Literal["frame", "source"]
"""A line of code as a traceback shows it, or as it stands in a file."""

_FENCE = re.compile(r"\s{0,12}(?:>\s?)*(`{3,}|~{3,})\s*([\w+#-]*)")
_FRAME = re.compile(r'File "[^"]+", line \d+')
_ARROW = re.compile(r"\s*-{2,}>\s*\d+")
_NUMBERED = re.compile(r"\s*\d+(?:\s|\Z)")
_HUNK = re.compile(r"(?:diff --git |@@ -\d+)")
_ERROR = re.compile(r"(?:E\s+)?(?:[A-Za-z_]\w*\.)*[A-Za-z]\w*(?:Error|Exception|Warning|Interrupt)(?::|\s*\Z)")
_RAISED = re.compile(
    r"(?:[^\"'(]{0,80}[\s\]])?(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Warning|Interrupt)(?::\s|\s*\Z)"
)
_MARKS_OF_LOGS = ("Traceback (most recent call last)", 'File "', "site-packages/", "[rank")
_CODE = re.compile(
    r"(?:raise\s+[A-Za-z_][\w.]*\s*\(|raise\s*\Z|warnings\.warn|warn\(|log(?:ger|ging)?\.\w+\(|print\(|assert\s.*,\s*f?[\"']|"
    r"(?:if|elif|while|for|with|def|class|except|try|else|finally)\b.*:\s*(?:#.*)?\Z|return\b.*[(\[]|"
    r"[A-Za-z_][\w.]*\s*\+?=\s*(?:[rfbuRFBU]{0,2}[\"'(\[{]|[A-Za-z_][\w.]*\()|[rfbRFB]{1,2}[\"']|"
    r"(?:TORCH_CHECK|PyErr_\w+|throw\s+\w|std::)|//|/\*)"
)
_INSERTED = re.compile(r"(?<![A-Za-z0-9_])[fF][\"']|\{(?:self|type|str|repr)[.(]|\.format\(")
_STRING = re.compile(r"[\"'].*[\"']\s*[),]*\s*\Z")
_CODE_FENCES = ("python", "py", "python3", "ipython", "cpp", "c++", "c", "cuda", "cu", "patch", "diff")
_WIDEST = 400


def quoted(lines: Sequence[str]) -> Mapping[int, Quoted]:
    """The lines, by their index, that are code: in a fence of code, a diff, below a frame, or such by their form."""
    found: dict[int, Quoted] = {}
    found.update(_fenced(lines))
    found.update(_changes(lines))
    for index, line in enumerate(lines):
        if index not in found and _is_code(line, lines[index - 1] if index else ""):
            found[index] = "source"
    found.update(_frames(lines))
    return found


def _fenced(lines: Sequence[str]) -> Mapping[int, Quoted]:
    """What stands in fences of code, unless it is the output of a program."""
    found: dict[int, Quoted] = {}
    opened: tuple[int, str, str] | None = None
    for index, line in enumerate(lines):
        fence = _FENCE.match(line)
        if fence is None:
            continue
        if opened is None:
            opened = index, fence[1], fence[2].lower()
        elif fence[1].startswith(opened[1]) and not fence[2]:
            inside = range(opened[0] + 1, index)
            if opened[2] in _CODE_FENCES and not any(_is_output(lines[each]) for each in inside):
                found.update(dict.fromkeys(inside, "source"))
            opened = None
    return found


def _is_output(line: str) -> bool:
    return any(mark in line for mark in _MARKS_OF_LOGS) or _ERROR.match(line.strip()[:_WIDEST]) is not None


def _changes(lines: Sequence[str]) -> Mapping[int, Quoted]:
    """The lines of a diff, from its head as long as they look like one."""
    found: dict[int, Quoted] = {}
    inside = False
    for index, line in enumerate(lines):
        if _HUNK.match(line):
            inside = True
        elif inside and not line.startswith(("+", "-", " ", "index ", "\\")):
            inside = False
        if inside:
            found[index] = "source"
    return found


def _is_code(line: str, before: str) -> bool:
    text = line.strip().lstrip("> ")[:_WIDEST]
    if _CODE.match(text) or _INSERTED.search(text):
        return True
    return bool(_STRING.match(text)) and before.rstrip().endswith(("(", '"', "'", "\\"))


def _frames(lines: Sequence[str]) -> Mapping[int, Quoted]:
    """The code below the head of a frame, and around the arrow of a notebook's."""
    found: dict[int, Quoted] = {}
    for index, line in enumerate(lines):
        if _FRAME.search(line):
            after = index + 1
            if (
                after < len(lines)
                and not _FRAME.search(lines[after])
                and not _RAISED.match(without_prefix(lines[after]))
            ):
                found[after] = "frame"
        elif _ARROW.match(line):
            found[index] = "frame"
            for way in (-1, 1):
                each = index + way
                while 0 <= each < len(lines) and _NUMBERED.match(lines[each]):
                    found[each] = "frame"
                    each += way
    return found
