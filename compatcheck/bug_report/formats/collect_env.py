"""What `python -m torch.utils.collect_env` prints, and vLLM's longer version of it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from compatcheck.bug_report._blocks import Block, Line
from compatcheck.bug_report._claims import Claim, version_claim
from compatcheck.bug_report._gpus import gpu
from compatcheck.bug_report._platform import platform_claims
from compatcheck.bug_report.formats import conda_list, pip_freeze
from compatcheck.files.lazy_patterns import LazyPattern

TITLE = "collect_env of torch or vLLM"
_MARKS = ("CUDA used to build PyTorch", "ROCM used to build PyTorch", "CUDA runtime version", "[pip3]", "[conda]")
_OWN = re.compile(r"\s*(?:\[(?:pip3?|conda)\]|[A-Z][\w ()/-]{1,60}:(?:\s|\Z)|GPU \d|[A-Z][A-Z0-9_]{3,60}=)")
_LISTED = LazyPattern(
    r"\s*\[(pip3?|conda)\]\s+(.*)",
    marks=(
        "pip",
        "conda",
    ),
)
_GPU = LazyPattern(
    r"(?:GPU models and configuration\s*:\s*)?\s*GPU (\d{1,3}): (.{2,80}?)(?: \(UUID.*)?\s*\Z", marks=("gpu ",)
)
_VARIABLE = re.compile(r"([A-Z][A-Z0-9_]{3,60})=(\S.{0,400})\Z")
_NUMBER = re.compile(r"v?(\d+(?:\.\d+)+[\w.+]*)")


def recognises(block: Block) -> tuple[Line, ...]:
    """The lines of a fence; outside of one, those from its first line to its last."""
    lines = tuple(block.short())
    if not any(line.text.lstrip().startswith(_MARKS) for line in lines):
        return ()
    own = [index for index, line in enumerate(lines) if block.fenced or _OWN.match(line.text)]
    return lines[own[0] : own[-1] + 1]


def read(lines: Sequence[Line]) -> Iterator[Claim]:
    gpus: dict[str, tuple[str, int]] = {}
    for line in lines:
        listed, seen = _LISTED.match(line.text), _GPU.match(line.text)
        if listed:
            row = line._replace(text=listed[2], plain=listed[2])
            yield from conda_list.row_claims(row) if listed[1] == "conda" else pip_freeze.read((row,))
        elif seen:
            gpus.setdefault(seen[1], (seen[2], line.number))
        else:
            key, colon, value = line.text.partition(":")
            if colon:
                yield from _claims(" ".join(key.split()), value.strip(), line.number)
            variable = _VARIABLE.match(line.text.strip())
            if variable:
                yield Claim(f"environ.{variable[1]}", variable[2], line.number)
    if gpus:
        yield Claim("gpus", [gpu(name) for name, _ in gpus.values()], next(iter(gpus.values()))[1])


def _claims(key: str, value: str, number: int) -> Iterator[Claim]:
    match = _NUMBER.match(value)
    version = match[1] if match else None
    if key == "CUDA used to build PyTorch" and (version or value == "N/A"):
        yield Claim("cuda.runtime", version, number)
    elif key == "ROCM used to build PyTorch" and version:
        yield version_claim("torch_build.hip", version.partition("-")[0], number)
    elif key == "CUDA runtime version" and version:
        yield Claim("cuda.toolkit", ".".join(version.split(".")[:2]), number)
    elif key == "Nvidia driver version" and version:
        yield version_claim("cuda.driver", version, number)
    elif key in ("PyTorch version", "vLLM Version") and version:
        name = "torch" if key.startswith("PyTorch") else "vllm"
        yield version_claim(f"distributions.{name}", version, number)
    elif key == "Python version" and version:
        yield Claim("python", version, number)
    elif key in ("OS", "Python platform"):
        yield from platform_claims(value, number)
    elif key == "Libc version" and value.startswith("glibc-"):
        yield Claim("platform.libc", value.replace("-", " ", 1), number)
