"""Versions asked for at a prompt: `print(torch.__version__)`, `torch.version.cuda`, and the answers below."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from compatcheck.bug_report._blocks import Block, Line
from compatcheck.bug_report._claims import Claim, distribution_claim, version_claim
from compatcheck.bug_report._gpus import gpu
from compatcheck.bug_report._names import distribution
from compatcheck.files.lazy_patterns import LazyPattern

TITLE = "a Python prompt"
_ASKED = re.compile(
    r"(?<![\w.])(?:(?P<module>[a-z_]{3,40})\.__version__|(?P<cuda>torch\.version\.cuda)"
    r"|(?P<cudnn>torch\.backends\.cudnn\.version\(\))|(?P<nccl>torch\.cuda\.nccl\.version\(\))"
    r"|(?P<gpu>torch\.cuda\.get_device_name\(\w{0,2}\)))"
)
_PRINTED = LazyPattern(
    rf"print\(\s{{0,4}}f?['\"]([^'\"{{}}]{{1,40}}?)[\s:=]{{0,4}}(?:['\"]\s{{0,4}},\s{{0,4}}|\{{)(?={_ASKED.pattern})",
    marks=(
        ".__version__",
        "torch.version.cuda",
        "torch.backends.cudnn.version()",
        "torch.cuda.nccl.version()",
        "torch.cuda.get_device_name(",
    ),
)
_PROMPT = re.compile(r"\s*(?:>>>|In \[\d{1,4}\]:|\$|%|!|\(\w{1,30}\) ?[$#]?)|.{0,80}\bpython3? -c ")
_OUT = re.compile(r"\s*(?:Out\[\d{1,4}\]:\s*)?")
_NUMBER = re.compile(r"v?\d+\.\d+[\w.+]{0,60}\Z")


class _Answer(NamedTuple):
    question: re.Match[str]
    text: str
    line: Line


def recognises(block: Block) -> tuple[Line, ...]:
    """The questions at a prompt, each with the line below it."""
    lines = [line for line in block.short() if line.plain]
    asked = [index for index, line in enumerate(lines) if _is_question(line)]
    near = {index for at in asked for index in (at, at + 1) if index < len(lines)}
    labels = _labels(lines)
    near |= {index for index, line in enumerate(lines) if labels and _labelled(line, labels)}
    near |= {index for index, line in enumerate(lines) if labels and _PRINTED.search(line.text)}
    return tuple(lines[index] for index in sorted(near))


def read(lines: Sequence[Line]) -> Iterator[Claim]:
    labels = _labels(lines)
    for line in lines:
        if labels and (printed := _labelled(line, labels)):
            yield from _claims(_Answer(printed, _value_of(line), line))
    for question, answer in zip(lines, lines[1:]):
        if not _is_question(question) or _is_question(answer):
            continue
        asked = list(_ASKED.finditer(question.text))
        said = _OUT.sub("", answer.text, count=1).strip()
        words = [said] if len(asked) == 1 else [word.strip("(),'\"") for word in said.split()]
        if len(asked) == len(words):
            for one, word in zip(asked, words):
                yield from _claims(_Answer(one, word.strip("'\""), answer))


def _labels(lines: Sequence[Line]) -> dict[str, re.Match[str]]:
    """What code of the block prints behind which words; words of several questions answer none."""
    found: dict[str, list[re.Match[str]]] = {}
    for line in lines:
        if printed := _PRINTED.search(line.text):
            asked = _ASKED.match(line.text, printed.end())
            if asked and len(_ASKED.findall(line.text)) == 1:
                found.setdefault(printed[1].strip().lower(), []).append(asked)
    return {label: asked[0] for label, asked in found.items() if len(asked) == 1}


def _labelled(line: Line, labels: dict[str, re.Match[str]]) -> re.Match[str] | None:
    """The question that a line answers by beginning with its words."""
    label = re.split(r"\s{0,3}[:=]\s?", line.text.strip(), maxsplit=1)[0].lower()
    return labels.get(label) if label != line.text.strip().lower() else None


def _value_of(line: Line) -> str:
    return re.split(r"\s{0,3}[:=]\s?", line.text.strip(), maxsplit=1)[1].strip()


def _is_question(line: Line) -> bool:
    return bool(_PROMPT.match(line.text) and _ASKED.search(line.text))


def _claims(answer: _Answer) -> Iterator[Claim]:
    question, text, number = answer.question, answer.text, answer.line.number
    if question["gpu"] and re.fullmatch(r"[\w ()/-]{2,60}", text):
        yield Claim("gpus", [gpu(text)], number)
    elif question["cudnn"] and text.isdigit():
        yield Claim("cuda.cudnn", _cudnn(int(text)), number)
    elif question["nccl"] and (parts := re.fullmatch(r"\((\d+), (\d+), (\d+)\)", text)):
        yield Claim("cuda.nccl", ".".join(parts.groups()), number)
    elif question["cuda"] and text == "None":
        yield Claim("cuda.runtime", None, number)
    elif question["cuda"] and _NUMBER.match(text):
        yield version_claim("cuda.runtime", text, number)
    elif question["module"] and _NUMBER.match(text) and (name := distribution(question["module"])):
        yield distribution_claim(name, text, number)


def _cudnn(number: int) -> str:
    """``8902`` is 8.9.2, ``90100`` is 9.1.0."""
    major, rest = divmod(number, 10000 if number >= 90000 else 1000)
    return f"{major}.{rest // 100}.{rest % 100}"
