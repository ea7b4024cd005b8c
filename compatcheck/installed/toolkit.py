"""The CUDA toolkit that would compile an extension here, from its own files; nvcc is never run."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping

from compatcheck.environment import Environment
from compatcheck.files import limits
from compatcheck.files.reading import open_text

_HEADERS = ("include/cuda.h", "targets/x86_64-linux/include/cuda.h", "targets/sbsa-linux/include/cuda.h")


def collect() -> Environment:
    """``cuda.toolkit``; ``None`` where there is none."""
    return from_environment(os.environ)


def from_environment(environ: Mapping[str, str]) -> Environment:
    """The toolkit that CUDA_HOME, CUDA_PATH, nvcc on PATH or the usual folder name, in torch's own order."""
    folders = [folder for folder in _candidates(environ) if os.path.isdir(folder)]
    for folder in folders:
        version = toolkit_version(folder)
        if version:
            return Environment({"cuda": {"toolkit": version}})
    if folders:
        return Environment({}, {"cuda.toolkit": f"{folders[0]} does not state the version of its CUDA toolkit"})
    return Environment({"cuda": {"toolkit": None}})


def toolkit_version(folder: str) -> str | None:
    """``12.4``, from the first of version.json, version.txt and cuda.h that states it."""
    stated = _search(folder, "version.json", r'"cuda"\s*:\s*\{[^{}]*"version"\s*:\s*"(\d+\.\d+)')
    stated = stated or _search(folder, "version.txt", r"CUDA Version (\d+\.\d+)")
    if stated:
        return stated
    for header in _HEADERS:
        number = _search(folder, header, r"#define\s+CUDA_VERSION\s+(\d{4,6})\b")
        if number:
            return f"{int(number) // 1000}.{int(number) % 1000 // 10}"
    return None


def _candidates(environ: Mapping[str, str]) -> Iterator[str]:
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        if environ.get(variable):
            yield environ[variable]
            return
    name = "nvcc.exe" if os.name == "nt" else "nvcc"
    for folder in environ.get("PATH", "").split(os.pathsep):
        nvcc = os.path.join(folder, name)
        if folder and os.access(nvcc, os.X_OK):
            yield os.path.dirname(os.path.dirname(os.path.realpath(nvcc)))
            yield os.path.dirname(folder)
            break
    yield "/usr/local/cuda"


def _search(folder: str, name: str, pattern: str) -> str | None:
    try:
        with open_text(os.path.join(folder, name)) as stream:
            match = re.search(pattern, stream.read(limits.TOOLKIT_BYTES))
    except OSError:
        return None
    return match[1] if match else None
