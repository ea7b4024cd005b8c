"""NCCL comes from a package for CUDA 11 that was built with CUDA 11.0, and so cannot be captured in a CUDA graph.

NCCL prints what it is built with: "2.19.3+cuda11.0" of nvidia-nccl-cu11 2.19.3, "2.18.6+cuda11.8" inside torch 2.1.
Torch 2.2 to 2.4 for CUDA 11.8 ask for the packages at fault. Without vllm, which captures, that singles nobody out.
Where nvidia-nccl-cu12 is there too, its library is the one in use.
https://github.com/vllm-project/vllm/issues/3069, https://github.com/vllm-project/vllm/issues/5679
"""

from __future__ import annotations

from compatcheck.environment import Environment, Unknown
from compatcheck.inference.torch_builds import backend_of
from compatcheck.matrix._traits import Table
from compatcheck.matrix.matching.match import TraitVerdict
from compatcheck.packages.versions import contains, parse_range, parse_version

_NEWER = "nvidia-nccl-cu12"
_PACKAGES, _TORCH = parse_range(">=2.19.3,<=2.20.5"), parse_range(">=2.2.0,<2.5.0")


def find(environment: Environment, table: Table) -> TraitVerdict:
    package, torch = (environment.get(f"distributions.{name}") for name in ("nvidia-nccl-cu11", "torch"))
    presumed = not isinstance(environment.get("distributions.vllm"), str)
    asked = environment.section("distribution_ranges")
    if _NEWER in asked or isinstance(environment.get(f"distributions.{_NEWER}"), str):
        return TraitVerdict(False)
    if isinstance(package, str):
        version = parse_version(package)
        return TraitVerdict(version is not None and contains(_PACKAGES, version), presumed=presumed)
    if package is None or torch is None:
        return TraitVerdict(False)
    if isinstance(torch, Unknown) or backend_of(torch) is None:
        return TraitVerdict(None, missing=("distributions.nvidia-nccl-cu11",))
    version = parse_version(torch)
    asked_for = backend_of(torch) == "cu118" and version is not None and contains(_TORCH, version)
    return TraitVerdict(asked_for, presumed=presumed)
