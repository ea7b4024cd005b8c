"""A link that only some runs get to is told in these runs, by the releases that the tables know."""

from __future__ import annotations

import json
from collections.abc import Mapping, Set
from typing import Any

import pytest

from compatcheck import matrix
from compatcheck.environment import Environment
from compatcheck.interfaces.failures import answers
from compatcheck.matrix.traits._link_notes import reaches
from compatcheck.matrix.traits._reached_links import reached_links, refused_releases
from compatcheck.packages.interface_failures import read_failure
from compatcheck.results.findings import Finding
from tests.conftest import ROOT

TRAINER = {"accelerate": "1.2.1", "transformers": "4.52.1"}


def told(known: matrix.Matrix, entry: str, **facts: Any) -> Finding | None:
    found = matrix.judge(known, Environment(facts)).findings
    return next((each for each in found if each.id == entry and "keep_torch_compile" in each.summary), None)


def test_run_that_gets_there_is_affected(known: matrix.Matrix) -> None:
    found = told(known, "CC-2026-1330", distributions=TRAINER, training={"framework": "transformers"})
    assert found and found.status == "affected"
    assert found.packages == ("accelerate", "transformers")
    assert found.remedies[0].pins == {"accelerate": ">=1.3.0"}
    assert found.mechanism.startswith("The Trainer of transformers 4.52 and later calls unwrap_model")


def test_other_run_is_not_told(known: matrix.Matrix) -> None:
    assert told(known, "CC-2026-1330", distributions=TRAINER, training={"framework": "torchtune"}) is None


def test_release_that_does_not_ask_is_not_told(known: matrix.Matrix) -> None:
    older = {**TRAINER, "transformers": "4.51.3"}
    assert told(known, "CC-2026-1330", distributions=older, training={"framework": "transformers"}) is None


def test_release_that_takes_it_is_not_told(known: matrix.Matrix) -> None:
    newer = {**TRAINER, "accelerate": "1.3.0"}
    assert told(known, "CC-2026-1330", distributions=newer, training={"framework": "transformers"}) is None


def test_parameter_that_a_setting_gives_is_told(known: matrix.Matrix) -> None:
    facts = {"distributions": {"peft": "0.8.2"}, "training": {"lora": {"use_dora": True}}}
    found = next(each for each in matrix.judge(known, Environment(facts)).findings if each.id == "CC-2026-3701")
    assert found.status == "affected"
    assert "use_dora" in found.summary
    assert found.remedies[0].pins == {"peft": ">=0.9.0"}


def test_tables_answer_the_line_of_every_note(known: matrix.Matrix) -> None:
    for reach in reaches(known.table):
        failure = read_failure([reach.line])
        assert failure, reach.line
        among = {reach.provider, reach.package} - {""}
        found = answers(failure, known.table, {reach.provider: None}, among)
        assert any(each.package == reach.provider for each in found), reach.line


NOTED = [json.loads(line) for line in (ROOT / "tests" / "matrix" / "noted_examples.jsonl").read_text().splitlines()]
"""Environments of entries that are withdrawn, with what these said of them."""


def test_notes_refuse_what_the_tables_refuse(known: matrix.Matrix) -> None:
    for reach in reaches(known.table):
        of_tables = refused_releases(known.table, reach.line, reach.provider, reach.package, reach.within)
        assert reach.refused == of_tables, reach.line


@pytest.mark.parametrize("identifier", sorted({each["entry"] for each in NOTED}))
def test_examples_of_a_withdrawn_entry_keep_their_verdicts(known: matrix.Matrix, identifier: str) -> None:
    notes = {note["note"] for note in known.table("link-notes")["notes"] if note["entry"] == identifier}
    for example in (each for each in NOTED if each["entry"] == identifier):
        statuses = _statuses(known, example["environment"], notes)
        assert statuses == set() if example["expect"] == "unaffected" else example["expect"] in statuses, example


def _statuses(known: matrix.Matrix, facts: Mapping[str, Any], notes: Set[str]) -> set[str]:
    environment = matrix.infer(known, Environment(facts)).view
    found: Mapping[bool, Any] = {way: reached_links(environment, known.table, of_packages=way) for way in (True, False)}
    return {
        "affected" if each.is_certain else "possible"
        for links in found.values()
        for each in links
        if each.occurrence.note in notes
    }


def test_what_is_absent_fails_as_what_was_removed(known: matrix.Matrix) -> None:
    facts = {"distributions": {"lightning": "2.1.0", "setuptools": None}}
    found = matrix.judge(known, Environment(facts)).findings
    (shown,) = (each for each in found if each.summary.startswith("setuptools is not installed."))
    assert (shown.id, shown.status) == ("CC-2026-1330", "affected")


def test_note_names_who_asks_where_an_error_has_no_frame(known: matrix.Matrix) -> None:
    facts = {
        "distributions": {"optimum": "2.1.0", "gptqmodel": "5.8.0"},
        "interface_errors": [{"error": "no-attribute", "owner": "BACKEND", "name": "EXLLAMA_V1"}],
    }
    found = next(each for each in matrix.judge(known, Environment(facts)).findings if each.id == "CC-2026-3124")
    assert found.packages == ("gptqmodel", "optimum")
    assert {"optimum": ">=2.2.0"} in [dict(each.pins) for each in found.remedies]
