"""Messages by which a run ends, what each means in words, and the symptoms that entries call them by."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from compatcheck.language import gettext as _
from compatcheck.language import marked


class Failure(NamedTuple):
    """One kind of message. ``fatal`` ones end a run by themselves, without a traceback."""

    kind: str
    words: str
    regex: re.Pattern[str]
    symptoms: frozenset[str]
    fatal: bool = False
    narrow: bool = False


_SYMPTOMS = {
    "cuda-oom": "out-of-memory",
    "nccl-timeout": "collective-timeout",
    "no-sync-incompatible": "sharding-failure",
    "cuda-driver-too-old": "driver-too-old",
    "probabilities-not-finite": "output-nan",
    "inductor-failure": "compile-failure",
    "cublas-failure": "library-failure",
    "nccl-failure": "communication-failure",
}
"""The symptom of a kind of failure that has another name."""


def _failure(kind: str, words: str, regex: str, *symptoms: str, fatal: bool = False, narrow: bool = False) -> Failure:
    shown = frozenset((_SYMPTOMS.get(kind, kind), *symptoms))
    return Failure(kind, words, re.compile(regex), shown, fatal, narrow)


FAILURES = (
    _failure("cuda-oom", "a GPU ran out of memory", r"(?:CUDA|HIP|NPU|XPU) out of memory|OutOfMemoryError", fatal=True),
    _failure(
        "nccl-timeout",
        "a collective timed out: at least one rank stopped or went another way",
        r"Watchdog caught collective operation timeout|Some NCCL operations have failed or timed out|"
        r"Timed out waiting \d+ms for (?:recv|send)",
        "hang",
        fatal=True,
    ),
    _failure(
        "loss-scale-minimum",
        "the fp16 loss scale fell to its minimum: gradients overflow at every scale",
        r"Current loss scale already at minimum|Minimum loss scale reached|Loss scale has reached the minimum",
        "loss-nan",
        "grad-norm-nan",
        fatal=True,
    ),
    _failure("unscale-fp16-gradients", "trainable parameters are float16", r"Attempting to unscale FP16 gradients",
             narrow=True),
    _failure("no-sync-incompatible", "no_sync is entered under ZeRO-2/3", r"no_sync context manager is incompatible",
             "assertion-error", narrow=True),
    _failure("cannot-import-name", "a name is not in the version installed", r"cannot import name ['\"]",
             "import-error"),
    _failure("undefined-symbol", "a compiled library was built for another version", r"undefined symbol",
             "library-load-failure", "import-error"),
    _failure("operator-missing", "a compiled operator is not registered", r"operator \w+::\w+ does not exist",
             narrow=True),
    _failure("library-load-failure", "a shared library cannot be loaded",
             r"cannot open shared object file|version `\w+' not found|Could not load lib\w+", "import-error"),
    _failure("version-check", "a package refuses the version of another",
             r"is required for a normal functioning of this module|Found an incompatible version of", "import-error"),
    _failure("module-not-found", "a module is not installed", r"ModuleNotFoundError|No module named ", "import-error"),
    _failure("unexpected-keyword-argument", "a call and the function it calls are of different releases",
             r"got an unexpected keyword argument|got multiple values for argument|missing \d+ required positional",
             "type-error"),
    _failure("no-kernel-image", "the GPU's architecture is not among those compiled",
             r"no kernel image is available|is not compatible with the current PyTorch installation", narrow=True),
    _failure("cuda-driver-too-old", "the driver is older than the CUDA version needs",
             r"driver on your system is too old|CUDA driver version is insufficient|unsupported toolchain",
             "cuda-unavailable", narrow=True),
    _failure("cuda-unavailable", "no CUDA device can be used",
             r"No CUDA GPUs are available|Torch not compiled with CUDA enabled|Found no NVIDIA driver"),
    _failure("probabilities-not-finite", "the model's output is not finite",
             r"probability tensor contains either", "loss-nan"),
    _failure("illegal-memory-access", "a kernel read or wrote outside its memory", r"illegal memory access"),
    _failure("device-side-assert", "an index lies outside its table, most often a label or a token",
             r"device-side assert"),
    _failure("inductor-failure", "torch.compile failed", r"InductorError|BackendCompilerFailed|torch\._inductor\.exc",
             narrow=True),
    _failure("cublas-failure", "a cuBLAS call failed", r"CUBLAS_STATUS_\w+"),
    _failure("nccl-failure", "an NCCL call failed", r"ncclUnhandledCudaError|ncclSystemError|NCCL error"),
    _failure("killed", "the process was killed, as the kernel does where the host's memory runs out",
             r"Signal 9 \(SIGKILL\)|exitcode\s*:\s*-9\b|Out of memory: Killed process|\bKilled\s*\Z", fatal=True),
    _failure("disk-full", "the disk is full", r"No space left on device"),
    _failure("assertion-error", "an assertion failed", r"AssertionError"),
    _failure("type-error", "a value has another type than the code expects", r"TypeError"),
    _failure("attribute-error", "a name is missing on an object", r"AttributeError"),
    _failure("import-error", "an import failed", r"ImportError"),
)  # fmt: skip

FATAL_MARKS = (
    "out of memory", "OutOfMemory", "Watchdog", "NCCL op", "Timed out", "oss scale", "SIGKILL", "exitcode", "Killed",
)  # fmt: skip
"""One of these stands in every message that is fatal by itself."""

UNKNOWN = Failure("error", "the run ended with an exception", re.compile(r""), frozenset())
_MEMORY = re.compile(r"Tried to allocate ([\d.]+ [KMGT]iB)")
_CAPACITY = re.compile(r"total capacity of ([\d.]+ [KMGT]iB)|([\d.]+ [KMGT]iB) total capacity")
_FREE = re.compile(r"of which ([\d.]+ [KMGT]iB) is free|([\d.]+ [KMGT]iB) free")
_RESERVED = re.compile(r"([\d.]+ [KMGT]iB) is reserved by PyTorch but unallocated")


def kind_of(text: str) -> Failure:
    """The kind of failure that an exception's line tells of."""
    return next((failure for failure in FAILURES if failure.regex.search(text)), UNKNOWN)


def fatal_line(text: str) -> Failure | None:
    """The failure that a line tells of by itself, with no traceback above it."""
    return next((failure for failure in FAILURES if failure.fatal and failure.regex.search(text)), None)


def memory_details(text: str) -> Iterator[str]:
    """The numbers in a message that a GPU ran out of memory."""
    for label, regex in (
        (marked("asked for"), _MEMORY),
        (marked("GPU has"), _CAPACITY),
        (marked("free"), _FREE),
        (marked("reserved but unused"), _RESERVED),
    ):
        match = regex.search(text)
        if match:
            yield f"{_(label)} {next(filter(None, match.groups()))}"
