"""A prebuilt extension is linked against the runtime of another CUDA major version than torch's.

Its label says so (``2.8.3+cu12torch2.8cxx11abiTRUE``). It is not known of one without a label, nor of those that nobody
named.
"""

from __future__ import annotations

from compatcheck.environment import Environment, Unknown
from compatcheck.matrix._traits import Table
from compatcheck.matrix.matching.match import Occurrence, TraitVerdict
from compatcheck.matrix.traits._extension_labels import labelled_extensions, unlabelled_extensions

_RUNTIME = "cuda.runtime"


def find(environment: Environment, table: Table) -> TraitVerdict:
    runtime = environment.get(_RUNTIME)
    if runtime is None:
        return TraitVerdict(False)
    if isinstance(runtime, Unknown):
        return TraitVerdict(None, missing=(_RUNTIME,))
    major = runtime.partition(".")[0]
    found = tuple(
        Occurrence(
            f"{each.name} {each.version} is compiled for CUDA {each.cuda_major}; torch is built with CUDA {runtime}",
            (each.name, "torch"),
        )
        for each in labelled_extensions(environment)
        if each.cuda_major not in (None, major)
    )
    if found:
        return TraitVerdict(True, found)
    is_listed = environment.get("distributions_complete") is True
    missing = unlabelled_extensions(environment)
    return TraitVerdict(False) if is_listed and not missing else TraitVerdict(None, missing=missing or (_RUNTIME,))
