"""The variables that a shell, a Dockerfile or Python sets for the run: ``export NCCL_P2P_DISABLE=1``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from compatcheck.bug_report._blocks import Block, Line
from compatcheck.bug_report._claims import Claim
from compatcheck.files.lazy_patterns import LazyPattern

TITLE = "environment variables"
TYPED = True
_NAME = r"([A-Z][A-Z0-9]{1,30}(?:_[A-Z0-9]{1,30}){1,8})"
_VALUE = r"(['\"]?)([\w./:,@+-]{1,200})\2"
_SET = (
    re.compile(
        rf"\s{{0,12}}(?:[$#>%]\s)?(?:export|set|ENV)\s{{1,3}}{_NAME}=\s{{0,1}}{_VALUE}\s{{0,4}};?\s{{0,4}}(?:#.*)?\Z"
    ),
    re.compile(rf"\s{{0,12}}os\.environ\[['\"]{_NAME}['\"]\]\s{{0,3}}=\s{{0,3}}{_VALUE}\s{{0,4}}(?:#.*)?\Z"),
)
_BEFORE = LazyPattern(
    rf"\s{{0,12}}(?:[$#>%]\s)?(?:{_NAME}={_VALUE}\s{{1,4}}){{1,8}}(?:vllm|python3?|lmdeploy|\w{{1,20}}run)\s",
    marks=(
        "vllm",
        "python",
        "lmdeploy",
        "run",
    ),
)
_EACH = re.compile(rf"(?<!\S){_NAME}={_VALUE}(?=\s)")
_SECRET = re.compile(r"TOKEN|KEY|SECRET|PASSW|CREDENTIAL")


def recognises(block: Block) -> tuple[Line, ...]:
    return tuple(line for line in block.short() if "=" in line.text and _set_by(line))


def read(lines: Sequence[Line]) -> Iterator[Claim]:
    for line in lines:
        for name, value in _set_by(line):
            yield Claim(f"environ.{name}", value, line.number)


def _set_by(line: Line) -> list[tuple[str, str]]:
    """The names and values that the line sets; those that hide something are left out."""
    found = [match for form in _SET if (match := form.match(line.text))]
    if before := _BEFORE.match(line.text):
        found += _EACH.finditer(before[0])
    return [(match[1], match[3]) for match in found if not _SECRET.search(match[1])]
