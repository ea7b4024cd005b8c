"""A setting that is off unless somebody turns it on, and that nobody mentions, hides no entry that requires it off."""

from __future__ import annotations

from compatcheck import matrix
from compatcheck.environment import Environment
from compatcheck.matrix._traits import trait_finder
from compatcheck.matrix.matching.match import Conditions, is_reported, match_table
from compatcheck.matrix.matching.relevance import is_left_off
from tests.matrix.test_entries import ENTRIES


def _without(environment: Environment, paths: list[str]) -> Environment:
    facts = {key: dict(value) if isinstance(value, dict) else value for key, value in environment.facts.items()}
    for path in paths:
        section, _, fact = path.partition(".")
        facts[section].pop(fact, None)
    return Environment(facts)


def test_unmentioned_switch_hides_no_entry(known: matrix.Matrix) -> None:
    traits = trait_finder(known.table)

    def is_hidden(table: Conditions, environment: Environment) -> bool:
        off = [path for path, condition in table.items() if is_left_off(path, condition)]
        held = off and match_table(table, environment, traits).holds
        return bool(held) and not is_reported(match_table(table, _without(environment, off), traits))

    hidden = {
        entry.id
        for entry in ENTRIES.values()
        for table in entry.affected
        for case in entry.cases
        if is_hidden(table, Environment(case.environment))
    }
    assert hidden == set()


def test_unmentioned_switch_of_deepspeed_is_no_hint(known: matrix.Matrix) -> None:
    assert is_left_off("training.packing", False)
    assert is_left_off("training.fsdp", "absent")
    assert not is_left_off("training.deepspeed.stage3_gather_16bit_weights_on_model_save", False)
    assert not is_left_off("training.packing", True)
