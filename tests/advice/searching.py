"""The search as tests call it: everything preferred was there and counts, and what is asked cannot leave."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from types import MappingProxyType

from packaging.version import Version

from compatcheck.advice.model import Demands, Solution
from compatcheck.advice.search import Conflict, Found, Scale, search
from compatcheck.advice.search._search import Judge
from tests.advice.universe import Releases


def scale(
    preferred: Mapping[str, str],
    asked: Collection[str] = (),
    index: Mapping[str, Releases] = MappingProxyType({}),
    by_hand_cost: int = 0,
) -> Scale:
    def releases(name: str) -> list[str]:
        return sorted(index.get(name, ()), key=Version)

    return Scale(
        Demands(), preferred, lambda entry: by_hand_cost, frozenset(asked), preferred.keys(), releases=releases
    )


def run(
    resolve: Callable[[Demands], Solution],
    judge: Judge,
    preferred: Mapping[str, str],
    asked: Collection[str],
    index: Mapping[str, Releases] = MappingProxyType({}),
    out_of_time: Callable[[], bool] = lambda: False,
    *,
    by_hand_cost: int = 0,
    patience: int | None = None,
) -> Found | Conflict:
    return search(resolve, judge, scale(preferred, asked, index, by_hand_cost), out_of_time, patience=patience)
