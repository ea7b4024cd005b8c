"""torch is a build without CUDA or ROCm, so that training runs on the CPU.

torch-npu brings NPUs to such a build. Where nobody states the build, the answer is no: what an installer brings on
Linux unless told otherwise is the CUDA build, and a bug report that says nothing of its build is about a GPU, on AMD's
with a build for ROCm. It singles nobody out: laptops and login nodes have such a build whatever they train with
elsewhere.
"""

from __future__ import annotations

from compatcheck.environment import Environment, Unknown
from compatcheck.matrix._traits import Table
from compatcheck.matrix.matching.match import TraitVerdict


def find(environment: Environment, table: Table) -> TraitVerdict:
    torch = environment.get("distributions.torch")
    labelled = isinstance(torch, str) and torch.partition("+")[2].startswith("rocm")
    built_with_rocm = labelled or isinstance(environment.get("torch_build.hip"), str)
    for_npus = isinstance(environment.get("distributions.torch-npu"), str)
    unsaid = isinstance(environment.get("torch_build.hip"), Unknown) and any(
        gpu.get("gfx") for gpu in environment.facts.get("gpus") or ()
    )
    elsewhere = built_with_rocm or for_npus or unsaid
    return TraitVerdict(environment.get("cuda.runtime") is None and not elsewhere, presumed=True)
