"""A compiled package (vllm, xformers, torchtext, torchcodec, torch-npu) belongs to another minor release of torch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from compatcheck.environment import Environment, Unknown
from compatcheck.inference.report_date import limits_by_day
from compatcheck.inference.torch_builds import backend_of, minor
from compatcheck.matrix._traits import Table
from compatcheck.matrix.matching.match import Occurrence, TraitVerdict
from compatcheck.matrix.traits._requirements import excluded_pairs
from compatcheck.packages.versions import is_vendor_build, parse_version

_TORCH = "distributions.torch"


def find(environment: Environment, table: Table) -> TraitVerdict:
    """Compare by minor release, which is where the compiled interface changes.

    Where the installed metadata itself was read, `declared-requirement-unmet` tells what a package demands, and only
    what no metadata demands is told here; what no installer takes, `requirements-exclude-each-other` tells. Of a
    package that a report gives no version of, the newest release of its day is compared, and it stays open.
    """
    torch = environment.get(_TORCH)
    installed = environment.get("distributions")
    if isinstance(torch, Unknown) or isinstance(installed, Unknown):
        return TraitVerdict(None, missing=(_TORCH,))
    version = parse_version(torch or "")
    if version is None:
        return TraitVerdict(False)
    if is_vendor_build(torch) or version.is_devrelease:
        return TraitVerdict(None, missing=(_TORCH,))
    rows = table("built-for-torch")
    metadata_read = not isinstance(environment.get("unmet_requirements"), Unknown)
    refused = excluded_pairs(environment, table)
    found = tuple(
        occurrence
        for package, wanted in _belonging(installed, rows, metadata_read=metadata_read)
        if (package, "torch") not in refused
        for occurrence in _occurrence(package, installed[package], wanted, torch, rows)
    )
    expected = {} if found else _expected(environment, table)
    open_still = tuple(
        occurrence._replace(
            summary=f"{package} has no version; assuming the newest release at that time, {occurrence.summary}"
        )
        for package, wanted in _belonging(expected, rows, metadata_read=False)
        for occurrence in _occurrence(package, expected[package], wanted, torch, rows)
    )
    if open_still:
        return TraitVerdict(None, open_still, tuple(f"distributions.{each.packages[0]}" for each in open_still))
    return TraitVerdict(bool(found), found)


def _expected(environment: Environment, table: Table) -> dict[str, str]:
    """The newest release, by the day of a report, of each package that it says is there and no more of."""
    asked = environment.section("distribution_ranges")
    limits = limits_by_day(environment, table) if asked else {}
    return {
        name: newest
        for name in asked.keys() & limits.keys()
        if isinstance(environment.get(f"distributions.{name}"), Unknown) and (newest := limits[name].newest)
    }


def _belonging(
    installed: Mapping[str, str | None], rows: Mapping[str, Any], *, metadata_read: bool
) -> Iterator[tuple[str, str]]:
    """Each installed package of the table with the torch that it belongs to."""
    for package in sorted({*rows["documented"], *rows["declared"]} & set(installed)):
        version = installed[package]
        if version is None or (parsed := parse_version(version)) is None or parsed.is_prerelease:
            continue
        if "+" in version and not (backend_of(version) or "").startswith("cu"):
            continue
        runs = () if metadata_read else rows["declared"].get(package, ())
        for first, last, torch in runs:
            if (parse_version(first) or parsed) <= parsed <= (parse_version(last) or parsed):
                yield package, torch
        documented = rows["documented"].get(package, {}).get(minor(version))
        if documented:
            yield package, documented


def _occurrence(
    package: str, installed: str | None, wanted: str, torch: str, rows: Mapping[str, Any]
) -> Iterator[Occurrence]:
    if minor(wanted) == minor(torch) or _loads_beside(package, installed, wanted, torch, rows):
        return
    pins = {"torch": f"=={wanted}" if wanted.count(".") > 1 else f"~={wanted}.0"}
    partner = _partner(package, torch, rows)
    moves = (partner, pins) if partner else (pins,)
    summary = f"{package} {installed} is built for torch {wanted}; torch {torch} is installed"
    if partner:
        summary += f", which matches {package} {partner[package].rpartition('=')[2]}"
    yield Occurrence(summary, (package, "torch"), *moves)


def _loads_beside(package: str, installed: str | None, wanted: str, torch: str, rows: Mapping[str, Any]) -> bool:
    """Built on torch's stable interface, and the torch that is there is a later one."""
    first = rows["later_torch_too"].get(package)
    versions = [parse_version(text or "") for text in (installed, first, torch, wanted)]
    release, stable, have, want = versions
    return None not in versions and release >= stable and have >= want  # type: ignore[operator]


def _partner(package: str, torch: str, rows: Mapping[str, Any]) -> dict[str, str] | None:
    """The releases that belong to this torch, else the newest that do to its minor release."""
    release = torch.partition("+")[0]
    runs = [row for row in rows["declared"].get(package, ()) if minor(row[2]) == minor(torch)]
    for first, last, _ in sorted(runs, key=lambda row: row[2] == release)[-1:]:
        return {package: f"=={last}" if first == last else f">={first},<={last}"}
    series = [name for name, of in rows["documented"].get(package, {}).items() if of == minor(torch)]
    return {package: f"~={series[-1]}.0"} if series else None
