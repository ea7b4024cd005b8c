"""flash-attn is asked for and not there, and torch's builder refuses nvcc, which is of another major CUDA version.

Where nobody says whether flash-attn is installed, that alone is open. Within a major version torch goes on.
https://github.com/pytorch/pytorch/pull/97602
"""

from __future__ import annotations

from compatcheck.environment import Environment, Unknown
from compatcheck.matrix._traits import Table
from compatcheck.matrix.matching.match import Occurrence, TraitVerdict

_PACKAGE = "distributions.flash-attn"
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
    return TraitVerdict(True if installed is None else None, (seen,), () if installed is None else (_PACKAGE,))
