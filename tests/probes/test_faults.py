"""Documented faults are convicted, and the table of them in the README of the probes is the suite's."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

from compatcheck import probes
from tools import probe_notes
from tools.fault_table import kept, key
from tools.faults import all_faults
from tools.faults._plant import CAUGHT, MISSED, Fault, Seen, try_fault, worst

README = Path(probes.__file__).with_name("README.md")
LINE = re.compile(r"^\| (?P<name>[^|]+) \| (?P<dtype>\w*) \| `(?P<probe>\w+)` \| (?P<outcome>\w+)[^|]*\|", re.MULTILINE)


def named(fault: Fault) -> str:
    return key(fault).strip()


def outcomes() -> dict[str, str]:
    """What the table says of every fault."""
    table = LINE.finditer(probe_notes.part(README, "faults"))
    return {f"{line['probe']}: {line['name']} {line['dtype']}".strip(): line["outcome"] for line in table}


@pytest.mark.stack
@pytest.mark.parametrize("fault", [fault for fault in all_faults() if fault.quick], ids=named)
def test_a_planted_fault_comes_out_as_the_table_says(fault: Fault) -> None:
    for package in ("torch", *fault.needs):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed")
    seen = try_fault(fault, seed=0)
    assert seen.word == fault.expect, seen.why
    assert outcomes()[named(fault)] == seen.word


def test_the_table_holds_every_fault_as_expected() -> None:
    told = outcomes()
    assert set(told) == {named(fault) for fault in all_faults()}
    assert {name: outcome for name, outcome in told.items() if outcome != "skipped"}.items() <= {
        named(fault): fault.expect for fault in all_faults()
    }.items()


def test_every_fault_has_one_name_and_no_miss_is_without_a_reason() -> None:
    faults = all_faults()
    assert len({named(fault) for fault in faults}) == len(faults)
    assert all(fault.below for fault in faults if fault.expect == MISSED)
    assert all(bool(fault.plant) != bool(fault.start_up[0]) or fault.request for fault in faults)


def test_the_list_of_probes_is_current() -> None:
    assert probe_notes.part(README, "probes") == probe_notes.listed(), "run python tools/probe_notes.py"


def test_several_seeds_give_the_weakest_outcome() -> None:
    assert worst([Seen(CAUGHT, ""), Seen(MISSED, "")]) == MISSED
    assert kept(None) == {}
