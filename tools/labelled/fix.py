"""An environment once the known fix of its report is in place."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import Version

from compatcheck import matrix
from compatcheck.bug_report._gpus import gpus_in
from compatcheck.environment import Environment
from compatcheck.inference.torch_builds import minor
from compatcheck.packages.names import normalised
from tools.labelled.settings import DTYPES, fact_of, put, version_of

_OF_RELEASE = 3
"""A version of more numbers is a repair of a release, and no answer to a report of it that speaks of what is newer."""


def applied(environment: Environment, fix: Mapping[str, Any], matrix_in_use: matrix.Matrix) -> Environment:
    """The environment once the fix is in place: pinned versions, settings and variables.

    A torch of another release is the build for the same CUDA where there is one, else what the index serves.
    """
    known: dict[str, Any] = {}
    versions: dict[str, str] = {}
    installed = environment.section("distributions")
    for name, pinned in fix["packages"].items():
        now = environment.facts.get("python") if name == "python" else installed.get(normalised(name))
        if moved := moved_to(str(pinned), now, _published(normalised(name), matrix_in_use)):
            versions[normalised(name)] = moved
    if "python" in versions:
        known["python"] = versions.pop("python")
    if "torch" in installed and "torch" not in versions:
        versions |= _torch_of(versions, installed["torch"], matrix_in_use)
    if versions:
        known["distributions"] = versions
    for key, value in fix["config"].items():
        _set(known, key, value)
        _rebuild(known, installed, key, str(value))
        if key == "install" and isinstance(value, list):
            known.setdefault("distribution_ranges", {}).update({normalised(name): "" for name in value})
        if key == "cuda_toolkit":
            runtime = re.sub(r".*\+cu(\d+)(\d)\Z|.*", r"\1.\2", installed.get("torch", "")).strip(".")
            known["cuda"] = {"toolkit": runtime or environment.get("cuda.runtime")}
    if gpus := gpus_in(str(fix["config"].get("gpu", "")), context=True):
        known["gpus"] = gpus.value()
    left = dict(environment.facts)
    if "torch" in versions:
        left.pop("torch_build", None)
        if not _has_build(versions["torch"], environment, matrix_in_use):
            versions["torch"] = versions["torch"].partition("+")[0]
            left["cuda"] = {key: value for key, value in (left.get("cuda") or {}).items() if key != "runtime"}
    return environment._replace(facts=left).overlay(Environment(known))


def _torch_of(moved: Mapping[str, str], torch: str, matrix_in_use: matrix.Matrix) -> dict[str, str]:
    """The torch that a moved package demands with ``==``, as pip then installs it, for the same CUDA."""
    public, plus, label = torch.partition("+")
    for name, runs in matrix_in_use.table("built-for-torch")["declared"].items():
        for first, last, demanded in runs:
            if name in moved and Version(first) <= Version(moved[name].partition("+")[0]) <= Version(last):
                return {} if demanded == public else {"torch": f"{demanded}{plus}{label}"}
    return {}


def _has_build(torch: str, environment: Environment, matrix_in_use: matrix.Matrix) -> bool:
    """Whether a release of torch may be there for the CUDA runtime of the environment; unless known, it may."""
    label = re.search(r"\+cu(\d+)(\d)$", torch)
    runtime = f"{label[1]}.{label[2]}" if label else environment.get("cuda.runtime")
    builds = matrix_in_use.table("torch-cuda-builds")["builds"].get(minor(torch))
    return builds is None or not isinstance(runtime, str) or runtime in builds


def _published(name: str, matrix_in_use: matrix.Matrix) -> tuple[str, ...]:
    return tuple(matrix_in_use.table("release-history")["releases"].get(name, ()))


def moved_to(pinned: str, installed: str | None, published: tuple[str, ...] = ()) -> str | None:
    """The version that a pin leads to: the installed one where it fits, else the nearest release that does.

    Where it is not known what was published, the nearest number stands for it.
    """
    try:
        allowed = SpecifierSet(specifier(pinned), prereleases=True)
    except InvalidSpecifier:
        return None
    now = version_of(installed.partition("+")[0]) if installed else None
    if now is not None and allowed.contains(now):
        return installed
    label = f"+{installed.partition('+')[2]}" if installed and "+" in installed else ""
    if fitting := sorted(filter(allowed.contains, published), key=Version):
        newer = [each for each in fitting if now is None or Version(each) > now]
        if "<" not in pinned:
            newer = [each for each in newer if len(Version(each).release) <= _OF_RELEASE] or newer
        capped = now is None and any(each.operator.startswith("<") for each in allowed)
        return f"{newer[0] if newer and not capped else fitting[-1]}{label}"
    for each in allowed:
        bound = Version(each.version.removesuffix(".*"))
        near = {"<": below(bound), ">": _next(bound), "!=": _next(bound)}.get(each.operator, bound)
        choice = below(bound) if each.version.endswith(".*") and each.operator == "!=" else near
        if allowed.contains(choice):
            return str(choice) if "+" in str(choice) else f"{choice}{label}"
    return None


def _next(version: Version) -> Version:
    """The patch release behind a version: 0.19.4 for 0.19.3."""
    release = [*version.release, 0, 0][: max(3, len(version.release))]
    return Version(".".join(map(str, [*release[:-1], release[-1] + 1])))


def _set(known: dict[str, Any], key: str, value: Any) -> None:
    training = known.setdefault("training", {})
    low, word = key.lower(), str(value).lower()
    if re.fullmatch(r"[A-Z][A-Z0-9_]+", key):
        known.setdefault("environ", {})[key] = str(value)
    elif low in ("bf16", "fp16") and isinstance(value, bool):
        full = DTYPES[low]
        if value:
            training["dtype"] = full
        else:
            training.setdefault("dtype", "float32")
    elif low in ("dtype", "torch_dtype", "amp_dtype", "precision") and word.split("/")[0] in DTYPES:
        training["dtype"] = training["load_dtype"] = DTYPES[word.split("/")[0]]
    elif low == "bf16.enabled" and value is False:
        training["dtype"] = "float32"
    elif low in ("load_in_4bit", "load_in_8bit") and value is True:
        training["quantization"] = {"bits": int(low[8]), "method": "bitsandbytes"}
    elif low == "nvidia_driver" and (level := re.search(r"CUDA (\d{1,2}\.\d)", str(value))):
        known["cuda"] = {"driver_api": level[1], "driver": "999.0"}
    elif low.endswith("set_z3_leaf_modules"):
        training["deepspeed"] = {"leaf_modules": True}
    elif low in ("model_file", "model_revision"):
        known["model"] = {"traits": []}
    elif fact := fact_of(key, re.split(r"\s+or\s+", value)[0] if isinstance(value, str) else value):
        put(training, *fact)
    if not training:
        del known["training"]


def _rebuild(known: dict[str, Any], installed: Mapping[str, str], key: str, value: str) -> None:
    """Another build of the same version: torch from another index, a wheel for the other C++ ABI."""
    versions = {**installed, **known.get("distributions", {})}
    if key.endswith("index") and re.fullmatch(r"cu\d+|cpu", value) and versions.get("torch"):
        known.setdefault("distributions", {})["torch"] = f"{versions['torch'].partition('+')[0]}+{value}"
    if value in ("cxx11abiFALSE", "cxx11abiTRUE") and "cxx11abi" in versions.get("flash-attn", ""):
        other = re.sub(r"cxx11abi(true|false)", value, versions["flash-attn"], flags=re.IGNORECASE)
        known.setdefault("distributions", {})["flash-attn"] = other


def specifier(text: str) -> str:
    return text if text[:1] in "<>=!~" else f"=={text}"


def below(version: Version) -> Version:
    """A release shortly before another: 4.43.99 for 4.44."""
    release = list(version.release)
    while release and release[-1] == 0:
        release.pop()
    if not release:
        return version
    return Version(".".join(map(str, [*release[:-1], release[-1] - 1, 99])))
