"""The stretches of a report that may be a configuration, a command or a script of their own."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import NamedTuple

from compatcheck.bug_report._blocks import Block, Line
from compatcheck.bug_report._surroundings import fence_manner
from compatcheck.files import limits
from compatcheck.files.lazy_patterns import LazyPattern
from compatcheck.packages.frameworks import frameworks
from compatcheck.project import training

_FEWEST_KEYS = 3
_ENDINGS = {
    "json": ".json",
    "jsonc": ".json",
    "json5": ".json",
    "yaml": ".yaml",
    "yml": ".yaml",
    "python": ".py",
    "py": ".py",
    "python3": ".py",
    "ipython": ".py",
}
_SHELLS = ("bash", "sh", "shell", "console", "zsh", "cmd")
_PAIR = re.compile(r"\s{0,12}(?:- )?[A-Za-z_][\w.-]{0,60}:(?:\s|\Z)")
_INSIDE = re.compile(r"\s{1,12}|#|- |\Z")
_COMMANDS = [command.name for framework in frameworks().values() for command in framework.commands]
_LAUNCHER = rf"(?:torchrun|deepspeed|accelerate launch|python3?|ray job submit|{'|'.join(map(re.escape, _COMMANDS))})"
_VARIABLES = r"(?:[A-Z_]{2,40}=\S{0,80}\s+){0,12}"
_LAUNCH = re.compile(rf"\s{{0,8}}(?:[$#>%!]\s)?{_VARIABLES}(?:nohup |srun |sudo )?{_LAUNCHER}\s")
_WITHIN = re.compile(
    rf"(?:(?<=[`\s:：(（'\"“，,])|(?<=[\u4e00-\u9fff]))({_VARIABLES}{_LAUNCHER}\s{{1,4}}"
    rf"(?:-{{1,2}}\w|\w{{1,20}}\s{{1,4}}(?:\S{{1,200}}\.(?:ya?ml|json|py)|--\w)|\S{{1,200}}\.(?:py|ya?ml|json)"
    rf"|-m\s)[^`]{{0,2000}})"
)
_END_OF_WORDS = re.compile(
    r"[`，。；、）”]|[,;:.!?](?:\s|\Z)|\)\s|\s(?:and|but|which|with the|it|then)\s"
    r"|[,;:.!?]{0,2}\s{0,2}[\u4e00-\u9fff]"
)
_WINDOWS_PATH = re.compile(r"(?<=[\w:.])\\(?=\w)")
_CONTINUED = re.compile(r"\s[`^]\s{0,80}\Z")
_PROMPT = re.compile(r"\s{0,8}[$#>%!]\s(?=[A-Za-z])")
_CUT_SHORT = re.compile(r"(?:\A|\s)(?:\.{3}|…)\s{0,80}(?:\Z|(?=\\\Z))")
_BULLET = re.compile(r"\s{1,12}- ([a-z_]{2,60}:.*)")
_IMPORT = LazyPattern(
    r"(?:from [\w.]{1,80} import\s|import [\w.]{1,80}(?:\s|,|\Z))",
    marks=(
        " import",
        "import ",
    ),
)
_CUTS = 8
_LONGEST_OF_CODE = 400


class Piece(NamedTuple):
    """Lines with their numbers, the ending of the file that they would be, and the words that announce them.

    It is ``whole`` where its writer left out nothing with dots.
    """

    lines: tuple[tuple[int, str], ...]
    ending: str
    title: str = ""

    @property
    def whole(self) -> bool:
        return not any(_CUT_SHORT.search(text) for _, text in self.lines)

    def without_dots(self) -> Piece:
        """The piece without the dots for what is left out."""
        return self._replace(lines=tuple((number, _CUT_SHORT.sub(" ", text)) for number, text in self.lines))


def pieces(blocks: Sequence[Block]) -> list[Piece]:
    """What stands in each fence that is no advice, and the stretches outside of fences."""
    found: list[Piece] = []
    loose: list[Line] = []
    for block in blocks:
        if not block.fenced:
            loose += block.lines
        elif fence_manner(block) is None:
            found += (piece._replace(title=block.lead) for piece in _of_fence(block))
    found += [*_runs(loose), *_braced(loose), *_commands(loose), *_within(loose), *_code(loose)]
    return [each for each in found if each.lines and len(each.lines) <= limits.PASTED_LINES][: limits.PASTED_BLOCKS]


def _of_fence(block: Block) -> Iterator[Piece]:
    lines = tuple((line.number, line.text) for line in block.lines)
    first = next((text for _, text in lines if text.strip()), "").lstrip()
    if block.language in _ENDINGS:
        yield Piece(lines, _ENDINGS[block.language])
    elif first.startswith("{"):
        yield Piece(lines, ".json")
    elif block.language in _SHELLS or any(_LAUNCH.match(text) for _, text in lines):
        yield Piece(tuple((number, _shell_line(text)) for number, text in lines), ".sh")
    elif any(_IMPORT.match(text) for _, text in lines):
        yield Piece(lines, ".py")
    else:
        yield from _runs(block.lines)
        yield from _braced(block.lines)


def _runs(lines: Sequence[Line]) -> Iterator[Piece]:
    """Stretches of ``key: value`` lines, and of those that `accelerate env` sets behind a dash."""
    run: list[Line] = []
    above = title = ""
    for line in (*lines, Line(0, "\0", "")):
        if line.number and (_PAIR.match(line.text) or (run and _INSIDE.match(line.text))):
            title = title if run else above
            run.append(line)
            above = line.plain
            continue
        yield from (piece._replace(title=title) for piece in _yaml(run))
        run, above = [], line.plain
    return


def _yaml(run: Sequence[Line]) -> Iterator[Piece]:
    bullets = [(line.number, match[1]) for line in run if (match := _BULLET.match(line.text))]
    if len(bullets) >= _FEWEST_KEYS:
        yield Piece(tuple(bullets), ".yaml")
    pairs = [line for line in run if _PAIR.match(line.text) and not line.text.lstrip().startswith("- ")]
    if len(pairs) >= _FEWEST_KEYS:
        own = (line for line in run if line.number >= pairs[0].number)
        yield Piece(tuple((line.number, line.text) for line in own), ".yaml")


def _braced(lines: Sequence[Line]) -> Iterator[Piece]:
    """JSON objects that begin on lines of their own, or end the line in which they begin."""
    inside: list[tuple[int, str]] = []
    depth = 0
    for line in lines:
        text = line.text
        if not inside:
            start = text.find('{"') if text.rstrip().endswith("}") else -1
            if start >= 0 and text.strip() != "{" and _marked(text):
                yield Piece(((line.number, text[start:].rstrip()),), ".json", text[:start])
                continue
            if text.strip() != "{":
                continue
        inside.append((line.number, text))
        depth += text.count("{") - text.count("}")
        if depth <= 0:
            yield Piece(tuple(inside), ".json")
            inside, depth = [], 0


def _marked(text: str) -> bool:
    """Whether a line has a word of some configuration, and is no record of a log."""
    return any(mark in text for mark in _json_marks())


@cache
def _json_marks() -> tuple[str, ...]:
    readers = training.readers().values()
    return tuple({mark for reader in readers if ".json" in reader.SUFFIXES for mark in getattr(reader, "MARKS", ())})


def _commands(lines: Sequence[Line]) -> Iterator[Piece]:
    """A launch command with the lines that a backslash, or what PowerShell and cmd have for it, continues."""
    command: list[tuple[int, str]] = []
    continued = False
    for line in (*lines, Line(0, "", "")):
        if continued or (line.number and _LAUNCH.match(line.text)):
            text = _shell_line(line.text)
            command.append((line.number, text))
            continued = text.rstrip().endswith("\\")
            if continued and line.number:
                continue
        if command:
            yield Piece(tuple(each for each in command if each[0]), ".sh")
            command, continued = [], False


def _within(lines: Iterable[Line]) -> Iterator[Piece]:
    """A launch command in the middle of a sentence, up to where the words go on."""
    for line in lines:
        if _LAUNCH.match(line.text):
            continue
        if match := _WITHIN.search(line.text[:4_000]):
            end = _END_OF_WORDS.search(match[1])
            yield Piece(((line.number, match[1][: end.start()] if end else match[1]),), ".sh")


def _code(lines: Sequence[Line]) -> Iterator[Piece]:
    """Python outside of fences, from its first import on as far as it parses."""
    start = next((index for index, line in enumerate(lines) if _IMPORT.match(line.text)), None)
    if start is None:
        return
    kept = [line for line in lines[start : start + limits.PASTED_LINES] if len(line.text) < _LONGEST_OF_CODE]
    for _ in range(_CUTS):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", SyntaxWarning)
                ast.parse("\n".join(line.text for line in kept))
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            kept = kept[: max((getattr(error, "lineno", None) or 1) - 1, 0)]
            if not kept:
                return
        else:
            yield Piece(tuple((line.number, line.text) for line in kept), ".py")
            return


def _shell_line(text: str) -> str:
    """The line without its prompt, as a POSIX shell would have it where PowerShell or cmd wrote it."""
    posix = _WINDOWS_PATH.sub(r"\\\\", _PROMPT.sub("", text))
    return _CONTINUED.sub(r" \\", posix)
