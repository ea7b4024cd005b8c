"""Any size, any encoding, any chunking: the same lines."""

from __future__ import annotations

import codecs
import gzip
import random
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from compatcheck import symptoms
from compatcheck.errors import InputError
from compatcheck.files.limits import LOG_LINE_BYTES
from compatcheck.symptoms._stream import batches

LOGS = Path(__file__).parent / "logs"
NAN = LOGS / "transformers-4.48-nan-from-step-16.log"


def lines(path: Path, chunk: int = 1 << 20) -> list[tuple[int, str]]:
    return [
        (number, text)
        for first, block in batches(str(path), chunk)
        for number, text in enumerate(block.split("\n"), first)
    ]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    texts=st.lists(
        st.one_of(
            st.sampled_from(
                ["", "loss", "训练损失 1.5", "a\rb", "\x1b[32mgreen\x1b[0m", "x" + "é" * 40_000, "x" * LOG_LINE_BYTES]
            ),
            st.text(st.characters(blacklist_characters="\n\0", blacklist_categories=["Cs"]), max_size=30),
        ),
        max_size=12,
    ),
    chunk=st.integers(1, 5000),
)
def test_the_size_of_the_chunks_never_shows(texts: list[str], chunk: int, tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes("\n".join(texts).encode())
    assert lines(path, chunk) == lines(path)
    assert "".join(text for _, text in lines(path)) == "".join(texts)


@pytest.mark.parametrize("chunk", [1, 7, 100, 4096])
def test_the_diagnosis_does_not_depend_on_the_chunks(chunk: int) -> None:
    assert repr(symptoms.read(str(NAN), chunk=chunk)) == repr(symptoms.read(str(NAN)))


def gbk(text: str) -> bytes:
    return ("开始训练：正在加载数据集\n" + text.replace("█", "#")).encode("gb18030")


@pytest.mark.parametrize(
    ("change", "shift"),
    [
        (lambda text: text.replace("\n", "\r\n").encode(), 0),
        (lambda text: codecs.BOM_UTF8 + text.encode(), 0),
        (lambda text: text.encode("utf-16"), 0),
        (lambda text: codecs.BOM_UTF16_BE + text.encode("utf-16-be"), 0),
        (gbk, 1),
        (lambda text: gzip.compress(text.encode()), 0),
        (lambda text: gzip.compress(text.encode("utf-16")), 0),
        (lambda text: text.replace("{'loss'", "\x1b[1;32m{'loss'\x1b[0m").encode(), 0),
        (lambda text: text.encode() + b"\n\xff\xfe broken \x80 bytes \xc3\n", 0),
    ],
    ids=["crlf", "utf-8-mark", "utf-16", "utf-16-be", "gbk", "gzip", "gzip-utf-16", "ansi", "broken-bytes"],
)
def test_encodings_and_dressing_give_the_same_diagnosis(change: object, shift: int, tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_bytes(change(NAN.read_bytes().decode()))  # type: ignore[operator]
    (run,), (plain,) = symptoms.read(str(path)).runs, symptoms.read(str(NAN)).runs
    assert run.signature == plain.signature._replace(details=run.signature.details)
    assert run.onset is not None and plain.onset is not None
    assert run.onset.location.line == (plain.onset.location.line or 0) + shift
    assert repr(run.onset.values) == repr(plain.onset.values)
    assert repr(run.curves) == repr(plain.curves)


def test_gbk_is_read_beside_utf_8_line_by_line(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_bytes("损失为零\n".encode("gbk") + "损失为零\n".encode())
    assert [text for _, text in lines(path)] == ["损失为零", "损失为零"]


def test_a_gzip_file_that_is_cut_short_gives_what_there_is_and_says_so(tmp_path: Path) -> None:
    path = tmp_path / "train.log.gz"
    path.write_bytes(gzip.compress(NAN.read_bytes())[:-200])
    log = symptoms.read(str(path))
    assert log.runs and "truncated" in log.notes[0]


@pytest.mark.parametrize(
    ("content", "said"), [(None, "no such file"), (b"\x80\x04\x95\0\0\0\0\0", "the file is not text")]
)
def test_what_is_no_log_is_told_in_one_line(content: bytes | None, said: str, tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError, match=said) as raised:
        symptoms.read(str(path))
    assert "\n" not in str(raised.value)


def test_random_bytes_never_crash_the_reader(tmp_path: Path) -> None:
    rng = random.Random(7)
    words = [b"loss", b"'loss': ", b"nan", b"{", b"}", b"\r", b"\n", b"\xff", b"Traceback (most recent call last):\n"]
    words += [
        b"Error: ",
        b'  File "x.py", line 3',
        b"OVERFLOW! Rank",
        b"TrainingArguments(\n",
        b"1e999",
        b"%|",
        b"step 9",
    ]
    for _ in range(60):
        path = tmp_path / "x.log"
        path.write_bytes(b" " + b"".join(rng.choice(words) for _ in range(rng.randrange(80))))
        symptoms.read(str(path), chunk=rng.randrange(1, 50))
