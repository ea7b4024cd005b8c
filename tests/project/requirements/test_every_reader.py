"""What holds for every reader: its contract, and that damaged files are told and never break it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from compatcheck.environment import Environment, Location, Unknown
from compatcheck.environment.snapshot import require_types
from compatcheck.errors import InputError
from compatcheck.project.requirements import readers

SAMPLES = Path(__file__).parent / "samples"
UNITS = readers()
SAMPLE_OF = {
    name: next(path for path in sorted(SAMPLES.iterdir()) if unit.recognises(str(path))) for name, unit in UNITS.items()
}


@pytest.mark.parametrize("name", UNITS)
def test_a_reader_has_a_title_and_knows_its_own_sample_alone(name: str) -> None:
    unit = UNITS[name]
    assert unit.__doc__ and unit.TITLE.startswith(("a ", "an "))
    for other, path in SAMPLE_OF.items():
        assert unit.recognises(str(path)) == (other == name)


@pytest.mark.parametrize("name", UNITS)
def test_what_a_reader_gives_is_a_part_of_a_snapshot(name: str) -> None:
    facts = UNITS[name].read(str(SAMPLE_OF[name]), "3.11")
    require_types({"schema_version": 1, **facts.facts}, "test")
    assert facts.facts["distributions"] and facts.facts["distributions_complete"] is False
    environment = Environment(facts.facts)
    assert all(isinstance(environment.get(path), Unknown) for path in facts.reasons)
    assert all(isinstance(at, Location) and at.line for at in facts.locations.values())
    both = {*facts.facts["distributions"]} & {*facts.section("distribution_ranges")}
    assert not both, "a version that is known leaves no range"


@st.composite
def damaged(draw: st.DrawFn, raw: bytes) -> bytes:
    """The bytes with some of them cut out, doubled, or overwritten."""
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(raw)))
        end = draw(st.integers(start, min(len(raw), start + 200)))
        put = draw(
            st.sampled_from([b"", b"\x00", b"[", b"{", b'"', b"\n", b"&a ", b"*a", b"\xff", b"$", b"- ", b"1", b" = "])
        )
        raw = raw[:start] + put + (raw[start:end] * draw(st.integers(0, 2))) + raw[end:]
    return raw


@pytest.mark.parametrize("name", UNITS)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_damage_is_told_in_one_line_or_read_past(tmp_path: Path, name: str, data: Any) -> None:
    sample = SAMPLE_OF[name]
    shutil.copy(SAMPLES / "more.txt", tmp_path / "more.txt")
    path = tmp_path / sample.name
    path.write_bytes(data.draw(damaged(sample.read_bytes())))
    try:
        facts = UNITS[name].read(str(path), data.draw(st.sampled_from([None, "3.11.7", "3.9"])))
    except InputError as error:
        assert "\n" not in str(error)
    else:
        require_types({"schema_version": 1, **facts.facts}, "test")
