"""Operating systems by the names that tools and people give them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from compatcheck.bug_report._claims import Claim
from compatcheck.files.lazy_patterns import LazyPattern

_LINUX = re.compile(
    r"\b(?:linux|ubuntu|debian|centos|rocky|rhel|red ?hat|fedora|suse|kylin|openeuler|alma|amzn|wsl2?|colab|kaggle)",
    re.I,
)
_WINDOWS = LazyPattern(
    r"\b(?:windows|win1[01])(?![a-z])|\bMSC v\.1\d{3}\b",
    re.I,
    marks=(
        "win",
        "msc v.1",
    ),
)
_MACOS = LazyPattern(
    r"\b(?:macos|mac os|darwin|os x)(?![a-z])",
    re.I,
    marks=(
        "macos",
        "mac os",
        "darwin",
        "os x",
    ),
)
_MACHINE = re.compile(r"(?:\b|_)(x86_64|amd64|aarch64|arm64)(?:\b|-)", re.I)
_ARM = ("aarch64", "arm64")
_GLIBC = re.compile(r"glibc[- ]?(\d\.\d{1,2})\b")
_RELEASE = LazyPattern(
    r"\b(ubuntu|debian|rhel|rocky|alma|centos)[a-z ]{0,30}[- ]?(\d{1,2})(?!\d)(\.\d\d(?!\d))?",
    re.I,
    marks=(
        "ubuntu",
        "debian",
        "rhel",
        "rocky",
        "alma",
        "centos",
    ),
)
_GLIBC_OF = {
    "ubuntu": {"16.04": "2.23", "18.04": "2.27", "20.04": "2.31", "22.04": "2.35", "24.04": "2.39"},
    "debian": {"10": "2.28", "11": "2.31", "12": "2.36"},
}
_OF_RED_HAT = {"7": "2.17", "8": "2.28", "9": "2.34"}


def platform_claims(text: str, line: int) -> Iterator[Claim]:
    """``platform.system``, ``platform.machine`` and ``platform.libc`` as far as a name tells them."""
    system = system_of(text)
    if system:
        yield Claim("platform.system", system, line)
    machines = _MACHINE.findall(text)
    arms = {name.lower() in _ARM for name in machines}
    if len(arms) == 1:
        arm = arms.pop()
        other = {"Windows": "AMD64", "Linux": "x86_64"}.get(system or "", machines[0])
        yield Claim("platform.machine", ("arm64" if system == "Darwin" else "aarch64") if arm else other, line)
    libc = _glibc_of(text)
    if libc and system != "Windows":
        yield Claim("platform.libc", f"glibc {libc}", line)


def _glibc_of(text: str) -> str | None:
    """The C library that is named, else the one that a distribution's release came with."""
    if named := _GLIBC.search(text):
        return named[1]
    release = _RELEASE.search(text)
    if release is None:
        return None
    name, major, month = release[1].lower(), release[2], release[3] or ""
    return _GLIBC_OF.get(name, _OF_RED_HAT).get(major + month if name == "ubuntu" else major)


def system_of(text: str) -> str | None:
    """What ``platform.system()`` gives there, or None where the text names no system or several."""
    found = [
        name for name, pattern in (("Linux", _LINUX), ("Windows", _WINDOWS), ("Darwin", _MACOS)) if pattern.search(text)
    ]
    if "Linux" in found and re.search(r"\bwsl", text, re.I):
        return "Linux"
    return found[0] if len(found) == 1 else None
