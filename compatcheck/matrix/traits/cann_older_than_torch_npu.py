"""CANN is older than the one that the torch-npu release is published for."""

from __future__ import annotations

import re

from packaging.version import Version

from compatcheck.environment import Environment, Unknown
from compatcheck.matrix._traits import Table
from compatcheck.matrix.matching.match import Occurrence, TraitVerdict
from compatcheck.packages.versions import parse_version

_FACTS = ("npu.cann", "distributions.torch-npu")
_RELEASE = re.compile(r"v?(\d+(?:\.\d+)+)(?:[.-]?(rc)[.-]?(\d+))?", re.IGNORECASE)


def find(environment: Environment, table: Table) -> TraitVerdict:
    """Compare by release and candidate; alpha and beta builds of one count as the candidate itself."""
    cann, torch_npu = (environment.get(path) for path in _FACTS)
    if cann is None or torch_npu is None:
        return TraitVerdict(False)
    missing = tuple(path for path, value in zip(_FACTS, (cann, torch_npu)) if isinstance(value, Unknown))
    if missing:
        return TraitVerdict(None, missing=missing)
    wanted_by: dict[str, str] = table("torch-npu-cann")["cann"]
    present, wanted = _parse_cann(cann), wanted_by.get(torch_npu.partition("+")[0])
    if present is None or wanted is None:
        return TraitVerdict(None, missing=_FACTS[:1])
    if present >= Version(wanted):
        return TraitVerdict(False)
    fitting = [each for each, of in wanted_by.items() if Version(of) <= present and _same_torch(each, torch_npu)]
    pins = {"torch-npu": f"=={max(fitting, key=Version)}"} if fitting else {}
    summary = f"torch-npu {torch_npu} is published for CANN {wanted}; CANN {cann} is installed"
    return TraitVerdict(True, (Occurrence(summary, ("torch-npu", "cann"), pins),))


def _parse_cann(text: str) -> Version | None:
    """``8.0.RC2.alpha001`` is 8.0rc2, ``7.0.0beta1`` is 7.0.0."""
    match = _RELEASE.match(text.strip())
    return Version(f"{match[1]}rc{match[3]}" if match[2] else match[1]) if match else None


def _same_torch(one: str, other: str) -> bool:
    first, second = parse_version(one), parse_version(other)
    return first is not None and second is not None and first.release == second.release
