"""What `nvidia-smi` and `nvidia-smi -L` print."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from compatcheck.bug_report._blocks import Block, Line
from compatcheck.bug_report._claims import Claim
from compatcheck.bug_report._gpus import gpu
from compatcheck.files.lazy_patterns import LazyPattern

TITLE = "nvidia-smi"
_HEAD = LazyPattern(
    r"NVIDIA-SMI.{0,60}Driver Version:\s{0,12}(\d{3}\.\d{1,3}(?:\.\d{1,3})?)\b", marks=("driver version:",)
)
_API = re.compile(r"CUDA Version:\s{0,12}(\d{1,2}\.\d)\b")
_GPU = re.compile(
    r"\s*\|\s{1,8}(\d{1,3})\s{1,8}(\S.{0,60}?)\s{1,40}(?:On|Off|N/A|WDDM|TCC|Disabled|Enabled)\s{1,20}\|\s{0,8}[0-9A-Fa-f]{8}:"
)
_MEMORY = re.compile(r"\d{1,7}MiB\s{0,4}/\s{0,4}(\d{1,7})MiB")
_LISTED = LazyPattern(r"\s*GPU (\d{1,3}): (.{2,80}?) \(UUID: GPU-[0-9a-fA-F-]{8,40}\)\s*\Z", marks=(" (uuid: gpu-",))


def recognises(block: Block) -> tuple[Line, ...]:
    lines = tuple(
        line
        for line in block.short()
        if _GPU.match(line.text)
        or _LISTED.match(line.text)
        or (
            ("NVIDIA-SMI" in line.text or "MiB" in line.text) and (_HEAD.search(line.text) or _MEMORY.search(line.text))
        )
    )
    return (
        lines
        if any(_HEAD.search(line.text) or _GPU.match(line.text) or _LISTED.match(line.text) for line in lines)
        else ()
    )


def read(lines: Sequence[Line]) -> Iterator[Claim]:
    gpus: dict[str, dict[str, object]] = {}
    first, last = 0, None
    for line in lines:
        driver, api = _HEAD.search(line.text), _API.search(line.text)
        row = _GPU.match(line.text) or _LISTED.match(line.text)
        memory = _MEMORY.search(line.text)
        if driver:
            yield Claim("cuda.driver", driver[1], line.number)
            if api:
                yield Claim("cuda.driver_api", api[1], line.number)
        elif row:
            last, first = row[1], first or line.number
            gpus[last] = _gpu_entry(row[2])
        elif memory and last in gpus and "memory_mib" not in gpus[last]:
            gpus[last]["memory_mib"] = int(memory[1])
    if gpus and all(each.get("name") for each in gpus.values()):
        yield Claim("gpus", list(gpus.values()), first)
    elif gpus:
        yield Claim("gpus", None, first, "truncates the name of a GPU")


def _gpu_entry(name: str) -> dict[str, object]:
    """The GPU of a row; a name that the table cuts off is none."""
    return {} if name.endswith("...") else gpu(name)
