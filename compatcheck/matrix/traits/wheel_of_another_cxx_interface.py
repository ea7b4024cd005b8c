"""A wheel whose label says which C++ interface it is compiled for stands beside a torch built for the other one.

The project's own Linux x86_64 builds of torch use the old interface up to 2.5 and the new one from 2.7 on; of 2.6 the
one for CUDA 12.6 alone is new. NVIDIA's and conda-forge's builds use the new one throughout. A label that says FALSE is
wrong where the wheel is compiled against a torch with the new one: setup.py can turn it on and not off.
https://github.com/Dao-AILab/flash-attention/blob/v2.8.3/setup.py
https://github.com/pytorch/pytorch/pull/142064, https://github.com/pytorch/pytorch/issues/143962
"""

from __future__ import annotations

import re
from typing import NamedTuple

from compatcheck.environment import Environment, Unknown
from compatcheck.inference.torch_builds import backend_of, minor, numbers
from compatcheck.matrix._traits import Table
from compatcheck.matrix.matching.match import Occurrence, TraitVerdict
from compatcheck.packages.versions import is_vendor_build, parse_version

_LABELLED = ("flash-attn", "causal-conv1d", "mamba-ssm")
_LABEL = re.compile(r"\+cu\d+torch(?P<torch>\d+\.\d+)(?:\.\d+)?cxx11abi(?P<new>TRUE|FALSE)", re.IGNORECASE)
_AGE = {True: "new", False: "old"}
_LAST_OLD, _FIRST_NEW = (2, 5), (2, 7)
_FIRST_BUILT_WITH_NEW_2_6 = {"flash-attn": "2.8.0", "causal-conv1d": "1.5.1", "mamba-ssm": "2.2.5"}
"""From these on, the wheels for torch 2.6 are compiled against its build for CUDA 12.6."""
_CUDA_WHEELS = ("nvidia-cuda-runtime-cu11", "nvidia-cuda-runtime-cu12", "nvidia-cuda-runtime")


class Interface(NamedTuple):
    """The C++ interface of torch: whether it is the new one, and whether that is certain to be the project's build."""

    is_new: bool
    certain: bool


def find(environment: Environment, table: Table) -> TraitVerdict:
    listed = environment.section("distributions")
    judged = [_apart(environment, name, listed[name]) for name in _LABELLED if listed.get(name)]
    apart = [each for each in judged if each is not None]
    if apart:
        certain = all(sure for _, sure in apart)
        occurrences = tuple(occurrence for occurrence, _ in apart)
        return TraitVerdict(certain or None, occurrences, () if certain else ("distributions.torch",))
    paths = [f"distributions.{name}" for name in _LABELLED]
    unknown = tuple(path for path in paths if isinstance(environment.get(path), Unknown))
    return TraitVerdict(None if unknown else False, missing=unknown)


def _apart(environment: Environment, name: str, installed: str) -> tuple[Occurrence, bool] | None:
    """Where the wheel and torch have different interfaces: what is seen, and whether it is certain."""
    label, torch = _LABEL.search(installed), environment.get("distributions.torch")
    if label is None or torch is None:
        return None
    known = isinstance(torch, str)
    release = torch if known else label["torch"]
    interface, is_new = _interface(environment, release, known), label["new"].upper() == "TRUE"
    if interface is None or interface.is_new == is_new or minor(release) != label["torch"]:
        return None
    if not is_new and _is_new_despite_label(name, installed, label["torch"]):
        return None
    built = f"torch {torch}" if known else f"the project's own build of torch {release}"
    summary = (
        f"{name} {installed} is compiled for the {_AGE[is_new]} C++ interface; {built} has the "
        f"{_AGE[interface.is_new]} interface, whose wheels say "
        f"cxx11abi{str(interface.is_new).upper()}"
    )
    return Occurrence(summary, (name, "torch")), interface.certain


def _is_new_despite_label(name: str, installed: str, torch: str) -> bool:
    """Whether a wheel labelled FALSE is compiled against a torch with the new interface."""
    release, version = (numbers(torch) or (0,))[:2], parse_version(installed)
    first = parse_version(_FIRST_BUILT_WITH_NEW_2_6[name])
    if release <= _LAST_OLD or version is None or first is None:
        return False
    return release >= _FIRST_NEW or version >= first


def _interface(environment: Environment, torch: str, known: bool) -> Interface | None:
    release = (numbers(minor(torch)) or (0,))[:2]
    if environment.get("platform.machine") not in ("x86_64", Unknown()) or "rocm" in torch:
        return None
    if is_vendor_build(torch):
        from_nvidia = ".nv" in f".{torch.partition('+')[2]}" or isinstance(environment.get("image.release"), str)
        return Interface(True, True) if from_nvidia else None
    backend = backend_of(torch)
    from_index = any(environment.get(f"distributions.{name}") not in (None, Unknown()) for name in _CUDA_WHEELS)
    certain = known and (backend is not None or from_index)
    if _LAST_OLD < release < _FIRST_NEW:
        return Interface(backend == "cu126", True) if backend else Interface(False, True) if from_index else None
    return Interface(release >= _FIRST_NEW, certain)
