"""The Python version and the platform; the target runs on this machine, so its platform is ours."""

from __future__ import annotations

import os
import sys
from typing import Any

from compatcheck.environment import Environment, Target

_SYSTEMS = {"cygwin": "CYGWIN", "darwin": "Darwin"}


def collect(target: Target) -> Environment:
    """``python`` and ``target``."""
    described = {"executable": target.executable, "prefix": target.prefix, "selected_by": target.selected_by}
    return Environment({"python": target.version, "target": described})


def collect_platform() -> Environment:
    """``platform``, which is the same for every interpreter of this machine."""
    platform: dict[str, Any] = {"system": system(), "machine": machine()}
    reasons = {}
    libc = _libc()
    if libc or platform["system"] != "Linux":
        platform["libc"] = libc
    else:
        reasons["platform.libc"] = "neither glibc nor musl was recognised"
    return Environment({"platform": platform}, reasons)


def system() -> str:
    """What ``platform.system()`` gives, without the cost of importing ``platform``."""
    if sys.platform == "win32":
        return "Windows"
    return _SYSTEMS.get(sys.platform) or os.uname().sysname


def machine() -> str:
    """What ``platform.machine()`` gives, without the cost of importing ``platform``."""
    if sys.platform == "win32":
        return os.environ.get("PROCESSOR_ARCHITEW6432") or os.environ.get("PROCESSOR_ARCHITECTURE", "")
    return os.uname().machine


def _libc() -> str | None:
    if sys.platform == "win32":
        return None
    try:
        named = os.confstr("CS_GNU_LIBC_VERSION")
    except (AttributeError, ValueError, OSError):
        named = None
    return named or _musl()


def _musl() -> str | None:
    """musl has no call for its version; its loader's name is the only mark in the file system."""
    try:
        loaders = [name for name in os.listdir("/lib") if name.startswith("ld-musl-")]
    except OSError:
        return None
    return "musl" if loaders else None
