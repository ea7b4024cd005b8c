"""The paths in a traceback: the Python that ran, what patches the libraries that it names, that text is generated."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from compatcheck.bug_report._blocks import Block, Line
from compatcheck.bug_report._claims import Claim, distribution_claim
from compatcheck.files.lazy_patterns import LazyPattern

TITLE = "the paths of a traceback"
_PYTHON = LazyPattern(
    r"[/\\]python(3\.\d{1,2})[/\\](?:site|dist)-packages(?![\w-])|[/\\]lib(?:64)?[/\\]python(3\.\d{1,2})[/\\][a-z_]",
    marks=(
        "-packages",
        "python",
    ),
)
_WINDOWS = LazyPattern(r"[/\\]Python(3)(\d{1,2})[/\\]lib[/\\]site-packages[/\\]", re.I, marks=("site-packages",))
_DRIVE = LazyPattern(
    r"\bFile \"[A-Z]:\\[^\"]{1,300}\", line \d|\A(?:\([\w.-]{1,30}\) )?PS [A-Z]:\\\S{0,200}>",
    marks=(
        '", line ',
        "ps ",
    ),
)
_METADATA = LazyPattern(
    r"-packages[/\\]([A-Za-z][\w.]{0,60})-(\d[\w.+!]{0,60}?)(?:-py3\.\d{1,2}[\w.-]{0,40}\.egg|\.dist-info)[/\\]",
    marks=("-packages",),
)
_PATCHED = LazyPattern(
    r"-packages[/\\]unsloth(?:_zoo)?[/\\]|[/\\]unsloth_compiled_cache[/\\]",
    marks=(
        "-packages",
        "unsloth_compiled_cache",
    ),
)
_GENERATES = re.compile(r"-packages[/\\]transformers[/\\]generation[/\\]utils\.py\b")


def recognises(block: Block) -> tuple[Line, ...]:
    forms = (_PYTHON, _WINDOWS, _DRIVE, _PATCHED, _GENERATES)
    return tuple(line for line in block.short() if any(form.search(line.text) for form in forms))


def read(lines: Sequence[Line]) -> Iterator[Claim]:
    said = set()
    for line in lines:
        posix, windows, metadata = (form.search(line.text) for form in (_PYTHON, _WINDOWS, _METADATA))
        version = posix[1] or posix[2] if posix else f"3.{windows[2]}" if windows else None
        if version and version not in said:
            said.add(version)
            yield Claim("python", version, line.number)
        if "system" not in said and _DRIVE.search(line.text):
            said.add("system")
            yield Claim("platform.system", "Windows", line.number)
        if metadata:
            yield distribution_claim(metadata[1], metadata[2], line.number)
        for fact, pattern in (("unsloth", _PATCHED), ("predict_with_generate", _GENERATES)):
            if pattern.search(line.text) and fact not in said:
                said.add(fact)
                yield Claim(f"training.{fact}", True, line.number)
