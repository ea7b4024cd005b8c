"""What the image that an environment runs in holds, for the facts that nobody speaks of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compatcheck.environment import Environment, Unknown, lookup
from compatcheck.inference.torch_builds import minor, row_of_image
from compatcheck.matrix.loading import Matrix

_TORCH = "distributions.torch"
_NCCL_PACKAGES = tuple(f"distributions.nvidia-nccl-cu{generation}" for generation in (11, 12, 13))
"""NVIDIA's own torch is linked with the image's NCCL and asks for none of these."""


def with_contents_of_image(matrix: Matrix, environment: Environment) -> Environment:
    """The environment with what its image holds, where a fact is not stated and no reason says why it is open.

    What torch brings and what is compiled for it counts only while torch is the image's own, which gets its label.
    """
    if not isinstance(lookup(environment, "image.release"), str):
        return environment
    row = row_of_image(environment, matrix.table) or {}
    libc = matrix.table("ngc-pytorch")["libc"].get(row.get("ubuntu"))
    implied, own = _of_system(row, libc), _has_torch_of(environment, row)
    if own:
        implied |= _of_torch(row)
    filled: dict[str, str | None] = {
        path: value for path, value in implied.items() if value and lookup(environment, path) == Unknown()
    }
    held = row.get("torch", "")
    if own and lookup(environment, _TORCH) == held.partition("+")[0]:
        filled[_TORCH] = held
    if own and row.get("nccl"):
        filled |= {path: None for path in _NCCL_PACKAGES if lookup(environment, path) == Unknown()}
    return _filled(_with_reason(environment, row), filled)


def _of_system(row: Mapping[str, Any], libc: str | None) -> dict[str, str | None]:
    return {
        "platform.system": "Linux",
        "platform.libc": libc and f"glibc {libc}",
        "python": row.get("python"),
        "cuda.toolkit": _minor(row.get("cuda")),
    }


def _of_torch(row: Mapping[str, Any]) -> dict[str, str | None]:
    return {
        "cuda.runtime": _minor(row.get("cuda")),
        **{f"cuda.{name}": row.get(name) for name in ("cudnn", "nccl")},
        **{f"distributions.{name}": row.get(name) for name in ("torch", "transformer-engine", "flash-attn")},
    }


def _minor(version: str | None) -> str | None:
    return minor(version) if version else None


def _has_torch_of(environment: Environment, row: Mapping[str, Any]) -> bool:
    """Whether nobody speaks of torch, or of the very version that the image holds, with its label or without."""
    stated = lookup(environment, _TORCH)
    if not isinstance(stated, str):
        return bool(stated == Unknown())
    (release, _, label), (held, _, own) = (text.partition("+") for text in (stated, row.get("torch", "")))
    return release == held and (label.startswith(own) or not label)


def _with_reason(environment: Environment, row: Mapping[str, Any]) -> Environment:
    if row.get("torch") or lookup(environment, _TORCH) != Unknown():
        return environment
    release = lookup(environment, "image.release")
    reason = f"the torch in release {release} of NVIDIA's container was not looked up"
    return environment._replace(reasons={**environment.reasons, _TORCH: reason})


def _filled(environment: Environment, stated: Mapping[str, str | None]) -> Environment:
    """The environment with these facts by path, each where the image is named."""
    facts: dict[str, Any] = dict(environment.facts)
    for path, value in stated.items():
        section, _, name = path.partition(".")
        facts[section] = {**(facts.get(section) or {}), name: value} if name else value
    at = environment.locations.get("image") or environment.locations.get("image.release")
    places = dict.fromkeys(stated, at) if at else {}
    return environment._replace(facts=facts, locations={**places, **environment.locations})
