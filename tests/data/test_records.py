"""Files as they lie about: broken, huge, in other encodings. Nothing raises, and line numbers are right."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from compatcheck.data._records import Record, read
from compatcheck.errors import InputError
from compatcheck.files import limits


def records(path: Path, content: bytes) -> list[Record]:
    path.write_bytes(content)
    return list(read(str(path)))


def faults(found: list[Record]) -> dict[int, str]:
    return {each.number: each.fault for each in found if each.fault}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data.jsonl"


def test_lines_keep_their_numbers_past_blank_and_broken_ones(path: Path) -> None:
    found = records(path, b'{"a": 1}\r\n\r\n{"a": 2\r\n{"a": 3}')
    assert [(each.number, each.value) for each in found if not each.fault] == [(1, {"a": 1}), (4, {"a": 3})]
    assert list(faults(found)) == [3] and "column" in faults(found)[3]


@pytest.mark.parametrize("indent", [None, 2])
def test_an_array_is_read_element_by_element(path: Path, indent: int | None) -> None:
    values = [{"n": n, "text": "x" * 3000} for n in range(900)]
    found = records(path, json.dumps(values, indent=indent).encode())
    assert [each.value for each in found] == values and [each.number for each in found][-1] == 900


def test_an_array_cut_in_half_tells_where(path: Path) -> None:
    whole = json.dumps([{"n": n} for n in range(40)])
    found = records(path, whole[: len(whole) // 2].encode())
    assert faults(found) and [each.value["n"] for each in found if each.value] == list(range(len(found) - 1))


def test_lines_that_are_lists_are_lines(path: Path) -> None:
    assert [each.value for each in records(path, b"[1, 2]\n[3]\n")] == [[1, 2], [3]]


def test_gzip_is_unpacked_and_a_damaged_one_is_told(path: Path) -> None:
    packed = gzip.compress(b'{"a": 1}\n' * 20_000)
    assert len(records(path, packed)) == 20_000
    assert "compressed" in str(list(faults(records(path, packed[:60])).values()))


def test_a_line_beyond_the_bound_is_told_and_the_next_one_is_read(path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(limits, "ROW_BYTES", 1 << 20)
    found = records(path, b'{"a": "' + b"x" * (5 << 20) + b'"}\n{"a": 2}\n')
    assert list(faults(found)) == [1] and found[1].value == {"a": 2}


def test_an_endless_element_of_an_array_is_bounded(path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(limits, "ROW_BYTES", 1 << 20)
    assert "longer than" in faults(records(path, b'[{"a": "' + b"x" * (8 << 20)))[1]


@pytest.mark.parametrize("content", [b"[" * 200_000, b'{"a":' * 200_000 + b"\n", b"[[" + b"[" * 100_000 + b"\n[1]"])
def test_deep_nesting_is_a_fault(path: Path, content: bytes) -> None:
    assert "deeply" in str(faults(records(path, content)))


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_utf_16_is_read_and_named(path: Path, encoding: str) -> None:
    mark = "" if encoding == "utf-16" else "\ufeff"
    found = records(path, (mark + '{"a": "你好"}\n{"a": "b"}\n').encode(encoding))
    assert [each.value for each in found] == [{"a": "你好"}, {"a": "b"}] and found[0].encoding == "UTF-16"


def test_gbk_is_read_and_named(path: Path) -> None:
    found = records(path, '{"a": "你好，世界"}\n'.encode("gbk"))
    assert found[0].value == {"a": "你好，世界"} and found[0].encoding == "GBK (GB 18030)"


def test_a_byte_order_mark_is_no_fault(path: Path) -> None:
    assert records(path, b'\xef\xbb\xbf{"a": 1}\n') == [Record(1, {"a": 1})]


def test_nul_bytes_are_a_fault_of_their_line(path: Path) -> None:
    assert list(faults(records(path, b'{"a": "\x00"}\n\x00\x00\n{"a": 1}\n'))) == [1]


def test_a_missing_file_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        list(read(str(tmp_path / "none")))
    with pytest.raises(InputError, match="this is a folder; pass one file of the folder"):
        list(read(str(tmp_path)))


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=6,
)
ROWS = st.lists(st.fixed_dictionaries({"messages": VALUES}), min_size=1, max_size=6)


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(ROWS)
def test_lines_and_arrays_give_back_what_was_written(tmp_path_factory: pytest.TempPathFactory, rows: list[Any]) -> None:
    path = tmp_path_factory.mktemp("rows") / "data"
    lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    for text in (lines, json.dumps(rows, ensure_ascii=False, indent=1)):
        assert [each.value for each in records(path, text.encode("utf-8", "surrogatepass"))] == rows


@settings(deadline=None, max_examples=100, suppress_health_check=[HealthCheck.too_slow])
@given(st.binary(max_size=200))
def test_any_bytes_are_survived(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    for each in records(tmp_path_factory.getbasetemp() / "any", content):
        assert each.number >= 1
