"""Each declared fact is one wherever facts are spoken of: in snapshots, statements, conditions and pages."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from compatcheck.environment import Environment
from compatcheck.environment.assumptions import assume
from compatcheck.environment.schema import faults, schema
from compatcheck.environment.vocabulary import (
    ANY,
    CAPABILITY,
    COMPUTED,
    EVERY_GPU,
    FACTS,
    SECTION,
    Fact,
    fact_at,
    keys,
    kind_of,
    stranger_in,
)
from compatcheck.errors import InputError
from compatcheck.matrix.matching.match import TraitVerdict, match_table
from tests.conftest import ROOT
from tools.facts_page import PAGE, page

GOOD = {
    "string": "1.5",
    "boolean": True,
    "integer": 2,
    "number": 2.5,
    "object": {},
    "array": ["a"],
    "['string', 'boolean']": "pissa",
    "['object', 'array']": [{"a": 1}],
}
NAME = "name-1"


def value_of(fact: Fact) -> Any:
    shape = fact.type.schema
    if "enum" in shape:
        return shape["enum"][0]
    if "format" in shape:
        return "2025-01-31"
    return "12.4" if "pattern" in shape else GOOD[str(shape["type"])]


def statement_of(fact: Fact, value: Any) -> tuple[str, Any]:
    """What states a fact: a path and its value; of a list, the whole list, and of a file, all that is known of it."""
    section, is_file, last = fact.path.partition(".*.")
    if is_file:
        return f"{section}.{NAME}", {last: value}
    path = fact.path.replace("*", NAME).replace("gpus[].", "gpu.")
    section, is_listed, last = path.partition("[].")
    if not is_listed:
        return path, value
    begin = f"{section}[]."
    beside = {each.path[len(begin) :]: value_of(each) for each in FACTS if each.required and begin in each.path}
    return section, [{**beside, last: value}]


@pytest.mark.parametrize("fact", FACTS, ids=lambda fact: fact.path)
def test_every_fact_can_be_assumed(fact: Fact) -> None:
    path, value = statement_of(fact, value_of(fact))
    stated = assume(Environment(), f"{path}={value if isinstance(value, str) else json.dumps(value)}")
    assert stated.get(path) == value if not path.startswith("gpu.") else stated.facts["gpus"] == [{path[4:]: value}]
    if not fact.required and ".*." not in fact.path:
        assert "None" in str(assume(stated, f"{path}=absent").facts)


@pytest.mark.parametrize("fact", FACTS, ids=lambda fact: fact.path)
def test_a_fact_of_another_type_is_refused(fact: Fact) -> None:
    path, value = statement_of(fact, "x" if fact.type in (ANY, SECTION) else {"x": 1})
    facts = {"gpus": [{path[4:]: value}]} if path.startswith("gpu.") else Environment.from_flat({path: value}).facts
    (fault,) = faults(facts, schema())
    assert f"{fact.path.rpartition('.')[2].replace('*', NAME)}: must be {fact.type.words}, not " in fault


HOLDS = {"version": ">=1.5", "number": ">=2", "labels": ["a", "b"], "flag": True}
FAILS = {"version": "<1", "number": "<2", "labels": ["b"], "flag": False, "text": ["another word"]}


@pytest.mark.parametrize("key", [key for key in keys() if key not in COMPUTED])
def test_a_fact_is_matched_as_it_is_declared(key: str) -> None:
    path = f"{key}{NAME}" if key.endswith(".") else key
    fact, kind = fact_at(path), kind_of(path)
    assert fact is not None and kind is not None
    value = "1.5" if kind == "version" and fact.type is not CAPABILITY else value_of(fact)
    stated = (
        Environment({"gpus": [{path.partition(".")[2]: value}]})
        if path.startswith(EVERY_GPU)
        else Environment.from_flat({path: value})
    )
    unknown = match_table({path: "present"}, Environment(), no_traits)
    assert unknown.holds is None and unknown.missing == (path.removeprefix("every_"),)
    assert match_table({path: "present"}, stated, no_traits).holds is True
    assert match_table({path: "absent"}, stated, no_traits).holds is False
    if fact.type is not SECTION:
        assert match_table({path: HOLDS.get(kind, value)}, stated, no_traits).holds is True
        assert match_table({path: FAILS[kind]}, stated, no_traits).holds is False


def no_traits(name: str, environment: Environment) -> TraitVerdict:
    return TraitVerdict(None, missing=(name,))


@pytest.mark.parametrize("path", ["training.deepspeed.optimiser=muon", "foo=1", "gpu.foo=1", "target.prefix=x"])
def test_a_fact_that_is_not_declared_is_refused(path: str) -> None:
    with pytest.raises(InputError, match="there is no fact called"):
        assume(Environment(), path)


@pytest.mark.parametrize("path", COMPUTED)
def test_what_is_computed_is_not_stated(path: str) -> None:
    with pytest.raises(InputError, match=f"{path}: this fact is computed from other facts; supply those facts"):
        assume(Environment(), f"{path}=transformers")


def test_a_fact_is_compared_or_says_what_reads_it() -> None:
    assert [fact.path for fact in FACTS if not fact.kind and not fact.used_by] == []
    assert len({fact.path for fact in FACTS}) == len(FACTS)
    for path, kind in keys().items():
        assert kind_of(f"{path}{NAME}" if path.endswith(".") else path) == kind
    assert all(fact_at(key) for key in keys() if not key.endswith(".") and key not in COMPUTED)


def test_every_path_in_the_code_is_declared() -> None:
    literal = re.compile(r"\"((?:training|cuda|platform|torch_build|every_gpu|gpu)\.[a-z_0-9.]*[a-z_0-9])\"")
    files = (ROOT / "compatcheck").rglob("*.py")
    named = {path for file in files for path in literal.findall(file.read_text(encoding="utf-8"))}
    strangers = {path for path in named if path not in COMPUTED and stranger_in(path)}
    assert strangers == set()


def test_the_page_of_facts_is_up_to_date() -> None:
    assert page() == PAGE.read_text(encoding="utf-8"), "run: python -m tools.facts_page"


def test_a_snapshot_of_no_facts_keeps_to_the_schema() -> None:
    assert list(faults({"schema_version": 1}, schema())) == []
