"""What MMEngine prints when a run starts, as XTuner's logs hold it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from compatcheck.bug_report._blocks import Block, Line
from compatcheck.bug_report._claims import Claim, distribution_claim
from compatcheck.bug_report._gpus import gpu
from compatcheck.bug_report._platform import platform_claims

TITLE = "the environment in MMEngine's log"
_MARKS = ("CUDA_HOME:", "PyTorch compiling details", "numpy_random_seed:")
_GPU = re.compile(r"\s*GPU ([\d,]{1,40}): (\S.{1,60})\Z")
_RUNTIME = re.compile(r"\s*- CUDA Runtime (\d{1,2}\.\d)\s*\Z")
_VERSION = re.compile(r"\s*(Python|PyTorch|TorchVision|MMEngine|XTuner): (\d[\w.+]{1,40})")


def recognises(block: Block) -> tuple[Line, ...]:
    lines = tuple(block.short())
    if sum(any(mark in line.text for line in lines) for mark in _MARKS) < 2:
        return ()
    forms = (_GPU, _RUNTIME, _VERSION)
    return tuple(
        line
        for line in lines
        if any(form.match(line.text) for form in forms) or "sys.platform:" in line.text or line.text.startswith("  - ")
    )


def read(lines: Sequence[Line]) -> Iterator[Claim]:
    gpus: dict[str, dict[str, Any]] = {}
    place = 0
    for line in lines:
        device, runtime, version = (form.match(line.text) for form in (_GPU, _RUNTIME, _VERSION))
        if device:
            for index in filter(None, device[1].split(",")):
                gpus.setdefault(index, gpu(device[2]))
            place = place or line.number
        elif runtime:
            yield Claim("cuda.runtime", runtime[1], line.number)
        elif version and version[1] == "Python":
            yield Claim("python", version[2], line.number)
        elif version:
            yield distribution_claim(version[1], version[2], line.number)
        elif "sys.platform:" in line.text:
            yield from platform_claims(line.text.partition("sys.platform:")[2], line.number)
    if gpus:
        yield Claim("gpus", list(gpus.values()), place)
