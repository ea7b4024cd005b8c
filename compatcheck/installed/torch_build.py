"""How the installed torch was built, read from its files; torch itself is never imported."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from typing import Any

from compatcheck.environment import Environment, Target
from compatcheck.files.reading import start_of
from compatcheck.installed._architectures import compiled_architectures
from compatcheck.installed.distributions import Installation, Inventory, scan

_ASSIGNMENT = re.compile(r"^(cuda|hip|git_version)\s*(?::[^=\n]*)?=\s*(None|'[^'\n]*'|\"[^\"\n]*\")\s*$", re.MULTILINE)
_VERSION = re.compile(r"\S*\d\S*")
_LIBRARY = re.compile(r"nvidia-(cudnn|nccl)-cu(\d+)\Z")
_LABEL = re.compile(r"^__version__ *= *['\"][^'\"\n+]*\+(?:(cpu)|cu(\d+)(\d))['\"]", re.MULTILINE)
_COMPANIONS = ("torchvision", "torchaudio")
_BUNDLED = "torch ships its own copy, and no distribution states the version of this copy"


def collect(target: Target, inventory: Inventory | None = None, architectures: bool = True) -> Environment:
    """``torch_build`` and ``cuda.runtime``, ``cuda.cudnn``, ``cuda.nccl``; absent for a CPU build.

    ``architectures`` is whether to look for the compiled ones, which reads a piece of torch's library.
    """
    inventory = inventory or scan(target)
    torch = next((found for found in inventory.installed if found.name == "torch"), None)
    companions = dict(_companion_builds(inventory))
    if torch is None:
        return Environment(
            {"cuda": {"runtime": None, **_libraries(inventory, None)}, "torch_build": None, **companions}
        )
    folder = os.path.join(torch.folder, "torch")
    build = read_version_file(os.path.join(folder, "version.py"))
    if build is None:
        return _without_version_file(torch, folder)
    runtime = build.get("cuda")
    known: dict[str, Any] = {
        "cuda": {"runtime": runtime, **_libraries(inventory, runtime)},
        "torch_build": build,
        **companions,
    }
    reasons = {f"cuda.{name}": _BUNDLED for name in ("cudnn", "nccl") if name not in known["cuda"]}
    if runtime and architectures:
        compiled = compiled_architectures(folder)
        if compiled is None:
            reasons["torch_build.architectures"] = f"{folder} does not state the architectures it was compiled for"
        else:
            build["architectures"] = list(compiled)
    return Environment(known, reasons)


def _companion_builds(inventory: Inventory) -> Iterator[tuple[str, Mapping[str, str | None]]]:
    """The CUDA of each companion of torch, by the label in its own ``version.py``, which its metadata may lack."""
    for installation in inventory.installed:
        if installation.name in _COMPANIONS:
            text = start_of(os.path.join(installation.folder, installation.name, "version.py"))
            if label := _LABEL.search(text or ""):
                yield f"{installation.name}_build", {"cuda": None if label[1] else f"{label[2]}.{label[3]}"}


def read_version_file(path: str) -> dict[str, Any] | None:
    """``cuda``, ``hip`` and ``git_version`` as ``torch/version.py`` states them, or ``None`` without one."""
    text = start_of(path)
    if text is None:
        return None
    stated = {name: None if value == "None" else value[1:-1] for name, value in _ASSIGNMENT.findall(text)}
    versions = [value for name in ("cuda", "hip") if (value := stated.get(name))]
    return stated if "cuda" in stated and all(_VERSION.fullmatch(each) for each in versions) else None


def _without_version_file(torch: Installation, folder: str) -> Environment:
    unread = os.path.join(folder, "version.py")
    reason = f"torch {torch.version} is installed, but {unread} does not say how it was built"
    return Environment({}, {"torch_build": reason, "cuda.runtime": reason, "cuda.cudnn": reason, "cuda.nccl": reason})


def _libraries(inventory: Inventory, runtime: str | None) -> Mapping[str, str | None]:
    """cuDNN and NCCL from their distributions: those for torch's CUDA generation first.

    Where torch has a CUDA runtime and no distribution brings the library, torch bundles it.
    """
    generation = (runtime or "").partition(".")[0]
    found: dict[str, str | None] = {} if runtime else {"cudnn": None, "nccl": None}
    for installation in inventory.installed:
        match = _LIBRARY.match(installation.name)
        if match and installation.version and (not found.get(match[1]) or match[2] == generation):
            found[match[1]] = installation.version
    return found
