"""What is known of a single link is shown with the finding of the tables."""

from __future__ import annotations

import pytest

from compatcheck import matrix
from compatcheck.environment import Environment
from compatcheck.packages.interface_failures import read_failure, to_fact
from compatcheck.results.findings import Finding

LINE = "ImportError: cannot import name '{}' from 'huggingface_hub' (/env/huggingface_hub/__init__.py)"


def finding(known: matrix.Matrix, name: str) -> Finding:
    failure = read_failure([LINE.format(name)])
    assert failure
    facts = {"distributions": {"huggingface-hub": "0.20.3"}, "interface_errors": [to_fact(failure)]}
    return next(each for each in matrix.judge(known, Environment(facts)).findings if each.id == "CC-2026-3124")


def test_note_and_its_source_come_first(known: matrix.Matrix) -> None:
    found = finding(known, "split_torch_state_dict_into_shards")
    assert found.mechanism.startswith("accelerate/accelerator.py imports split_torch_state_dict_into_shards on load")
    assert "Libraries add and remove names, parameters and attributes" in found.mechanism
    assert found.evidence[0] == "https://github.com/huggingface/accelerate/blob/v0.32.1/src/accelerate/accelerator.py"


def test_name_without_note_has_the_mechanism_alone(known: matrix.Matrix) -> None:
    assert finding(known, "DDUFEntry").mechanism.startswith("Libraries add and remove names")


def test_note_is_shown_in_chinese(known: matrix.Matrix, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("compatcheck.matrix.current", lambda: "zh")
    assert finding(known, "split_torch_state_dict_into_shards").mechanism.startswith("从 0.32.0 到 1.12.0，accelerate")


def test_notes_stand_for_entries_that_are_withdrawn(known: matrix.Matrix) -> None:
    withdrawn = {entry["id"] for entry in matrix.withdrawn_entries(known)}
    assert {note["entry"] for note in known.table("link-notes")["notes"]} <= withdrawn


def status_of_links(known: matrix.Matrix, **facts: dict[str, str]) -> str | None:
    found = matrix.judge(known, Environment(facts)).findings
    return next((each.status for each in found if each.id == "CC-2026-1330"), None)


def test_note_says_what_whoever_has_both_installed_meets(known: matrix.Matrix) -> None:
    noted = {"gradio": "4.44.1", "huggingface-hub": "1.0.0"}
    assert status_of_links(known, distributions=noted) == "affected"
    assert status_of_links(known, distributions={**noted, "gradio": "5.49.1"}) is None


def test_range_counts_as_its_newest_release(known: matrix.Matrix) -> None:
    facts = {"distributions": {"transformers": "4.41.2"}}
    assert status_of_links(known, **facts, distribution_ranges={"peft": ">=0.10"}) == "possible"
    assert status_of_links(known, **facts, distribution_ranges={"peft": "<0.14"}) is None
