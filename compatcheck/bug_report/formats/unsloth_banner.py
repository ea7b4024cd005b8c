"""The lines that Unsloth prints when it starts. Its ``CUDA`` is the GPU's compute capability."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from compatcheck.bug_report._blocks import Block, Line
from compatcheck.bug_report._claims import Claim, distribution_claim, version_claim
from compatcheck.bug_report._gpus import gpu
from compatcheck.files.lazy_patterns import LazyPattern

TITLE = "Unsloth's banner"
_VALUE = r"\s?[:=]\s?(\d[\w.+]{0,60}?)(?=[.,\]]?(?:\s|\Z))"
_HEAD = LazyPattern(r"==\(\(====\)\)==\s+Unsloth\s?[:-]?\s?(?:v?(\d[\w.]{0,20}?)[:.]?\s)?", marks=("==((====))==",))
_NAMES = (("transformers", "Transformers"), ("vllm", "vLLM"), ("triton", "Triton"), ("xformers", "Xformers"))
_TORCH = re.compile(rf"(?:Py)?[Tt]orch{_VALUE}")
_RUNTIME = LazyPattern(rf"CUDA Toolkit{_VALUE}", marks=("cuda toolkit",))
_CAPABILITY = re.compile(r"CUDA\s?[:=]\s?(\d{1,2}\.\d)(?![\w.]*\w)")
_GPU = LazyPattern(
    r"\\+\s{1,4}/\|\s{1,8}(?:GPU: )?(.{2,60}?)\. (?:Num GPUs\s?=\s?(\d{1,3})\.? ?)?Max memory", marks=("max memory",)
)


def recognises(block: Block) -> tuple[Line, ...]:
    lines = list(block.short())
    starts = [index for index, line in enumerate(lines) if _HEAD.search(line.text)]
    return tuple(
        lines[index] for index in sorted({near for at in starts for near in range(at, at + 4)} & set(range(len(lines))))
    )


def read(lines: Sequence[Line]) -> Iterator[Claim]:
    one, place, count, capability = None, 0, 1, None
    for line in lines:
        head, torch, runtime = (form.search(line.text) for form in (_HEAD, _TORCH, _RUNTIME))
        if head:
            yield Claim("training.unsloth", True, line.number)
        if head and head[1]:
            yield distribution_claim("unsloth", head[1], line.number)
        for name, spelled in _NAMES:
            match = re.search(rf"\b{spelled}{_VALUE}", line.text)
            if match:
                yield distribution_claim(name, match[1], line.number)
        if torch:
            yield distribution_claim("torch", torch[1], line.number)
        if runtime:
            yield version_claim("cuda.runtime", runtime[1], line.number)
        device, capable = _GPU.search(line.text), _CAPABILITY.search(line.text)
        if device:
            one, place, count = gpu(device[1]), place or line.number, min(int(device[2] or 1), 1024)
        capability = capable[1] if capable else capability
    if one:
        yield Claim("gpus", [{**one, **({"compute_capability": capability} if capability else {})}] * count, place)
