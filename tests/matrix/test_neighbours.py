"""What the linter makes of an entry's examples: the releases on either side of each bound, and missing facts."""

from __future__ import annotations

from pathlib import Path

import pytest

from compatcheck import matrix
from compatcheck.matrix._neighbours import neighbours
from compatcheck.matrix.compile import read_toml
from compatcheck.matrix.entry import Entry
from tests.matrix.test_entries import ENTRIES, ENTRY, lint_text, parsed

BARE = ENTRY.partition("unaffected = [")[0]
"""The entry with the one affected example from which everything else follows."""


def around(text: str, tmp_path: Path, known: matrix.Matrix) -> dict[str, bool | None]:
    path = tmp_path / "CC-2026-9999.toml"
    path.write_text(text, encoding="utf-8")
    return {each.what: each.holds for each in neighbours(parsed(path), known.table)}


def test_one_affected_example_proves_an_entry(tmp_path: Path, known: matrix.Matrix) -> None:
    assert lint_text(tmp_path, BARE, known) == []


def test_each_bound_gets_both_its_releases(tmp_path: Path, known: matrix.Matrix) -> None:
    assert around(BARE, tmp_path, known) == {
        "distributions.torch 2.4.1": False,
        "distributions.torch 2.5.0": True,
        "distributions.torch 2.5.1": False,
        "no distributions.torch": None,
        "training.packing False": False,
        "no training.packing": None,
    }


@pytest.mark.parametrize(
    ("condition", "versions"),
    [
        ("<=2.5.0", {"2.5.0": True, "2.5.1": False}),
        ("==2.5.0", {"2.4.1": False, "2.5.0": True, "2.5.1": False}),
        (">=2.4.0", {"2.3.1": False, "2.4.0": True}),
        ("<999.1", {"999.1": False}),
    ],
)
def test_bounds_are_divided_by_releases(
    condition: str, versions: dict[str, bool], tmp_path: Path, known: matrix.Matrix
) -> None:
    made = around(BARE.replace(">=2.5.0,<2.5.1", condition), tmp_path, known)
    told = {what.rpartition(" ")[2]: holds for what, holds in made.items() if what.startswith("distributions.torch")}
    assert versions.items() <= told.items() and len(told) <= len(versions) + 1


def test_gpu_facts_are_changed_on_each_gpu(tmp_path: Path, known: matrix.Matrix) -> None:
    text = BARE.replace("training.packing = true\n", 'gpu.compute_capability = ">=8.0"\n', 1)
    text = text.replace("training.packing = true", 'gpus = [{ compute_capability = "9.0" }]')
    made = around(text, tmp_path, known)
    assert made["gpu.compute_capability 8.0"] is True and made["no gpu.compute_capability"] is None
    assert made["gpu.compute_capability 7.999"] is False
    assert lint_text(tmp_path, text, known) == []


def test_bound_that_another_table_crosses_is_idle(tmp_path: Path, known: matrix.Matrix) -> None:
    wide = '[[affected]]\ndistributions.torch = ">=2.5.0,<2.6.0"\ntraining.packing = true\n\n[[remedies]]'
    told = lint_text(tmp_path, BARE.replace("[[remedies]]", wide, 1).replace('">=2.5.1"', '">=2.6.0"'), known)
    assert "table 1: no example changes without distributions.torch <2.5.1" in told


def test_change_states_less_and_otherwise() -> None:
    entry = Entry.model_validate(
        {
            **next(iter(ENTRIES.values())).model_dump(),
            "examples": [
                {
                    "environment": {
                        "distributions": {"torch": "2.5.0", "peft": "0.9"},
                        "training": {"packing": True},
                    },
                    "unaffected": [{"distributions": {"torch": "2.5.1", "peft": "absent"}, "note": "newer"}],
                    "undetermined": [{"without": ["training.packing", "distributions.torch"]}],
                }
            ],
        }
    )
    assert [(case.expect, case.environment, case.note) for case in entry.cases[1:]] == [
        ("unaffected", {"distributions": {"torch": "2.5.1", "peft": None}, "training": {"packing": True}}, "newer"),
        ("undetermined", {"distributions": {"peft": "0.9"}}, None),
    ]


def test_examples_stay_in_the_sources(known: matrix.Matrix) -> None:
    assert not any("examples" in entry for entry in matrix.all_entries(known))
    assert all(read_toml(path).get("examples") for path in list(ENTRIES)[:20])
