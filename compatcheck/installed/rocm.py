"""AMD GPUs and the installed ROCm, from the files of the kernel driver and of ROCm; no tool of either is run."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from typing import Any

from compatcheck.environment import Environment
from compatcheck.files.reading import start_of

_NODES = "/sys/class/kfd/kfd/topology/nodes"
_CARDS = "/sys/class/drm"
_RELEASE = re.compile(r"\d+\.\d+(?:\.\d+)?")


def collect() -> Environment:
    """``rocm.version`` and an entry of ``gpus`` for each AMD GPU; nothing on a machine without AMD's driver."""
    if not os.path.isdir(_NODES):
        return Environment({})
    return from_folders(_NODES, _CARDS, os.environ)


def from_folders(nodes: str, cards: str, environ: Mapping[str, str]) -> Environment:
    """The same, from the folders that hold the topology and the cards."""
    gpus = list(_gpus(nodes, cards))
    known: dict[str, Any] = {"gpus": gpus} if gpus else {}
    version = _version(environ)
    if version:
        known["rocm"] = {"version": version}
    return Environment(known)


def target_of(number: int) -> str:
    """``gfx90a`` of 90010, as the kernel writes it: major, minor and stepping of two digits each, in hexadecimal."""
    return f"gfx{number // 10000}{number // 100 % 100:x}{number % 100:x}"


def _version(environ: Mapping[str, str]) -> str | None:
    """The release that ROCM_PATH or the usual folder states; ``None`` where there is none, or it does not say."""
    folder = environ.get("ROCM_PATH") or "/opt/rocm"
    match = _RELEASE.match(start_of(os.path.join(folder, ".info", "version")) or "")
    return match[0] if match else None


def _gpus(nodes: str, cards: str) -> Iterator[dict[str, Any]]:
    """A node of the topology with a target other than 0 is a GPU; the processors are nodes, too."""
    for node in sorted(os.listdir(nodes), key=lambda name: (len(name), name)):
        properties = _properties(os.path.join(nodes, node, "properties"))
        if not (number := properties.get("gfx_target_version")):
            continue
        gpu: dict[str, Any] = {"compute_capability": None, "gfx": target_of(number)}
        if name := _product_name(cards, properties.get("drm_render_minor")):
            gpu["name"] = name
        if memory := _memory(os.path.join(nodes, node, "mem_banks")):
            gpu["memory_mib"] = memory
        yield gpu


def _product_name(cards: str, minor: int | None) -> str | None:
    name = (start_of(os.path.join(cards, f"renderD{minor}", "device", "product_name")) or "").strip()
    return name or None


def _memory(banks: str) -> int:
    """MiB of all banks."""
    folders = os.listdir(banks) if os.path.isdir(banks) else ()
    sizes = (_properties(os.path.join(banks, bank, "properties")).get("size_in_bytes", 0) for bank in folders)
    return sum(sizes) >> 20


def _properties(path: str) -> dict[str, int]:
    lines = (line.split() for line in (start_of(path) or "").splitlines())
    return {
        words[0]: int(words[1]) for words in lines if len(words) == 2 and words[1].isdecimal() and len(words[1]) < 20
    }
