"""A stand-in for a package index: releases of the names that real entries speak of, and a uv that sees no other."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from .tiny_wheels import write_wheel

CUDA = {
    "2.3.1": "12.1",
    "2.4.1": "12.1",
    "2.5.0": "12.4",
    "2.5.1": "12.4",
    "2.6.0": "12.4",
    "2.10.0": "12.8",
    "2.11.0": "13.0",
}
_VISION = {"0.19.1": "2.4.1", "0.20.0": "2.5.0", "0.20.1": "2.5.1", "0.21.0": "2.6.0"}


def write_index(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write the wheels and the ``uv.toml`` that offers them alone; the present folder is ``folder`` from now on."""
    links = folder / "links"
    for torch, cuda in CUDA.items():
        runtime = "nvidia-cuda-runtime" if cuda == "13.0" else "nvidia-cuda-runtime-cu12"
        write_wheel(links, "torch", torch, [f"{runtime}=={cuda}.1"])
        write_wheel(links, runtime, f"{cuda}.1")
    for vision, torch in _VISION.items():
        write_wheel(links, "torchvision", vision, [f"torch=={torch}"])
    for version in ("4.47.1", "4.48.0", "4.48.1", "4.49.0", "5.0.0"):
        write_wheel(links, "transformers", version)
    for version in ("0.13.5", "0.14.5", "0.19.8"):
        write_wheel(links, "deepspeed", version, ["torch"])
    write_wheel(links, "peft", "0.14.0", ["torch", "transformers"])
    for name in [name for name in os.environ if name.startswith("UV_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("UV_CACHE_DIR", str(folder / "cache"))
    (folder / "uv.toml").write_text("no-index = true\nfind-links = ['links']\n", encoding="utf-8")
    monkeypatch.chdir(folder)
    return links
