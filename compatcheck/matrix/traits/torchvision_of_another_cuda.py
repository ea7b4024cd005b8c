"""torchvision is compiled for a CUDA that torch lacks, so that its operators cannot be loaded.

A wheel for CUDA beside a torch for the CPU, or for another major version. A torchvision for the CPU can be imported
beside any torch. Where nobody looked into the installed torchvision, nothing suggests that the two differ.
"""

from __future__ import annotations

from compatcheck.environment import Environment, Unknown
from compatcheck.matrix._traits import Table
from compatcheck.matrix.matching.match import Occurrence, TraitVerdict

_TORCH = "torch_build.cuda"


def find(environment: Environment, table: Table) -> TraitVerdict:
    companion, torch = environment.get("torchvision_build.cuda"), environment.get(_TORCH)
    if companion is None or isinstance(companion, Unknown):
        return TraitVerdict(False)
    if isinstance(torch, Unknown):
        return TraitVerdict(None, missing=(_TORCH,))
    if torch is not None and torch.partition(".")[0] == companion.partition(".")[0]:
        return TraitVerdict(False)
    summary = f"torchvision is compiled for CUDA {companion}, torch for {f'CUDA {torch}' if torch else 'none'}"
    return TraitVerdict(True, (Occurrence(summary, ("torchvision", "torch")),))
