"""A table of rows behind keys says what a dictionary of them would."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compatcheck.files.keyed_rows import PACKED, KeyedRows, PackedRows, pack

KEYS = st.text(st.characters(codec="utf-8", exclude_characters="\t\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"), min_size=1)
VALUES = st.recursive(st.integers() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner))


@given(st.dictionaries(KEYS, VALUES), KEYS)
def test_it_is_the_dictionary_that_was_written(rows: dict[str, object], other: str) -> None:
    ordered = sorted(rows.items(), key=lambda each: each[0].encode())
    content = "".join(f"{key}\t{json.dumps(value)}\n" for key, value in ordered).encode()
    for found in (KeyedRows(content), PackedRows(pack(content))):
        assert {key: found[key] for key in rows} == rows
        assert (other in found) == (other in rows)
        assert sorted(found) == sorted(rows) and len(found) == len(rows)


def test_a_key_is_found_whole_and_not_as_part_of_another() -> None:
    found = KeyedRows(b"call Trainer\t1\ncall Trainer.train\t2")
    assert (found["call Trainer"], found["call Trainer.train"]) == (1, 2)
    with pytest.raises(KeyError):
        found["Trainer"]


def test_a_file_is_read_as_its_content_is(tmp_path: Path) -> None:
    path = tmp_path / "rows.tsv"
    path.write_bytes(b"a\t1\nb\t[2]\n")
    assert dict(KeyedRows.of_file(str(path))) == {"a": 1, "b": [2]}
    path.write_bytes(b"")
    assert dict(KeyedRows.of_file(str(path))) == {}


def test_packed_rows_are_found_in_every_block(tmp_path: Path) -> None:
    rows = {f"call f{number:05}": [number, "x" * 40] for number in range(5000)}
    content = "".join(f"{key}\t{json.dumps(value)}\n" for key, value in rows.items()).encode()
    path = tmp_path / f"rows{PACKED}"
    path.write_bytes(pack(content))
    assert path.stat().st_size < len(content) / 5
    found = KeyedRows.of_file(str(path))
    assert all(found[key] == value for key, value in rows.items())
    assert not {"call", "call f", "call f00001x", "call g"} & {*found}
    assert "call" not in found and "call g" not in found
    assert list(found.keys_ending("0123")) == ["call f00123"]


def test_keys_are_found_by_their_ending() -> None:
    rows = KeyedRows(b'call A.go\t{"a.go\\t": 1}\ncall B.go\t[2]\ncall go\t3\nclass A\t4\n')
    assert list(rows.keys_ending("go")) == ["call A.go", "call B.go", "call go"]
    assert list(rows.keys_ending(".go")) == ["call A.go", "call B.go"] and not list(rows.keys_ending("none"))


def test_keys_are_found_by_a_whole_word_of_their_row() -> None:
    found = KeyedRows(b'a\t"one two"\nb\t"ones"\none\t"three"\nd\t"two,one"')
    assert list(found.keys_holding("one")) == ["a", "d"]
