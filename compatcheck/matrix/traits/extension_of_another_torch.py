"""A prebuilt extension other than flash-attn names another minor release of torch in its label than the one installed.

Of one without a label, and of those that nobody named, it is not known: `flash-attn-of-another-torch` and
`built-for-another-torch` know more of some.
"""

from __future__ import annotations

from compatcheck.environment import Environment, Unknown
from compatcheck.inference.torch_builds import minor
from compatcheck.matrix._traits import Table
from compatcheck.matrix.matching.match import Occurrence, TraitVerdict
from compatcheck.matrix.traits._extension_labels import labelled_extensions, unlabelled_extensions
from compatcheck.packages.versions import is_vendor_build, parse_version

_TORCH = "distributions.torch"


def find(environment: Environment, table: Table) -> TraitVerdict:
    torch = environment.get(_TORCH)
    if torch is None:
        return TraitVerdict(False)
    if isinstance(torch, Unknown):
        return TraitVerdict(None, missing=(_TORCH,))
    version = parse_version(torch)
    if version is None or version.is_devrelease or is_vendor_build(torch):
        return TraitVerdict(None, missing=(_TORCH,))
    found = tuple(
        Occurrence(
            f"{each.name} {each.version} is compiled for torch {each.torch}; torch {torch} is installed",
            (each.name, "torch"),
        )
        for each in labelled_extensions(environment)
        if each.name != "flash-attn" and each.torch not in (None, minor(torch))
    )
    if found:
        return TraitVerdict(True, found)
    is_listed = environment.get("distributions_complete") is True
    missing = unlabelled_extensions(environment)
    return TraitVerdict(False) if is_listed and not missing else TraitVerdict(None, missing=missing or (_TORCH,))
