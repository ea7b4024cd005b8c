"""What `transformers env`, `accelerate env`, `llamafactory-cli env`, `trl env` and their like print."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from compatcheck.bug_report._blocks import Block, Line
from compatcheck.bug_report._claims import Claim, distribution_claim, version_claim
from compatcheck.bug_report._gpus import gpu, gpus_in, listed
from compatcheck.bug_report._names import distribution, plausible
from compatcheck.bug_report._platform import platform_claims
from compatcheck.files import limits

TITLE = "lines such as `- PyTorch version: 2.5.0`"
TYPED = True
_VERSION = re.compile(r"(?:(?<![A-Za-z])|(?<=[a-z])(?=V))\s*(?:[Vv]ersions?|VERSIONS?|[Vv]er|版本号?)\s*\Z")
_BRACKETS = re.compile(r"\s*\([^()]{0,60}\)")
_VALUE = re.compile(r"v?(\d[\w.+!-]{0,60})(?:@\w+)?\s*(\([^()]{0,80}\))?\s*(.*)\Z")
_PYTHON = re.compile(r"(\d\.\d{1,2}(?:\.\d{1,2})?)")
_ABSENT = ("not installed", "not found", "未安装")
_SYSTEM = ("platform", "os", "operating system", "system", "操作系统", "系统", "python platform")
_GPUS = (
    "gpu type",
    "gpu model",
    "gpu name",
    "gpu",
    "gpus",
    "cuda device(s)",
    "cuda device",
    "using gpu in script?",
    "npu type",
)
_GPU_KEYS = (*_GPUS, "gpu number", "gpu memory", "显卡", "gpu型号", "显卡型号", "gpu 型号")
_FULL_NAME = re.compile(r"NVIDIA [\w -]{2,60}")


def recognises(block: Block) -> tuple[Line, ...]:
    """The lines of the kind; a single one may be a sentence and is left to prose."""
    lines = tuple(line for line in block.short() if _entry(line) is not None)
    return lines if len(lines) > 1 and any(distribution(_entry(line)[0]) for line in lines) else ()  # type: ignore[index]


def read(lines: Sequence[Line]) -> Iterator[Claim]:
    gpus: list[tuple[str, Line]] = []
    count: int | None = None
    memory, liger = None, any(_entry_of(line)[0].lower().startswith("hip(rocm)") for line in lines)
    for line in lines:
        key, value = _entry_of(line)
        low = key.lower()
        if low == "gpu number" and value.isdigit():
            count = min(int(value), limits.GPUS)
        elif low == "gpu memory":
            memory = re.match(r"(\d{1,4}(?:\.\d{1,3})?) ?gi?b", value, re.I)
        elif low in _GPU_KEYS:
            gpus.append((value, line))
        else:
            yield from _claims(low, key, value, line.number, liger)
    for value, line in gpus:
        yield from _gpu_claims(value, line.number, count, float(memory[1]) if memory else None)


def _claims(low: str, key: str, value: str, number: int, liger: bool) -> Iterator[Claim]:
    if low in _SYSTEM:
        yield from platform_claims(value, number)
        named = gpus_in(value)
        if named and len(named.names) == 1:
            yield Claim("gpus", named.value(), number)
    elif low == "python":
        match = _PYTHON.match(value.removeprefix("Python ").removeprefix("v"))
        if match:
            yield Claim("python", match[1], number)
    elif low == "cuda" and liger and _PYTHON.match(value):
        yield version_claim("cuda.runtime", value, number)
    else:
        name = distribution(key) or key
        if plausible(name.replace(" ", "-")):
            yield from version_claims(name, value, number)


def version_claims(name: str, value: str, number: int) -> Iterator[Claim]:
    """The claim that a value such as ``2.5.0+cu118 (True)`` or ``not installed (NA)`` makes on a distribution."""
    path = f"distributions.{name}"
    if value.lower().startswith(_ABSENT):
        yield distribution_claim(name, "0", number)._replace(value=None)
        return
    match = _VALUE.match(value)
    if match is None:
        return
    if match[3] or re.search(r"\d\.\d", match[2] or ""):
        yield Claim(path, None, number, f"gives more than one version of {name}")
        return
    yield distribution_claim(name, match[1], number)


def _gpu_claims(value: str, number: int, count: int | None, memory_gib: float | None) -> Iterator[Claim]:
    names = [part.strip() for part in value.split(",")]
    if 1 < len(names) <= limits.GPUS and all(_FULL_NAME.fullmatch(name) for name in names):
        yield Claim("gpus", [gpu(name) for name in names], number)
        return
    found = gpus_in(value, context=True)
    plain = re.fullmatch(r"(NVIDIA [\w -]{2,60}?)(?:\s*[x×*]\s*(\d{1,3}))?", value.strip())
    if plain:
        one, times = gpu(plain[1]), int(plain[2]) if plain[2] else None
    elif found and len(found.names) == 1:
        one, times = gpu(found.names[0]), found.number
    else:
        if found:
            yield Claim("gpus", None, number, f"names several GPUs: {', '.join(found.names)}")
        return
    if memory_gib:
        one = {**one, "memory_mib": round(memory_gib * 1024)}
    yield Claim("gpus", listed(one, min(count or times or 0, limits.GPUS)), number)


def _entry(line: Line) -> tuple[str, str] | None:
    """Name and value of a line of this kind."""
    key, colon, value = line.plain.partition(":")
    if not colon or not value or len(key) > 60:
        return None
    low = key.strip().lower()
    if low in _SYSTEM or low in _GPU_KEYS:
        return key.strip(), value.strip()
    bare = _BRACKETS.sub("", key)
    name = _VERSION.sub("", bare).strip()
    versioned = name != bare.strip()
    if not name or not (versioned or distribution(name) or low == "python"):
        return None
    if low.startswith("hip(rocm)"):
        return key.strip(), value.strip()
    if not (distribution(name) or low.startswith("python")) and not plausible(name):
        return None
    return name, value.strip()


def _entry_of(line: Line) -> tuple[str, str]:
    entry = _entry(line)
    assert entry is not None
    return entry
