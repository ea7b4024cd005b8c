"""The platform of a snapshot as uv names it, for resolving on another machine."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_MANYLINUX = (17, 28, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40)
"""The releases of glibc 2 that uv has a platform for."""
_OTHERS = {
    ("Darwin", "arm64"): "aarch64-apple-darwin",
    ("Darwin", "x86_64"): "x86_64-apple-darwin",
    ("Windows", "AMD64"): "x86_64-pc-windows-msvc",
    ("Windows", "ARM64"): "aarch64-pc-windows-msvc",
}


def platform_of(platform: Mapping[str, Any]) -> str | None:
    """The name for a snapshot's ``platform``, None where it says too little; see ``uv help pip compile``."""
    system, machine = platform.get("system"), platform.get("machine")
    if system != "Linux" or machine not in ("x86_64", "aarch64"):
        return _OTHERS.get((str(system), str(machine)))
    glibc = re.match(r"glibc 2\.(\d+)", platform.get("libc") or "")
    known = [release for release in _MANYLINUX if glibc and release <= int(glibc[1])]
    return f"{machine}-manylinux_2_{known[-1]}" if known else f"{machine}-unknown-linux-gnu"
