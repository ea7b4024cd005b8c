"""The frames that a traceback shows above an error line, as CPython, IPython, pytest and rich print them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

MOST_LINES = 80
"""Lines above an error that are looked at."""
_MOST_FRAMES = 12
_PREFIX = re.compile(r"\A(?:\[(?:rank|default)\d+\]:\s?|\([^()]{0,80}pid=\d+[^()]{0,80}\)\s|\d+:\s|[│|>]\s?|E\s{2,})+")
_PLACE = r"(?:[:(]\d+\)?:?|,\s+line\s+\S{1,8}?(?=[,\s]|\Z))?,?(?:\s+in\s+([A-Za-z_<][\w.<>]*))?"
_QUOTED = re.compile(rf"""(?:File\s+)?["']?([^"']{{1,400}})["']{_PLACE}""")
_BARE = re.compile(rf"""(?:File\s+)?([^\s"'()│|]{{1,400}}?\.py)(?=[:(,\s]){_PLACE}""")
_PLACED = re.compile(r"""\.py(?::\d+|,?\s+in\s)|["'],\s+(?:line|in)\s|\AFile\s.{0,400}["']\Z""")
_ARROW = re.compile(r"\A\s*(?:-+>\s*\d+|❱\s*\d+\s*[│|]|>\s(?=\s))\s?(.*)")
_NUMBERED = re.compile(r"\A\s*\d+\s*(?:[│|]|\s)")
_CARETS = re.compile(r"[\s~^]*\Z|\s*\.{3}\s*\Z|\s*\[Previous line repeated")
_HEAD = "Traceback (most"

_PASSING_ON = re.compile(
    r"<frozen |/importlib/|\bcontextlib\.py|\bfunctools\.py|torch/nn/modules/module\.py|torch/nn/parallel/|"
    r"torch/_dynamo/|torch/utils/_contextlib\.py|torch/utils/checkpoint\.py|torch/autograd/|"
    r"accelerate/utils/operations\.py|transformers/utils/import_utils\.py"
)
"""Files that hand every call or import on to what somebody else asked for."""


class Frame(NamedTuple):
    """One frame: the file as it is printed with ``/``, the function, and the line of code; empty where not shown."""

    file: str
    function: str = ""
    code: str = ""


def frames_above(lines: Sequence[str]) -> tuple[Frame, ...]:
    """The frames that end right above where these lines end, the innermost first."""
    found: list[Frame] = []
    code: list[str] = []
    for line in reversed(lines[-MOST_LINES:]):
        text = _PREFIX.sub("", line.rstrip().rstrip("│|").rstrip())
        if _HEAD in text or len(found) == _MOST_FRAMES:
            break
        if frame := _frame(text):
            found.append(frame._replace(code=_code(code)))
            code = []
        elif _CARETS.match(text):
            continue
        elif text[:1].isspace() or _NUMBERED.match(text) or _ARROW.match(text):
            code.insert(0, text)
        else:
            break
    return tuple(found)


def caller_of(frames: Sequence[Frame], asked: str) -> Frame | None:
    """The frame that asks for what is missing: the innermost whose code names it, else that hands nothing on."""
    own = [each for each in frames if not _PASSING_ON.search(each.file)]
    naming = (each for each in own if re.search(rf"\b{re.escape(asked)}\b", each.code)) if asked else iter(())
    return next(naming, None) or next(iter(own), None)


def called_in(code: str, function: str) -> str:
    """The dotted callable that a line of code calls as this function; of ``__init__`` the class that it makes."""
    if function not in ("__init__", "__new__"):
        match = re.search(rf"([A-Za-z_][\w.]*\.)?\b{re.escape(function)}\s*\(", code)
        return f"{match[1] or ''}{function}" if match else ""
    made = re.findall(r"((?:[a-z_]\w*\.)*[A-Z]\w*)\s*\(", code)
    return made[0] if len(set(made)) == 1 else ""


def _frame(text: str) -> Frame | None:
    if not _PLACED.search(text[:600].strip()):
        return None
    text = text.strip()
    match = _QUOTED.match(text) or _BARE.match(text)
    return Frame(match[1].replace("\\", "/"), match[2] or "") if match else None


def _code(lines: Sequence[str]) -> str:
    """The line that a frame stopped at: the one with the arrow, else all that is shown."""
    pointed = next((match[1] for line in lines if (match := _ARROW.match(line))), None)
    return (pointed if pointed is not None else " ".join(line.strip() for line in lines)).strip(" │|")[:400]
