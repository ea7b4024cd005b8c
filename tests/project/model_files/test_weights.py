"""Weight files from their headers: real safetensors and torch files, and broken ones."""

from __future__ import annotations

import io
import json
import os
import pickle
import struct
import tarfile
import time
import zipfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compatcheck.project import model_files
from compatcheck.project.model_files._other_weights import read_listing
from compatcheck.project.model_files._safetensors import HeaderError, read_shard

POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"4d" * 32 + b"\nsize 1827774160\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "config.json").write_text('{"model_type": "llama"}')
    return tmp_path


def safetensors(
    tensors: dict[str, tuple[str, list[int], int]], metadata: bool = True, data: int | None = None
) -> bytes:
    """A whole file of tensors given as dtype, shape and bytes."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}} if metadata else {}
    end = 0
    for name, (dtype, shape, size) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [end, end + size]}
        end += size
    return raw(json.dumps(header).encode(), end if data is None else data)


def raw(header: bytes, data: int = 0) -> bytes:
    return len(header).to_bytes(8, "little") + header + bytes(data)


def tensor(dtype: str = "F32", shape: object = (2,), offsets: object = (0, 8)) -> bytes:
    return json.dumps({"w": {"dtype": dtype, "shape": shape, "data_offsets": offsets}}).encode()


def model(folder: Path, weights: bool = False) -> dict[str, Any]:
    found: dict[str, Any] = model_files.read(str(folder), weights).facts["model"]
    return found


def problems(folder: Path) -> dict[str, str]:
    return {each["path"]: each["problem"] for each in model(folder).get("file_problems", ())}


def test_whole_weights_are_summed_by_dtype(folder: Path) -> None:
    (folder / "model.safetensors").write_bytes(
        safetensors({"a": ("BF16", [2, 3], 12), "b": ("F32", [], 4), "c": ("F4", [4], 2), "d": ("I8", [0], 0)})
    )
    found = model(folder)
    assert "file_problems" not in found and "file_notes" not in found
    assert found["weights"] == {
        "files": 1,
        "elements": 11,
        "bytes": 18,
        "bytes_by_dtype": {"BF16": 12, "F32": 4, "F4": 2, "I8": 0},
    }


def test_what_the_library_writes_is_read(folder: Path) -> None:
    numpy = pytest.importorskip("numpy")
    library = pytest.importorskip("safetensors.numpy")
    library.save_file({"w": numpy.zeros((3, 4), "float16")}, folder / "model.safetensors")
    found = model(folder)
    assert (found["weights"]["elements"], found["weights"]["bytes_by_dtype"]) == (12, {"F16": 24})
    assert found["weights"]["without_metadata"] == ["model.safetensors"]
    assert found["traits"] == ["safetensors-without-metadata"]


@pytest.mark.parametrize("name", ["adapter_model.safetensors", "consolidated.safetensors", "model.fp16.safetensors"])
def test_metadata_matters_only_in_files_that_transformers_looks_for(name: str, folder: Path) -> None:
    (folder / name).write_bytes(safetensors({"w": ("F32", [2], 8)}, metadata=False))
    assert model(folder)["traits"] == []


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "truncated: 0 bytes"),
        (safetensors({"w": ("F32", [2], 8)})[:20], "its header takes"),
        (safetensors({"w": ("F32", [2], 8)}, data=7), "truncated: "),
        (safetensors({"w": ("F32", [2], 8)}, data=9), "1 bytes too long"),
        (POINTER, "git lfs pull"),
        ((1 << 63).to_bytes(8, "little") + b"{}", f"its header claims {1 << 63} bytes"),
        (raw(b"[]"), "not a JSON object"),
        (raw(b'{"w": {}}'), "'w' has no data_offsets"),
        (raw(b'{"a":' * 100_000), "nested too deeply"),
        (raw(b'{"w": 1, "w": 2}'), "'w' is given twice"),
        (raw(tensor(offsets=[0, "8"]), 8), "no data_offsets"),
        (raw(tensor(offsets=[-8, 0]), 8), "no data_offsets"),
        (raw(tensor(offsets=[0, True]), 8), "no data_offsets"),
        (raw(tensor(offsets=[0, 1 << 70]), 8), "no data_offsets"),
        (raw(tensor(shape=[-2]), 8), "no shape"),
        (raw(tensor(shape="2"), 8), "no shape"),
        (raw(tensor(shape=[3]), 8), "8 bytes, but its shape and dtype take 12"),
        (raw(tensor(dtype="Q3"), 8), "the dtype 'Q3'"),
        (raw(tensor(offsets=[8, 16]), 16), "leaves a gap"),
        (raw(tensor()[:-1] + b"," + tensor().replace(b'"w"', b'"v"')[1:], 8), "overlaps"),
        (raw(b"\xff\xfe{}"), "its safetensors header is invalid"),
    ],
)
def test_a_broken_safetensors_file_is_told_in_one_line(folder: Path, content: bytes, problem: str) -> None:
    (folder / "model.safetensors").write_bytes(content)
    found = model(folder)
    assert [each["path"] for each in found["file_problems"]] == ["model.safetensors"]
    told = found["file_problems"][0]["problem"]
    assert problem in told and "\n" not in told and len(told) < 300
    assert "weights" not in found


def test_a_header_beyond_any_model_is_not_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("compatcheck.files.limits.HEADER_BYTES", 50)
    (folder / "model.safetensors").write_bytes(safetensors({"w": ("F32", [2], 8)}))
    assert "its header claims" in problems(folder)["model.safetensors"]


@given(st.binary(max_size=300))
def test_no_bytes_break_the_reader(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "any.safetensors"
    for start in (b"", len(content).to_bytes(8, "little"), b"GGUF\x03\0\0\0", b"PK\x03\x04"):
        path.write_bytes(start + content)
        for reader in (read_shard, read_listing):
            try:
                reader(str(path))
            except HeaderError as error:
                assert "\n" not in str(error)


def two_shards(folder: Path, total: int = 16) -> None:
    names = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"]
    for name, key in zip(names, "ab"):
        (folder / name).write_bytes(safetensors({key: ("F32", [2], 8)}))
    index = {"metadata": {"total_size": total}, "weight_map": dict(zip("ab", names))}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


def test_shards_that_fit_their_index(folder: Path) -> None:
    two_shards(folder)
    found = model(folder)
    assert "file_problems" not in found and "file_notes" not in found
    assert (found["weights"]["files"], found["weights"]["bytes"]) == (2, 16)


def test_another_total_size_is_a_note_and_no_problem(folder: Path) -> None:
    two_shards(folder, total=99)
    found = model(folder)
    assert "file_problems" not in found
    assert found["file_notes"] == [
        {"path": "model.safetensors.index.json", "note": "the total_size is 99, but the shards hold 16 bytes"}
    ]


def test_a_shard_that_is_missing(folder: Path) -> None:
    two_shards(folder)
    (folder / "model-00002-of-00002.safetensors").unlink()
    assert problems(folder) == {"model-00002-of-00002.safetensors": "missing: the index places 1 tensors in this file"}
    assert "weights" not in model(folder)


def test_a_shard_that_lacks_tensors_of_the_index(folder: Path) -> None:
    two_shards(folder)
    (folder / "model-00002-of-00002.safetensors").write_bytes(safetensors({"other": ("F32", [2], 8)}))
    told = problems(folder)["model-00002-of-00002.safetensors"]
    assert told == "lacks 1 of the 1 tensors that the index places in this file: b"


def test_an_index_that_is_none(folder: Path) -> None:
    two_shards(folder)
    (folder / "model.safetensors.index.json").write_text('{"weight_map": ["a"]}')
    assert "no weight_map" in problems(folder)["model.safetensors.index.json"]
    (folder / "model.safetensors.index.json").write_text("{")
    assert "line 1" in problems(folder)["model.safetensors.index.json"]


def test_index_of_many_files_costs_little(folder: Path) -> None:
    two_shards(folder)
    index = {"weight_map": {f"t{number}": f"f{number}.safetensors" for number in range(100_000)}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    started = time.process_time()
    assert problems(folder) == {"model.safetensors.index.json": "the index names 100000 files"}
    assert time.process_time() - started < 5


def test_header_of_millions_of_values_is_not_parsed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("compatcheck.files.limits.HEADER_VALUES", 1000)
    header = b'{"a":[' + b",".join([b"[]"] * 1000) + b"]}"
    (folder / "model.safetensors").write_bytes(raw(header))
    assert "more than 1000 values" in problems(folder)["model.safetensors"]


def test_weights_that_are_not_loaded_do_not_count(folder: Path) -> None:
    two_shards(folder)
    (folder / "consolidated.safetensors").write_bytes(safetensors({"x": ("F32", [20], 80)}))
    assert model(folder)["weights"]["bytes"] == 16
    (folder / "model.safetensors.index.json").unlink()
    assert model(folder)["weights"]["bytes"] == 96
    (folder / "model.safetensors").write_bytes(safetensors({"y": ("F32", [3], 12)}))
    assert model(folder)["weights"]["bytes"] == 12


def test_a_broken_shard_of_an_index_is_told_once(folder: Path) -> None:
    two_shards(folder)
    (folder / "model-00002-of-00002.safetensors").write_bytes(POINTER)
    found = model(folder)
    assert [each["path"] for each in found["file_problems"]] == ["model-00002-of-00002.safetensors"]
    assert "weights" not in found


def test_a_torch_zip_is_listed(folder: Path) -> None:
    with zipfile.ZipFile(folder / "pytorch_model.bin", "w") as archive:
        archive.writestr("archive/data.pkl", b"\x80\x02}.")
        archive.writestr("archive/data/0", bytes(24))
        archive.writestr("archive/data/1", bytes(8))
    assert model(folder)["weights"]["listed"] == [
        {"path": "pytorch_model.bin", "kind": "zip", "tensors": 2, "bytes": 32}
    ]


@pytest.mark.stack
def test_what_torch_saves_is_listed_and_not_loaded(folder: Path) -> None:
    torch = pytest.importorskip("torch")
    torch.save({"w": torch.zeros(6)}, folder / "pytorch_model.bin")
    assert model(folder)["weights"]["listed"][0]["bytes"] == 24
    torch.save({"w": torch.zeros(6)}, folder / "pytorch_model.bin", _use_new_zipfile_serialization=False)
    assert model(folder)["weights"]["listed"] == [{"path": "pytorch_model.bin", "kind": "pickle"}]


class Bomb:
    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, ("touch exploded",)


def test_a_pickle_is_never_run(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    (folder / "model.pt").write_bytes(pickle.dumps(Bomb(), protocol=2))
    with zipfile.ZipFile(folder / "pytorch_model.bin", "w") as archive:
        archive.writestr("archive/data.pkl", pickle.dumps(Bomb()))
    assert [each["kind"] for each in model(folder)["weights"]["listed"]] == ["pickle", "zip"]
    assert not (folder / "exploded").exists()


def test_an_old_tar_is_told(folder: Path) -> None:
    with tarfile.open(folder / "model.pth", "w") as archive:
        archive.addfile(tarfile.TarInfo("storages"), io.BytesIO())
    assert model(folder)["weights"]["listed"] == [{"path": "model.pth", "kind": "tar"}]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (POINTER, "git lfs pull"),
        (b"", "truncated: 0 bytes"),
        (b"PK\x03\x04 cut short", "the listing at the end"),
        (b"PK\x03\x04" + b"PK\x05\x06" + bytes(8) + b"\xff\xff\xff\x7f" + bytes(6), "its zip listing claims"),
        (b"PK\x03\x04" + b"PK\x05\x06" + b"\xff" * 18, "damaged"),
        (b"<html>not found</html>", "not a zip"),
        (b"GGUF\x03\0\0", "truncated"),
    ],
)
def test_a_broken_file_of_another_kind(folder: Path, content: bytes, problem: str) -> None:
    (folder / "pytorch_model.bin").write_bytes(content)
    assert problem in problems(folder)["pytorch_model.bin"]


@pytest.mark.parametrize("name", ["tokenizer.model", "tokenizer.json", "modeling_a.py", "qwen.tiktoken"])
def test_a_pointer_in_the_place_of_any_file_is_told_by_name(folder: Path, name: str) -> None:
    (folder / name).write_bytes(POINTER)
    assert "git lfs pull" in problems(folder)[name]


def gguf(*pairs: tuple[str, int, bytes], count: int | None = None) -> bytes:
    body = b"".join(
        struct.pack("<Q", len(key)) + key.encode() + struct.pack("<I", kind) + value for key, kind, value in pairs
    )
    return b"GGUF" + struct.pack("<IQQ", 3, 2, len(pairs) if count is None else count) + body


def text(value: str) -> bytes:
    return struct.pack("<Q", len(value)) + value.encode()


def test_a_gguf_header_names_the_model(folder: Path) -> None:
    pairs = (("general.alignment", 4, bytes(4)), ("general.architecture", 8, text("llama")))
    content = gguf(*pairs, ("general.name", 8, text("Tiny")), ("tokenizer.ggml.tokens", 9, b""))
    (folder / "model.gguf").write_bytes(content)
    stated = {"architecture": "llama", "name": "Tiny"}
    assert model(folder)["weights"]["listed"] == [
        {"path": "model.gguf", "kind": "gguf", "tensors": 2, "stated": stated}
    ]


@pytest.mark.parametrize(
    "content",
    [gguf(count=1 << 60), gguf(("a", 8, struct.pack("<Q", 1 << 60))), gguf(("a", 8, struct.pack("<Q", 50) + b"x"))],
    ids=["pairs", "text", "cut"],
)
def test_a_hostile_gguf_header(folder: Path, content: bytes) -> None:
    (folder / "model.gguf").write_bytes(content)
    assert problems(folder)["model.gguf"].startswith(("damaged", "truncated"))


def test_what_the_trainer_leaves_beside_is_no_weight(folder: Path) -> None:
    (folder / "training_args.bin").write_bytes(b"x")
    (folder / "optimizer.pt").write_bytes(b"x")
    assert problems(folder) == {} and "weights" not in model(folder)


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_weights_that_may_not_be_read(folder: Path) -> None:
    (folder / "model.safetensors").write_bytes(safetensors({}))
    (folder / "model.safetensors").chmod(0)
    assert "cannot be read" in problems(folder)["model.safetensors"]
