"""nvcc and torch are of CUDA versions that DeepSpeed does not let be combined when it compiles an operator.

Any two of CUDA 10, 11 or 12 go together; of CUDA 13 and newer, up to DeepSpeed 0.19.5, a version with itself alone.
Where DeepSpeed compiles nothing that does no harm, so the trait singles nobody out.
https://github.com/deepspeedai/DeepSpeed/blob/v0.19.5/op_builder/builder.py (cuda_minor_mismatch_ok)
"""

from __future__ import annotations

from compatcheck.environment import Environment, Unknown
from compatcheck.inference.torch_builds import minor
from compatcheck.matrix._traits import Table
from compatcheck.matrix.matching.match import TraitVerdict

_FORGIVING = ("10", "11", "12")


def find(environment: Environment, table: Table) -> TraitVerdict:
    found = {path: environment.get(path) for path in ("cuda.toolkit", "cuda.runtime")}
    if None in found.values():
        return TraitVerdict(False)
    missing = tuple(path for path, version in found.items() if isinstance(version, Unknown))
    if missing:
        return TraitVerdict(None, missing=missing)
    return TraitVerdict(len({_compared(str(version)) for version in found.values()}) == 2, presumed=True)


def _compared(version: str) -> str:
    major = version.partition(".")[0]
    return major if major in _FORGIVING else minor(version)
