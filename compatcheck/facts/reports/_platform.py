"""Operating systems by the names that tools and people give them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from compatcheck.facts.reports._claims import Claim

_LINUX = re.compile(
    r"\b(?:linux|ubuntu|debian|centos|rocky|rhel|red ?hat|fedora|suse|kylin|openeuler|alma|amzn|wsl2?|colab|kaggle)",
    re.I,
)
_WINDOWS = re.compile(r"\b(?:windows|win1[01])(?![a-z])", re.I)
_MACOS = re.compile(r"\b(?:macos|mac os|darwin|os x)(?![a-z])", re.I)
_MACHINE = re.compile(r"(?:\b|_)(x86_64|amd64|aarch64|arm64)(?:\b|-)", re.I)
_GLIBC = re.compile(r"glibc[- ]?(\d\.\d{1,2})\b")


def platform_claims(text: str, line: int) -> Iterator[Claim]:
    """``platform.system``, ``platform.machine`` and ``platform.libc`` as far as a name tells them."""
    system = system_of(text)
    if system:
        yield Claim("platform.system", system, line)
    machine = _MACHINE.search(text)
    if machine:
        arm = machine[1].lower() in ("aarch64", "arm64")
        other = {"Windows": "AMD64", "Linux": "x86_64"}.get(system or "", machine[1])
        yield Claim("platform.machine", ("arm64" if system == "Darwin" else "aarch64") if arm else other, line)
    libc = _GLIBC.search(text)
    if libc and system != "Windows":
        yield Claim("platform.libc", f"glibc {libc[1]}", line)


def system_of(text: str) -> str | None:
    """What ``platform.system()`` gives there, or None where the text names no system or several."""
    found = [
        name for name, pattern in (("Linux", _LINUX), ("Windows", _WINDOWS), ("Darwin", _MACOS)) if pattern.search(text)
    ]
    if "Linux" in found and re.search(r"\bwsl", text, re.I):
        return "Linux"
    return found[0] if len(found) == 1 else None
