"""The search with the real resolver, on an index of tiny wheels."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from compatcheck.advice import resolver
from compatcheck.advice.model import Line, Place, Wanted
from compatcheck.advice.search import Conflict, Found, distance, explain
from tests.advice import searching
from tests.advice.test_search import ABI, HAD, INDEX, LOADING, MASKED
from tests.advice.tiny_wheels import write_wheel
from tests.advice.universe import Entry, Universe, violations


@pytest.fixture(autouse=True)
def _links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, releases in INDEX.items():
        for version, needs in releases.items():
            write_wheel(tmp_path / "links", name, version, [needed + limit for needed, limit in needs.items()])
    monkeypatch.setenv("UV_NO_INDEX", "1")
    monkeypatch.setenv("UV_FIND_LINKS", str(tmp_path / "links"))
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)


def run(entries: tuple[Entry, ...], *asked: str) -> Found | Conflict:
    lines = tuple(Line(text, text.rstrip("<>=.0123456789"), text) for text in asked)
    wanted, place = Wanted(lines, HAD), Place(sys.executable)
    return searching.run(
        lambda demands: resolver.resolve(wanted, demands, place),
        violations(Universe(INDEX, {}, HAD, entries)),
        {line.name: HAD[line.name] for line in lines if line.name in HAD},
        {line.name for line in lines if line.name},
        INDEX,
    )


@pytest.mark.parametrize(
    ("entries", "price"), [((), 0), ((MASKED,), 2), ((LOADING,), 10), ((ABI,), 100), ((MASKED, LOADING), 12)]
)
def test_uv_is_led_to_the_nearest_clean_set(entries: tuple[Entry, ...], price: int) -> None:
    found = run(entries, *INDEX)
    assert isinstance(found, Found) and found.proven and not found.left
    assert distance(HAD, found.solution.versions, HAD) == price
    assert found.resolutions <= max(4 * len(entries), 1)


def test_uv_says_which_requirement_forbids_the_way() -> None:
    conflict = run((MASKED, Entry("CC-2026-0099", ({"torch": "<2.5"},))), "torch<2.5.1", "peft")
    assert isinstance(conflict, Conflict)
    told = explain(conflict)
    assert "CC-2024-0001 (t) cannot be fixed; that would require torch>=2.5.1 or torch<2.5.0" in told
    assert "torch<2.5.1" in told and "torch>=2.5.1" in told
