"""What probes measured here before, remembered until something that could change it has changed.

A result is that of one probe, its sources, what it was asked, and one state of the environment. Only clear verdicts
are kept: what could not run may run the next time, and what is watched deserves a second look.
"""

from __future__ import annotations

import functools
import json
import os
import platform
import time
from collections.abc import Iterator
from contextlib import suppress
from hashlib import sha256

from compatcheck import __version__
from compatcheck.environment import Target
from compatcheck.files import limits, storage
from compatcheck.files.reading import open_text
from compatcheck.probes._criterion import Request
from compatcheck.probes._units import FOLDER, paths, unit
from compatcheck.results.findings import ProbeResult

_KEPT = ("pass", "fail")
_SWITCHES = (
    *("ATEN_", "BITSANDBYTES_", "BNB_", "CUBLAS", "CUDA", "CUDNN", "DNNL_", "DS_", "FLASH_", "GLOO_", "HF_", "HIP_"),
    *("KMP_", "LD_", "MKL_", "NCCL_", "NVIDIA_", "OMP_", "ONEDNN_", "OPENBLAS_", "PYTHON", "PYTORCH_", "ROCM", "TORCH"),
    *("TRANSFORMERS_", "TRITON_", "XFORMERS_"),
)


def recall(name: str, target: Target, request: Request, environment: str) -> ProbeResult | None:
    """What the probe found when it was last asked the same in the same environment; it says from when it is."""
    try:
        with open_text(_path(name, target, request), errors="strict") as stream:
            note = json.loads(stream.read(limits.NOTE_BYTES))
        if note["state"] != _state(name, target, request, environment) or note["outcome"] not in _KEPT:
            return None
        measured = {**note["measured"], "remembered": str(note["when"])}
        return ProbeResult(name, note["outcome"], f"{note['why']} (remembered from {note['when']})", measured)
    except (OSError, ValueError, RecursionError, KeyError, TypeError):
        return None


def remember(result: ProbeResult, target: Target, request: Request, environment: str) -> None:
    """Keep a verdict; where nothing can be written it is measured again next time."""
    if result.outcome not in _KEPT or not getattr(unit(result.probe), "LASTING", True):
        return
    with suppress(OSError):
        note = {
            "state": _state(result.probe, target, request, environment),
            "when": time.strftime("%Y-%m-%d %H:%M:%S"),
            "outcome": result.outcome,
            "why": result.why,
            "measured": result.measured,
        }
        storage.write_note(_path(result.probe, target, request), json.dumps(note, ensure_ascii=False))


def _path(name: str, target: Target, request: Request) -> str:
    """One note for each probe, question and interpreter: a newer state takes the place of an older one."""
    word = _word(target.executable, json.dumps(request, sort_keys=True, default=str))
    return os.path.join(storage.cache_folder(), "probes", f"{name}-{word[:16]}.json")


def _state(name: str, target: Target, request: Request, environment: str) -> str:
    switches = sorted((key, value) for key, value in os.environ.items() if key.startswith(_SWITCHES))
    folders = [(path, _modified(path)) for path in target.search_path]
    files = [(key, list(_contents(value))) for key, value in sorted(request.items()) if isinstance(value, str)]
    parts = (__version__, _sources(name), target.version, environment, switches, folders, files, _processor())
    return _word(*map(repr, parts))


@functools.cache
def _sources(name: str) -> str:
    """The probe's own file and the machinery of all."""
    files = [
        paths()[name],
        *sorted(path for path in FOLDER.rglob("*.py") if "/_" in f"/{path.relative_to(FOLDER).as_posix()}"),
    ]
    return _word(*(path.read_text(encoding="utf-8") for path in files))


def _contents(path: str) -> Iterator[tuple[str, str]]:
    """The state of a file that the request names, or of the files of such a folder."""
    if os.path.isabs(path) or os.path.isfile(path):
        yield path, _modified(path)
        if os.path.isdir(path):
            for each in sorted(os.listdir(path)):
                yield each, _modified(os.path.join(path, each))


def _modified(path: str) -> str:
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return ""
    return f"{status.st_mtime_ns} {status.st_size}"


@functools.cache
def _processor() -> str:
    """What of the processor chooses kernels: its name, its instructions, how many there are."""
    name = platform.processor()
    try:
        with open_text("/proc/cpuinfo") as stream:
            lines = stream.read(1 << 16).splitlines()
        name = "\n".join(sorted({line for line in lines if line.startswith(("model name", "flags", "Features"))}))
    except OSError:
        pass
    return _word(platform.machine(), name, str(os.cpu_count()))


def _word(*parts: str) -> str:
    return sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()
