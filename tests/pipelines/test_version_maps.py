"""The map around an environment, against the environment judged whole with the versions of a cell."""

from __future__ import annotations

import json
from typing import Any

import pytest

from compatcheck import matrix
from compatcheck.environment.snapshot import load_snapshot, read_snapshot
from compatcheck.pipelines import version_maps
from compatcheck.pipelines.check import check
from compatcheck.pipelines.version_maps import maps_of_pins, with_maps
from compatcheck.results.findings import Report, Status, VersionMap
from tests.conftest import ROOT

SNAPSHOT = json.loads((ROOT / "compatcheck" / "demo" / "glm-4.json").read_text(encoding="utf-8"))
KNOWN = matrix.load()


def judged(**distributions: str | None) -> Report:
    snapshot: dict[str, Any] = {**SNAPSHOT, "distributions": {**SNAPSHOT["distributions"], **distributions}}
    snapshot["distributions"] = {name: version for name, version in snapshot["distributions"].items() if version}
    if distributions.get("torch", SNAPSHOT["distributions"]["torch"]) != SNAPSHOT["distributions"]["torch"]:
        del snapshot["torch_build"]
        snapshot["cuda"] = {"runtime": "11.8", "driver": "535.104.05", "driver_api": "12.2", "toolkit": None}
    return check(load_snapshot(json.dumps(snapshot), "the snapshot"), KNOWN)


@pytest.fixture(scope="module")
def drawn() -> VersionMap:
    (only,) = with_maps(judged(), KNOWN).maps
    return only


def test_cells_say_what_a_check_of_their_versions_says(drawn: VersionMap) -> None:
    torch = drawn.columns.index("2.5.1")
    for row, transformers in enumerate(drawn.rows):
        along = {"torchvision": None} | (
            {"tokenizers": None, "huggingface-hub": None} if transformers != "4.48.0" else {}
        )
        report = judged(torch="2.5.1+cu118", transformers=transformers, **along)
        assert drawn.cells[row][torch] == {finding.id: finding.status for finding in report.findings}


def test_the_map_lies_around_the_versions_at_hand(drawn: VersionMap) -> None:
    assert drawn.names == ("torch", "transformers") and drawn.here == ("2.5.0+cu118", "4.48.0")
    assert {"2.4.1", "2.5.0+cu118", "2.5.1", "2.6.0"} <= {*drawn.columns}
    assert {"4.47.1", "4.48.0", "4.48.3", "4.49.0"} <= {*drawn.rows}
    here = drawn.cells[drawn.rows.index("4.48.0")][drawn.columns.index("2.5.0+cu118")]
    assert here == {"CC-2024-0001": "affected"}
    assert drawn.entries["CC-2024-0001"][1] == "divergence"


def test_the_nearest_clean_cell_that_the_ways_out_ask_for_is_advised(drawn: VersionMap) -> None:
    assert drawn.advised == ("2.5.1", "4.48.0")
    (clean,) = with_maps(judged(torch="2.5.1+cu118", torchvision="0.20.1+cu118"), KNOWN).maps
    assert clean.advised is None


def test_the_package_that_a_way_out_speaks_of_has_a_map() -> None:
    """A fault that no version of transformers clears, and one of peft does."""
    path = ROOT / "tests" / "machines" / "gemma-qlora-embeddings-peft-0.10.0.json"
    report = with_maps(check(read_snapshot(str(path)), KNOWN), KNOWN)
    first = report.maps[0]
    assert first.names == ("torch", "peft") and first.here == ("2.3.0+cu121", "0.10.0")
    assert first.advised is not None and first.advised[0] == "2.3.0+cu121"
    assert matrix.within(">=0.12.0", first.advised[1])


def test_the_nearest_cell_is_passed_over_where_it_is_bad_or_not_what_is_asked_for() -> None:
    """Of the releases that are as near, the newest is bad and the next may be; the one before is below the pin."""
    bad: dict[str, Status] = {"CC-2024-0001": "affected"}
    columns = ("2.5.3", "2.5.2", "2.5.1", "2.5.0", "2.4.1")
    cells = ((bad, {"CC-2024-0002": "possible"}, {}, bad, {}),)
    drawn = VersionMap(("torch", "peft"), columns, ("0.14.0",), cells, {}, ("2.5.0", "0.14.0"))
    assert version_maps._mark_advised(drawn, [{"torch": ">=2.5.1"}]).advised == ("2.5.1", "0.14.0")
    assert version_maps._mark_advised(drawn, [{"torch": "<2.5"}]).advised == ("2.4.1", "0.14.0")
    assert version_maps._mark_advised(drawn, [{"numpy": "<2"}]).advised is None


def test_pins_say_where_to_go_themselves() -> None:
    before = SNAPSHOT["distributions"]
    after = {**before, "torch": "2.6.0", "transformers": "4.50.3"}
    (drawn,) = maps_of_pins(judged().environment, KNOWN, before, after)
    assert drawn.here == ("2.5.0+cu118", "4.48.0") and drawn.advised == ("2.6.0", "4.50.3")
    assert drawn.advised[0] in drawn.columns and drawn.advised[1] in drawn.rows


def test_no_map_without_both_packages_or_with_a_version_that_is_none() -> None:
    assert with_maps(judged(transformers=None), KNOWN).maps == ()
    assert with_maps(judged(transformers="from source"), KNOWN).maps == ()
