"""A conda build of torch that links MKL at run time stands beside an MKL without the symbol it asks for.

MKL 2024.1 dropped iJIT_NotifyEvent. Wheels carry their own MKL inside: https://github.com/pytorch/pytorch/issues/123097
"""

from __future__ import annotations

from compatcheck.environment import Environment, Unknown
from compatcheck.inference.torch_builds import backend_of
from compatcheck.matrix._traits import Table
from compatcheck.matrix.matching.match import Occurrence, TraitVerdict
from compatcheck.packages.versions import contains, parse_range, parse_version

_MKL, _TORCH = ">=2024.1", "<2.3.0"
_CONDA_PACKAGES = ("pytorch-cuda", "pytorch-mutex", "cudatoolkit")
_CUDA_WHEELS = ("nvidia-cuda-runtime-cu11", "nvidia-cuda-runtime-cu12", "nvidia-cublas-cu11", "nvidia-cublas-cu12")


def find(environment: Environment, table: Table) -> TraitVerdict:
    facts = {path: environment.get(path) for path in ("distributions.mkl", "distributions.torch")}
    if None in facts.values():
        return TraitVerdict(False)
    missing = tuple(path for path, value in facts.items() if isinstance(value, Unknown))
    if missing:
        return TraitVerdict(None, missing=missing)
    mkl, torch = (parse_version(value) for value in facts.values())
    if mkl is None or torch is None:
        return TraitVerdict(None, missing=tuple(facts))
    fits = not contains(parse_range(_MKL), mkl) or not contains(parse_range(_TORCH), torch)
    if fits or backend_of(facts["distributions.torch"]) or _has(environment, _CUDA_WHEELS):
        return TraitVerdict(False)
    summary = f"torch {torch} from conda links MKL at run time and requires iJIT_NotifyEvent, which mkl {mkl} lacks"
    certain = _has(environment, _CONDA_PACKAGES)
    seen = (Occurrence(summary, ("mkl", "torch"), {"mkl": "<=2024.0"}),)
    return TraitVerdict(certain or None, seen, () if certain else ("distributions.pytorch-mutex",))


def _has(environment: Environment, names: tuple[str, ...]) -> bool:
    return any(environment.get(f"distributions.{name}") not in (None, Unknown()) for name in names)
