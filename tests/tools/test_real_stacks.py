"""A known-bad release and its good neighbour, really built: convicted and acquitted."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import SOURCES
from tools import real_stacks


@pytest.mark.slow
@pytest.mark.network
def test_the_bad_release_is_confirmed_and_its_neighbour_is_not(tmp_path: Path) -> None:
    pair = next(pair for pair in real_stacks.PAIRS if pair.finding == "CC-2024-0040")
    for _, kind, judged in real_stacks.judge_pair(pair, tmp_path):
        assert real_stacks.as_known(pair, kind, judged), judged
    assert len(list(tmp_path.iterdir())) == 2


def test_every_pair_differs_in_few_requirements_and_names_an_entry_of_the_matrix() -> None:
    entries = {path.stem for path in SOURCES.glob("*/*.toml")}
    for pair in real_stacks.PAIRS:
        assert pair.finding in entries
        assert 1 <= len(set(pair.bad) - set(pair.good)) <= 2
