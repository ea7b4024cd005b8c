"""vllm or torch-npu is not of the release that the installed vllm-ascend belongs to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from packaging.version import Version

from compatcheck.environment import Environment, Unknown
from compatcheck.matrix._traits import Table
from compatcheck.matrix.matching.match import Occurrence, TraitVerdict
from compatcheck.packages.versions import parse_version

_PLUGIN = "distributions.vllm-ascend"
_OTHERS = ("vllm", "torch-npu")


def find(environment: Environment, table: Table) -> TraitVerdict:
    """Compare final releases: candidates and post-releases of one belong together."""
    plugin = environment.get(_PLUGIN)
    if plugin is None:
        return TraitVerdict(False)
    if isinstance(plugin, Unknown):
        return TraitVerdict(None, missing=(_PLUGIN,))
    row = table("vllm-ascend")["releases"].get(plugin.partition("+")[0])
    if row is None:
        return TraitVerdict(None, missing=(_PLUGIN,))
    wanted = {"vllm": row["vllm"], "torch-npu": [row["torch-npu"]]}
    installed = {name: environment.get(f"distributions.{name}") for name in _OTHERS}
    found = tuple(
        _mismatches(plugin, wanted, {name: each for name, each in installed.items() if isinstance(each, str)})
    )
    if found:
        return TraitVerdict(True, found)
    missing = tuple(f"distributions.{name}" for name, each in installed.items() if isinstance(each, Unknown))
    return TraitVerdict(None if missing else False, missing=missing)


def _mismatches(plugin: str, wanted: Mapping[str, Sequence[str]], installed: Mapping[str, str]) -> Iterator[Occurrence]:
    for name, version in installed.items():
        present, releases = parse_version(version), [Version(each) for each in wanted[name]]
        if present is None or any(present.release == each.release for each in releases):
            continue
        named = " or ".join(wanted[name])
        summary = f"vllm-ascend {plugin} is made for {name} {named}; {name} {version} is installed"
        yield Occurrence(summary, ("vllm-ascend", name), {name: f"=={wanted[name][-1]}"})
