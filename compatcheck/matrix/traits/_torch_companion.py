"""Does a package that is built for one torch release stand beside another one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compatcheck.environment import Environment, Unknown
from compatcheck.inference.torch_builds import minor
from compatcheck.matrix.matching.match import Occurrence, TraitVerdict
from compatcheck.packages.versions import contains, is_vendor_build, parse_range, parse_version


def find_mismatch(companion: str, environment: Environment, table: Mapping[str, Any]) -> TraitVerdict:
    """Compare by minor release, which is where the compiled interface changes.

    A vendor's build, a nightly (whose numbers do not run in step), or a release that the table does not know leaves it
    open.
    """
    names = ("distributions.torch", f"distributions.{companion}")
    torch, installed = (environment.get(name) for name in names)
    missing = tuple(name for name, value in zip(names, (torch, installed)) if isinstance(value, Unknown))
    if missing or torch is None or installed is None:
        return TraitVerdict(None if missing else False, missing=missing)
    if any(is_vendor_build(version) or _is_nightly(version) for version in (torch, installed)):
        return TraitVerdict(None, missing=names)
    if _is_unpaired(installed, table.get("unpaired_from", {}).get(companion)):
        return TraitVerdict(False)
    partners = {minor(t) for t, row in table["releases"].items() if minor(row.get(companion, "")) == minor(installed)}
    wanted = _wanted(companion, torch, table["releases"])
    if not partners or wanted is None:
        return TraitVerdict(None, missing=names)
    if minor(torch) in partners:
        return TraitVerdict(False)
    summary = (
        f"{companion} {installed} is built for torch {' or '.join(sorted(partners))}; torch {torch} "
        f"matches {companion} {wanted}"
    )
    return TraitVerdict(True, (Occurrence(summary, (companion, "torch"), {companion: f"=={wanted}"}),))


def imports_beside_another(companion: str, environment: Environment, table: Mapping[str, Any]) -> bool | None:
    """Whether the companion can be imported beside a torch that it is not built for, less its compiled operators."""
    installed, torch = (environment.get(f"distributions.{name}") for name in (companion, "torch"))
    row = table.get("importable", {}).get(companion)
    version = parse_version(installed) if isinstance(installed, str) else None
    if row is None:
        return False
    if version is None:
        return None
    if contains(parse_range(row["range"]), version):
        return True
    beside = row["beside"].get(minor(str(installed)))
    if beside is None:
        return False
    return minor(torch) in beside if isinstance(torch, str) else None


def _is_nightly(text: str) -> bool:
    version = parse_version(text)
    return version is None or version.is_devrelease


def _is_unpaired(installed: str, first: str | None) -> bool:
    version = parse_version(installed)
    bound = parse_version(first) if first else None
    return version is not None and bound is not None and version >= bound


def _wanted(companion: str, torch: str, releases: Mapping[str, Mapping[str, str]]) -> str | None:
    """The companion of exactly this torch, else the newest one of its minor release."""
    exact = releases.get(torch.partition("+")[0], {}).get(companion)
    if exact:
        return exact
    siblings = [row[companion] for t, row in releases.items() if minor(t) == minor(torch) and companion in row]
    return siblings[-1] if siblings else None
