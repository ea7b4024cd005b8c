"""uv, which was asked, finds no versions that meet a list of requirements."""

from __future__ import annotations

from compatcheck.environment import Environment, Location, Unknown
from compatcheck.inference.inferred import Table
from compatcheck.matrix.matching.match import Occurrence, TraitVerdict
from compatcheck.matrix.traits._requirements import RESOLVED


def find(environment: Environment, table: Table) -> TraitVerdict:
    """Open unless a resolver was asked (``--resolve``), and not told then."""
    unsolvable = environment.get(RESOLVED)
    if isinstance(unsolvable, Unknown):
        return TraitVerdict(None, missing=(RESOLVED,))
    found = tuple(Occurrence(each["reason"], ("python",), location=Location(each["file"])) for each in unsolvable or ())
    return TraitVerdict(bool(found), found)
