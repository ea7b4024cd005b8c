"""A second distribution of NCCL, older than the one torch is built for, owns the very file that torch loads.

nvidia-nccl-cu11, -cu12 and -cu13 all install nvidia/nccl/lib/libnccl.so.2. The one that was installed last is there,
and no record on the machine says which that was. A newer one does no harm, since NCCL only adds to its interface.
"""

from __future__ import annotations

from compatcheck.environment import Environment, Unknown
from compatcheck.matrix._traits import Table
from compatcheck.matrix.matching.match import Occurrence, TraitVerdict
from compatcheck.packages.versions import parse_version

_MAJORS = ("11", "12", "13")


def find(environment: Environment, table: Table) -> TraitVerdict:
    listed = environment.section("distributions")
    names = {major: f"nvidia-nccl-cu{major}" for major in _MAJORS}
    here = {major: parse_version(listed[name]) for major, name in names.items() if listed.get(name)}
    if len(here) < 2:
        return TraitVerdict(False)
    runtime = environment.get("cuda.runtime")
    if isinstance(runtime, Unknown):
        return TraitVerdict(None, missing=("cuda.runtime",))
    own = str(runtime).partition(".")[0]
    wanted = here.get(own)
    if wanted is None:
        return TraitVerdict(False)
    older = [major for major, version in here.items() if version is not None and version < wanted]
    if not older:
        return TraitVerdict(False)
    others = " and ".join(f"{names[major]} {here[major]}" for major in older)
    summary = (
        f"torch for CUDA {runtime} is built with {names[own]} {wanted}; {others} owns the same libnccl.so.2, and the "
        "one that was installed last is loaded"
    )
    seen = Occurrence(summary, (names[own], *(names[major] for major in older), "torch"))
    overwritten = environment.get("cuda.nccl")
    loaded = parse_version(overwritten) if isinstance(overwritten, str) else None
    if loaded is None:
        return TraitVerdict(None, (seen,), ("cuda.nccl",))
    return TraitVerdict(loaded < wanted, (seen,) if loaded < wanted else ())
