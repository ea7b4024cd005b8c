"""The flash-attn wheel names another minor release of torch than the one installed, or one that this was cut before.

Only a wheel taken by hand names one, in its label: what an installer makes of the source is built for the torch that is
there. https://github.com/Dao-AILab/flash-attention/blob/v2.8.3/.github/workflows/publish.yml
"""

from __future__ import annotations

import re

from compatcheck.environment import Environment, Unknown
from compatcheck.inference.torch_builds import minor
from compatcheck.matrix._traits import Table
from compatcheck.matrix.matching.match import Occurrence, TraitVerdict
from compatcheck.packages.versions import is_vendor_build, parse_version

_LABEL = re.compile(r"\+cu\d+torch(\d+\.\d+)(cxx11abiTRUE)?", re.IGNORECASE)
_LOADS_ALL_THE_SAME = ("2.6", "2.7")
"""With the new C++ interface, a wheel for the first loads beside the second."""


def find(environment: Environment, table: Table) -> TraitVerdict:
    names = ("distributions.flash-attn", "distributions.torch")
    installed, torch = (environment.get(name) for name in names)
    missing = tuple(name for name, value in zip(names, (installed, torch)) if isinstance(value, Unknown))
    if missing or installed is None or torch is None:
        return TraitVerdict(None if missing else False, missing=missing)
    label = _LABEL.search(installed)
    version = parse_version(torch)
    cut_before = version is not None and version.is_prerelease and is_vendor_build(torch)
    if label is None or (label[1] == minor(torch) and not cut_before):
        return TraitVerdict(False)
    if is_vendor_build(torch) or version is None or version.is_devrelease:
        return TraitVerdict(None, missing=names[1:])
    if label[2] and (label[1], minor(torch)) == _LOADS_ALL_THE_SAME:
        return TraitVerdict(None, missing=names[:1])
    summary = f"flash-attn {installed} is compiled for torch {label[1]}; torch {torch} is installed"
    return TraitVerdict(True, (Occurrence(summary, ("flash-attn", "torch")),))
