"""The first lines of vLLM's log: its version, and the engine with its model and its degree of parallelism."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from compatcheck.bug_report._blocks import Block, Line
from compatcheck.bug_report._claims import Claim, distribution_claim
from compatcheck.files.lazy_patterns import LazyPattern

TITLE = "vLLM's log"
_SERVER = LazyPattern(r"vLLM API server version v?(\d[\w.+]{1,40})", marks=("vllm api server version ",))
_ENGINE = LazyPattern(
    r"Initializing an? (?:V[01] )?LLM engine(?: \(v(\d[\w.+]{1,40})\))? with config: (.{0,4000})",
    marks=("initializing a",),
)
_MODEL = LazyPattern(r"\bmodel='([A-Za-z0-9][\w.-]{0,60}/[A-Za-z0-9][\w.-]{1,100})'", marks=("model='",))
_PARALLEL = re.compile(r"\btensor_parallel_size=(\d{1,3})\b")


def recognises(block: Block) -> tuple[Line, ...]:
    return tuple(line for line in block.lines if "vLLM API" in line.text or "LLM engine" in line.text)


def read(lines: Sequence[Line]) -> Iterator[Claim]:
    for line in lines:
        if server := _SERVER.search(line.text):
            yield distribution_claim("vllm", server[1], line.number)
        engine = _ENGINE.search(line.text)
        if engine is None:
            continue
        model, parallel = _MODEL.search(engine[2]), _PARALLEL.search(engine[2])
        if engine[1]:
            yield distribution_claim("vllm", engine[1], line.number)
        if model:
            yield Claim("model.name", model[1], line.number)
        if parallel and int(parallel[1]) > 1:
            yield Claim("training.several_ranks", True, line.number)
