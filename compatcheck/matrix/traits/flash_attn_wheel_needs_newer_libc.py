"""A wheel of flash-attn that was built on Ubuntu 22.04 stands on a system whose C library is older than it asks for.

Built there are the wheels from 2.8.0.post1 on; they ask for glibc 2.32. What pip compiled on the spot fits its system,
and a wheel that others have built says nothing of the C++ interface in its label:
https://github.com/Dao-AILab/flash-attention/blob/v2.8.0.post1/.github/workflows/publish.yml
"""

from __future__ import annotations

from compatcheck.environment import Environment, Unknown
from compatcheck.inference.torch_builds import numbers
from compatcheck.matrix._traits import Table
from compatcheck.matrix.matching.match import Occurrence, TraitVerdict
from compatcheck.packages.versions import parse_version

_FIRST, _NEEDED = "2.8.0.post1", (2, 32)


def find(environment: Environment, table: Table) -> TraitVerdict:
    installed, libc = environment.get("distributions.flash-attn"), environment.get("platform.libc")
    if installed is None or libc is None:
        return TraitVerdict(False)
    facts = {"distributions.flash-attn": installed, "platform.libc": libc}
    missing = tuple(path for path, value in facts.items() if isinstance(value, Unknown))
    if missing:
        return TraitVerdict(None, missing=missing)
    version, first = parse_version(installed), parse_version(_FIRST)
    here = numbers(libc.removeprefix("glibc ")) if libc.startswith("glibc ") else None
    if version is None or first is None or version < first or here is None or here >= _NEEDED:
        return TraitVerdict(False)
    taken = "+cu" in installed and "cxx11abi" in installed.lower()
    summary = f"the flash-attn {installed} wheel requires glibc 2.32; this system has {libc}"
    return TraitVerdict(taken or None, (Occurrence(summary, ("flash-attn",)),), () if taken else tuple(facts)[:1])
