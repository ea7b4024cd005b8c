"""accelerate refuses several RTX 40 cards whose driver it does not trust while NCCL may use peer-to-peer or InfiniBand.

From 0.25 to 0.28 every driver is refused, later those before 550.40.07; ``accelerate launch`` sets the two variables by
itself, other launchers do not. Up to 0.26 the RTX 3090 was refused as well.
https://github.com/huggingface/accelerate/blob/v1.8.0/src/accelerate/utils/environment.py
"""

from __future__ import annotations

from typing import Any

from compatcheck.environment import Environment, Unknown
from compatcheck.inference.torch_builds import numbers
from compatcheck.matrix._traits import Table
from compatcheck.matrix.matching.match import Occurrence, TraitVerdict
from compatcheck.packages.versions import contains, parse_range, parse_version

_ANY_DRIVER, _OLD_DRIVER = parse_range(">=0.25.0,<0.29.0"), parse_range(">=0.29.0")
_OF_ITS_TIME = parse_range("<1.0.0")
_TRUSTED = (550, 40, 7)
_VARIABLES = ("environ.NCCL_P2P_DISABLE", "environ.NCCL_IB_DISABLE")


def find(environment: Environment, table: Table) -> TraitVerdict:
    gpus, installed = environment.get("gpus"), environment.get("distributions.accelerate")
    if not gpus or installed is None:
        return TraitVerdict(False)
    facts = {"gpu.name": gpus, "distributions.accelerate": installed}
    missing = tuple(path for path, value in facts.items() if isinstance(value, Unknown))
    if missing:
        return TraitVerdict(None, missing=missing)
    values = [environment.get(path) for path in _VARIABLES]
    if not _several(gpus) or all(isinstance(value, str) for value in values):
        return TraitVerdict(False)
    driver = _is_refused(environment, installed)
    if driver is False or environment.get("training.launcher") == "accelerate":
        return TraitVerdict(False)
    seen = Occurrence(
        f"several RTX 40 cards and accelerate {installed}, without NCCL_P2P_DISABLE and NCCL_IB_DISABLE",
        ("accelerate", "nvidia-driver"),
    )
    unknown = {"cuda.driver": driver, "training.launcher": environment.get("training.launcher")}
    unknown |= dict(zip(_VARIABLES, values))
    missing = tuple(path for path, value in unknown.items() if isinstance(value, Unknown))
    return TraitVerdict(None if missing else True, (seen,), missing)


def _several(gpus: Any) -> bool:
    return len(gpus) > 1 and any("RTX 40" in (gpu.get("name") or "") for gpu in gpus)


def _is_refused(environment: Environment, installed: str) -> bool | Unknown:
    """Whether this accelerate refuses the driver; where that is unknown, a release of its time is worth telling."""
    version, driver = parse_version(installed), environment.get("cuda.driver")
    if version is None or not contains(_OLD_DRIVER, version):
        return version is not None and contains(_ANY_DRIVER, version)
    if isinstance(driver, Unknown):
        return driver if contains(_OF_ITS_TIME, version) else False
    known = numbers(driver or "")
    return known is not None and known < _TRUSTED
