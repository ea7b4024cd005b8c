"""A row holds of an entry what a ranking needs, without the entry being read."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from compatcheck import matrix
from compatcheck.errors import DataError
from compatcheck.matrix.compile import read_texts, write_compiled
from compatcheck.matrix.loading import load_compiled
from compatcheck.matrix.rows import parse_posting
from tests.conftest import SOURCES


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("compiled")
    write_compiled(SOURCES, folder)
    return folder


def test_rows_repeat_the_entries_in_force(known: matrix.Matrix) -> None:
    entries = matrix.all_entries(known)
    rows = matrix.rows(known)
    assert [row.id for row in rows] == [entry["id"] for entry in entries]
    for row, entry in zip(rows, entries):
        assert row.packages == tuple(entry["packages"])
        assert row.symptoms == tuple(entry.get("symptoms", ()))
        assert row.affected == tuple(entry["affected"])
        assert (row.published, row.confidence, row.impact) == (
            entry["published"],
            entry["confidence"],
            entry["impact"],
        )


def test_the_place_of_a_row_leads_to_its_entry(known: matrix.Matrix) -> None:
    rows = matrix.rows(known)[::97]
    assert [entry["id"] for entry in known.read([row.at for row in rows])] == [row.id for row in rows]


@pytest.mark.parametrize("word", ["cudnn", "grad_norm", "scaled_dot_product_attention", "显存"])
def test_postings_lead_to_the_entries_that_hold_a_word(known: matrix.Matrix, word: str) -> None:
    rows, texts = matrix.rows(known), read_texts(SOURCES)["zh"]
    holders = {}
    for entry in matrix.all_entries(known):
        said = [entry["title"], entry["summary"], entry["mechanism"], *entry.get("misleading", ())]
        said += [remedy[key] for remedy in entry["remedies"] for key in ("why", "action") if key in remedy]
        said += [texts.get(text, "") for text in said]
        said += [pattern["example"] for pattern in entry.get("error_patterns", ())]
        if word in matrix.split_words("\n".join(said)):
            holders[entry["id"]] = sum(list(matrix.split_words(text)).count(word) for text in said)
    counted = {rows[number].id: count for number, count in parse_posting(matrix.postings(known)[word])}
    assert counted.keys() == holders.keys() and all(counted[name] >= holders[name] for name in holders)


def test_a_word_of_nearly_every_entry_has_no_postings(known: matrix.Matrix) -> None:
    most = max(len(parse_posting(text)) for text in matrix.postings(known).values())
    assert most <= 0.4 * len(matrix.rows(known))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The loss of Qwen2_VL is nan!", ["loss", "qwen2_vl", "nan"]),
        ("torch.cuda.OutOfMemoryError: 8.5 GiB", ["torch", "cuda", "outofmemoryerror", "8.5", "gib"]),
        ("升级到torch2.5之后，loss变成nan", ["torch2", "loss", "nan", "升级", "级到", "之后", "变成"]),
        ("it is an a on 3 4", []),
    ],
)
def test_words_of_a_text(text: str, words: list[str]) -> None:
    assert list(matrix.split_words(text)) == words


@pytest.mark.parametrize("name", ["ranking.jsonl", "postings.json"])
def test_a_matrix_without_its_rows_is_refused(compiled: Path, tmp_path: Path, name: str) -> None:
    shutil.copytree(compiled, tmp_path / "copy")
    (tmp_path / "copy" / name).unlink()
    with pytest.raises(DataError, match=name):
        load_compiled(str(tmp_path / "copy"))


def test_rows_and_postings_stay_small(compiled: Path) -> None:
    size = sum((compiled / name).stat().st_size for name in ("ranking.jsonl", "postings.json"))
    assert size < 1500 * len((compiled / "conditions.jsonl").read_bytes().splitlines())
