"""Rows behind keys, found in the text without parsing the rest."""

from __future__ import annotations

import pytest

from compatcheck.files.keyed_rows import KeyedRows

ROWS = KeyedRows(b'call A.go\t{"a.go\\t": 1}\ncall B.go\t[2]\ncall go\t3\nclass A\t4\n')


def test_a_row_is_found_by_its_key() -> None:
    assert ROWS["call B.go"] == [2] and len(ROWS) == 4 and "class A" in ROWS and "class" not in ROWS
    with pytest.raises(KeyError):
        ROWS["call B"]


def test_keys_are_found_by_their_ending() -> None:
    assert list(ROWS.keys_ending("go")) == ["call A.go", "call B.go", "call go"]
    assert list(ROWS.keys_ending(".go")) == ["call A.go", "call B.go"] and not list(ROWS.keys_ending("none"))
