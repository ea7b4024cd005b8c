"""What the image that an environment runs in holds, for the facts that nobody speaks of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compatcheck.environment import Environment, Unknown
from compatcheck.inference.inferred import Inference, InferredFacts, Table
from compatcheck.inference.torch_builds import minor, row_of_image
from compatcheck.language import marked

_TORCH = "distributions.torch"
_SOURCES = ("image.release", "tables/ngc-pytorch")
_NCCL_PACKAGES = tuple(f"distributions.nvidia-nccl-cu{generation}" for generation in (11, 12, 13))
"""NVIDIA's own torch is linked with the image's NCCL and asks for none of these."""


def contents_of_image(view: Environment, table: Table) -> InferredFacts:
    """What the image of the environment holds, where a fact is not stated and no reason says why it is open.

    What torch brings and what is compiled for it counts only while torch is the image's own, which gets its label.
    """
    release = view.get("image.release")
    if not isinstance(release, str):
        return
    row = row_of_image(view, table) or {}
    if not row.get("torch") and view.get(_TORCH) == Unknown():
        reason = f"the torch in release {release} of NVIDIA's container was not looked up"
        yield _TORCH, Inference(Unknown(reason), reason, _SOURCES)
    at = view.locations.get("image") or view.locations.get("image.release")
    for path, value in _contents(view, row, table).items():
        yield path, Inference(value, marked("contents of the container image"), _SOURCES, at)


def _contents(view: Environment, row: Mapping[str, Any], table: Table) -> dict[str, str | None]:
    libc = table("ngc-pytorch")["libc"].get(row.get("ubuntu"))
    implied, own = _system_facts(row, libc), _has_torch_of(view, row)
    if own:
        implied |= _torch_facts(row)
    contents: dict[str, str | None] = {
        path: value for path, value in implied.items() if value and view.get(path) == Unknown()
    }
    held = row.get("torch", "")
    if own and view.get(_TORCH) == held.partition("+")[0]:
        contents[_TORCH] = held
    if own and row.get("nccl"):
        contents |= {path: None for path in _NCCL_PACKAGES if view.get(path) == Unknown()}
    return contents


def _system_facts(row: Mapping[str, Any], libc: str | None) -> dict[str, str | None]:
    return {
        "platform.system": "Linux",
        "platform.libc": libc and f"glibc {libc}",
        "python": row.get("python"),
        "cuda.toolkit": _minor(row.get("cuda")),
    }


def _torch_facts(row: Mapping[str, Any]) -> dict[str, str | None]:
    return {
        "cuda.runtime": _minor(row.get("cuda")),
        **{f"cuda.{name}": row.get(name) for name in ("cudnn", "nccl")},
        **{f"distributions.{name}": row.get(name) for name in ("torch", "transformer-engine", "flash-attn")},
    }


def _minor(version: str | None) -> str | None:
    return minor(version) if version else None


def _has_torch_of(environment: Environment, row: Mapping[str, Any]) -> bool:
    """Whether nobody speaks of torch, or of the very version that the image holds, with its label or without."""
    stated = environment.get(_TORCH)
    if not isinstance(stated, str):
        return bool(stated == Unknown())
    (release, _, label), (held, _, own) = (text.partition("+") for text in (stated, row.get("torch", "")))
    return release == held and (label.startswith(own) or not label)
