"""The flash-attn wheel names another major release of CUDA in its label than the one torch is built for.

Up to 2.8.3 the project's own setup looks for a ready wheel for CUDA 12 under any torch for CUDA 13, so that a release
without a label may be of either: https://github.com/Dao-AILab/flash-attention/pull/2618
"""

from __future__ import annotations

import re

from compatcheck.environment import Environment, Unknown
from compatcheck.matrix._traits import Table
from compatcheck.matrix.matching.match import Occurrence, TraitVerdict
from compatcheck.packages.versions import parse_version

_LABEL = re.compile(r"\+cu(\d\d)\d*torch", re.IGNORECASE)
_LAST_FOR_CUDA_12 = (2, 8, 3)


def find(environment: Environment, table: Table) -> TraitVerdict:
    names = ("distributions.flash-attn", "cuda.runtime")
    installed, runtime = (environment.get(name) for name in names)
    missing = tuple(name for name, value in zip(names, (installed, runtime)) if isinstance(value, Unknown))
    if missing or installed is None or runtime is None:
        return TraitVerdict(None if missing else False, missing=missing)
    major, label = str(runtime).partition(".")[0], _LABEL.search(installed)
    if label is None:
        version = parse_version(installed)
        is_open = major == "13" and version is not None and version.release <= _LAST_FOR_CUDA_12
        return TraitVerdict(None if is_open else False, missing=names[:1] if is_open else ())
    if label[1] == major:
        return TraitVerdict(False)
    summary = f"flash-attn {installed} is compiled for CUDA {label[1]}; torch is built for CUDA {runtime}"
    return TraitVerdict(True, (Occurrence(summary, ("flash-attn", "torch")),))
