"""What a rank says of itself: its snapshot, with what only matters between machines."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from compatcheck import __version__, cluster, matrix
from compatcheck.cluster import Has, Hello
from compatcheck.environment import Environment, Target
from compatcheck.errors import CompatcheckError
from compatcheck.files import limits
from compatcheck.installed.gpu_state import collect_gpu_state
from compatcheck.installed.target import NoEnvironmentError, find_target, own_target
from compatcheck.installed.trust import may_start
from compatcheck.pipelines.environment import Request, environment

# Variables of communication and of the loader; none that holds a secret or is each rank's own.
_PREFIXES = (
    "NCCL_",
    "TORCH_NCCL_",
    "GLOO_",
    "UCX_",
    "FI_",
    "OFI_",
    "RCCL_",
    "OMP_",
    "MKL_",
    "CUDA_",
    "PYTORCH_",
    "DS_",
)
_NAMES = ("LD_LIBRARY_PATH", "LD_PRELOAD", "PYTHONPATH", "TOKENIZERS_PARALLELISM")
_EACH_RANKS_OWN = ("CUDA_VISIBLE_DEVICES", "NCCL_HOSTID", "CUDA_MPS_PIPE_DIRECTORY", "CUDA_MPS_LOG_DIRECTORY")


class Presented(NamedTuple):
    """What a rank has, its snapshot, and the interpreter its probes run in, None where there is none.

    ``refused`` is the environment whose interpreter may not be started.
    """

    has: Has
    snapshot: Mapping[str, Any]
    target: Target | None
    refused: str | None = None


def hello(launch: cluster.Launch) -> Hello:
    """How a rank presents itself."""
    return Hello(
        rank=launch.rank,
        local_rank=launch.local_rank,
        node=launch.node[: limits.NODE_CHARACTERS],
        place=launch.place,
        version=__version__,
    )


def present(known: matrix.Matrix, paths: tuple[str, ...], python: str | None, hash_weights: bool) -> Presented:
    """What this machine has; where that cannot be told, the reason goes in its place."""
    try:
        found, target = here(known, paths, python, hash_weights)
    except CompatcheckError as error:
        return Presented(Has(unread=str(error)[: limits.WORDS_CHARACTERS]), {}, None)
    snapshot = found.dump()
    if target is not None and not may_start(target, (), os.environ):
        return Presented(Has(digest=cluster.digest(snapshot)), snapshot, None, target.prefix)
    torch = found.section("distributions").get("torch")
    gpus = len(found.facts.get("gpus") or ()) if found.section("torch_build").get("cuda") else 0
    return Presented(
        Has(
            digest=cluster.digest(snapshot),
            torch=torch and torch[: limits.WORDS_CHARACTERS],
            gpus=min(gpus, limits.GPUS),
        ),
        snapshot,
        target,
    )


def here(
    known: matrix.Matrix, paths: tuple[str, ...], python: str | None, hash_weights: bool
) -> tuple[Environment, Target | None]:
    """The environment of this machine, with its GPUs' state and the variables of communication that are set."""
    target = _target(python)
    request = Request(python, hash_weights=hash_weights, imports=False, target=target)
    found = environment(known, paths, request).environment
    variables = {name: value for name, value in os.environ.items() if _between_machines(name)}
    return found.overlay(Environment({"environ": variables})).overlay(collect_gpu_state(target)), target


def _target(python: str | None) -> Target:
    """The interpreter that is named, active or found, else our own, in which a launcher starts every rank."""
    try:
        return find_target(python, os.environ)
    except NoEnvironmentError:
        return own_target(os.environ)


def _between_machines(name: str) -> bool:
    return (name.startswith(_PREFIXES) or name in _NAMES) and name not in _EACH_RANKS_OWN
