"""AWQ's compiled kernels from the package index were built for another minor release of torch than the one installed.

Up to 0.1.8 autoawq carries them, later autoawq-kernels does. What is compiled on the spot, and what the releases on
GitHub hold, has a label (``0.0.6+cu121``) and is left alone.
https://github.com/casper-hansen/AutoAWQ_kernels/blob/v0.0.9/.github/workflows/build.yaml, likewise at the other tags
"""

from __future__ import annotations

from packaging.version import Version

from compatcheck.environment import Environment, Unknown
from compatcheck.inference.torch_builds import minor
from compatcheck.matrix._traits import Table
from compatcheck.matrix.matching.match import Occurrence, TraitVerdict
from compatcheck.packages.versions import is_vendor_build, parse_version

_TORCH = "distributions.torch"
_FIRST_WITHOUT = Version("0.2.0")
_BUILT_FOR = {
    "autoawq": {"0.1.6": "2.1", "0.1.7": "2.1", "0.1.8": "2.1"},
    "autoawq-kernels": {
        "0.0.1": "2.1",
        "0.0.2": "2.1",
        "0.0.3": "2.1",
        "0.0.4": "2.2",
        "0.0.5": "2.2",
        "0.0.6": "2.2",
        "0.0.7": "2.3",
        "0.0.8": "2.4",
        "0.0.9": "2.5",
    },
}


def find(environment: Environment, table: Table) -> TraitVerdict:
    autoawq = environment.get("distributions.autoawq")
    carries_them = isinstance(autoawq, str) and (parse_version(autoawq) or _FIRST_WITHOUT) < _FIRST_WITHOUT
    name = "autoawq" if carries_them else "autoawq-kernels"
    installed, torch = environment.get(f"distributions.{name}"), environment.get(_TORCH)
    if isinstance(installed, Unknown):
        return TraitVerdict(None, missing=(f"distributions.{name}",))
    built_for = _BUILT_FOR[name].get(installed or "")
    if built_for is None or torch is None:
        return TraitVerdict(False)
    if isinstance(torch, Unknown):
        return TraitVerdict(None, missing=(_TORCH,), suspected=True)
    version = parse_version(torch)
    if version is None or built_for == minor(torch):
        return TraitVerdict(False)
    if is_vendor_build(torch) or version.is_devrelease:
        return TraitVerdict(None, missing=(_TORCH,))
    summary = f"{name} {installed} is compiled for torch {built_for}; torch {torch} is installed"
    return TraitVerdict(True, (Occurrence(summary, (name, "torch")),))
