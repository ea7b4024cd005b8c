"""flash-attn is asked for and not there, and torch's builder refuses nvcc, which is of another major CUDA version.

Where nobody says whether flash-attn is installed, that alone is open. Within a major version torch goes on. Where the
newest flash-attn has a wheel for this torch, pip downloads it and compiles nothing: the finding is undetermined.
https://github.com/pytorch/pytorch/pull/97602
https://github.com/Dao-AILab/flash-attention/blob/v2.8.3/.github/workflows/publish.yml
"""

from __future__ import annotations

from compatcheck.environment import Environment, Unknown
from compatcheck.inference.torch_builds import minor
from compatcheck.matrix._traits import Table
from compatcheck.matrix.matching.match import Occurrence, TraitVerdict

_PACKAGE = "distributions.flash-attn"
_TORCHES_WITH_WHEELS = ("2.4", "2.5", "2.6", "2.7", "2.8")
"""For CUDA 12 and Linux on x86_64, those of flash-attn 2.8.3."""
_NEEDED = ("cuda.toolkit", "cuda.runtime", "training.attention")


def find(environment: Environment, table: Table) -> TraitVerdict:
    toolkit, runtime, attention = found = [environment.get(path) for path in _NEEDED]
    installed = environment.get(_PACKAGE)
    missing = tuple(path for path, value in zip(_NEEDED, found, strict=True) if isinstance(value, Unknown))
    if isinstance(installed, str) or None in found or attention not in ("flash_attention_2", Unknown()):
        return TraitVerdict(False)
    if missing:
        return TraitVerdict(None, missing=missing)
    if str(toolkit).partition(".")[0] == str(runtime).partition(".")[0]:
        return TraitVerdict(False)
    seen = Occurrence(f"nvcc is from CUDA {toolkit}, torch is built with CUDA {runtime}", ("flash-attn", "torch"))
    certain = installed is None and not _may_have_wheel(environment, str(runtime))
    return TraitVerdict(certain or None, (seen,), () if certain else (_PACKAGE,))


def _may_have_wheel(environment: Environment, runtime: str) -> bool:
    torch = environment.get("distributions.torch")
    return runtime.startswith("12.") and isinstance(torch, str) and minor(torch) in _TORCHES_WITH_WHEELS
