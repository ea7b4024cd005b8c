"""Container images whose tag says what they hold."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from compatcheck.facts.reports._blocks import Block, Line
from compatcheck.facts.reports._claims import Claim

TITLE = "the tag of a container image"
TYPED = True
_PYTORCH = re.compile(r"\bpytorch/pytorch:(\d\.\d{1,2}(?:\.\d{1,2})?)-cuda(\d{1,2}\.\d)-cudnn\d(?:-(devel|runtime))?")
_NGC = re.compile(r"\bnvcr\.io/nvidia/pytorch:(\d{2}\.\d{2})-py3")


def recognises(block: Block) -> tuple[Line, ...]:
    return tuple(line for line in block.short() if _PYTORCH.search(line.text) or _NGC.search(line.text))


def read(lines: Sequence[Line]) -> Iterator[Claim]:
    for line in lines:
        official, ngc = _PYTORCH.search(line.text), _NGC.search(line.text)
        yield Claim("platform.system", "Linux", line.number)
        if official:
            yield Claim("distributions.torch", official[1], line.number)
            yield Claim("cuda.runtime", official[2], line.number)
            if official[3] == "devel":
                yield Claim("cuda.toolkit", official[2], line.number)
        elif ngc:
            why = f"names NVIDIA's container {ngc[1]}, whose torch is a build of its own"
            yield Claim("distributions.torch", None, line.number, why)
