"""What the local label of a prebuilt extension says of the CUDA and the torch that it was compiled for."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from compatcheck.environment import Environment, Unknown

COMPILED = frozenset(
    (
        *("apex", "auto-gptq", "autoawq-kernels", "causal-conv1d", "detectron2", "exllamav2", "flash-attn"),
        *("flash-attn-3", "fused-dense-lib", "grouped-gemm", "gsplat", "mamba-ssm", "mmcv", "natten", "nvdiffrast"),
        *("pytorch3d", "rotary-emb", "sageattention", "sgl-kernel", "spconv", "torch-cluster", "torch-scatter"),
        *("torch-sparse", "torch-spline-conv", "transformer-engine-torch", "vllm", "xentropy-cuda-lib", "xformers"),
    )
)
"""Packages whose files are linked against one torch and one CUDA."""

_CUDA = re.compile(r"cu(\d{2,3})(?!\d)", re.IGNORECASE)
_TORCH = re.compile(r"torch(\d+\.\d+)|pt(\d)\.?(\d{1,2})(?!\d)", re.IGNORECASE)


class Extension(NamedTuple):
    """A prebuilt extension that is installed; None is what its label does not say."""

    name: str
    version: str
    cuda_major: str | None
    torch: str | None


def labelled_extensions(environment: Environment) -> Iterator[Extension]:
    """The installed extensions whose version has a label."""
    for name, version in environment.section("distributions").items():
        label = version.partition("+")[2] if isinstance(version, str) else ""
        if label and name in COMPILED:
            cuda, torch = _CUDA.search(label), _TORCH.search(label)
            built_for = (torch[1] or f"{torch[2]}.{torch[3]}") if torch else None
            yield Extension(name, version, cuda[1][:2] if cuda else None, built_for)


def unlabelled_extensions(environment: Environment) -> tuple[str, ...]:
    """The facts of compiled packages that may be there and whose build nothing shows."""
    installed = environment.section("distributions")
    ranges = environment.section("distribution_ranges")
    plain = [name for name in COMPILED if isinstance(installed.get(name), str) and "+" not in installed[name]]
    asked = [
        name for name in COMPILED.intersection(ranges) if isinstance(environment.get(f"distributions.{name}"), Unknown)
    ]
    return tuple(f"distributions.{name}" for name in sorted({*plain, *asked}))
