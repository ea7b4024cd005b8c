from __future__ import annotations

import errno
import hashlib
import json
import os
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compatcheck.project.model_files import _hashing
from compatcheck.project.model_files._hashing import hash_files


@pytest.fixture(autouse=True)
def small_files_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_hashing, "_REMEMBERED_FROM", 10)


@pytest.fixture
def cache(tmp_path: Path) -> str:
    return str(tmp_path / "cache" / "hashes.json")


def settled(path: Path, content: bytes) -> str:
    path.write_bytes(content)
    os.utime(path, (1_700_000_000, 1_700_000_000))
    return str(path)


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@given(contents=st.lists(st.binary(max_size=3_000_000), max_size=4))
def test_the_hashes_are_those_of_the_contents(tmp_path_factory: pytest.TempPathFactory, contents: list[bytes]) -> None:
    folder = tmp_path_factory.mktemp("files")
    done: list[int] = []
    paths = {settled(folder / str(number), content): content for number, content in enumerate(contents)}
    hashes = hash_files(paths, done.append, str(folder / "cache.json"))
    assert hashes.known == {path: sha256(content) for path, content in paths.items()}
    assert sum(done) == sum(map(len, contents)) and not hashes.errors


def test_a_file_that_is_remembered_is_not_read_again(tmp_path: Path, cache: str) -> None:
    path = settled(tmp_path / "a", b"x" * 100)
    first = hash_files([path], cache=cache)
    remembered = json.loads(Path(cache).read_text())
    (key,) = remembered["files"]
    status = os.stat(path)
    assert key == f"{status.st_dev}:{status.st_ino}:100:{status.st_mtime_ns}"
    remembered["files"][key][0] = "f" * 64
    Path(cache).write_text(json.dumps(remembered))
    done: list[int] = []
    assert hash_files([path], done.append, cache).known == {path: "f" * 64}
    assert done == [100] and first.known[path] == sha256(b"x" * 100)


@pytest.mark.parametrize("change", ["content", "time", "inode"])
def test_a_file_that_changed_is_read_again(tmp_path: Path, cache: str, change: str) -> None:
    path = Path(settled(tmp_path / "a", b"x" * 100))
    hash_files([str(path)], cache=cache)
    if change == "inode":
        settled(tmp_path / "b", b"y" * 100)
        (tmp_path / "b").replace(path)
    else:
        path.write_bytes(b"y" * (101 if change == "content" else 100))
        os.utime(path, (1_700_000_000 if change == "content" else 1_700_000_001,) * 2)
    assert hash_files([str(path)], cache=cache).known[str(path)] == sha256(path.read_bytes())


def test_a_file_written_just_now_is_not_remembered(tmp_path: Path, cache: str) -> None:
    (tmp_path / "a").write_bytes(b"x" * 100)
    hash_files([str(tmp_path / "a")], cache=cache)
    assert not Path(cache).exists()


@pytest.mark.parametrize(
    "content",
    ["", "{", "[]", '{"version": 2, "files": {}}', '{"version": 1, "files": []}', '{"version": 1}', "[" * 100_000],
)
def test_a_corrupted_cache_is_ignored_and_written_anew(tmp_path: Path, cache: str, content: str) -> None:
    Path(cache).parent.mkdir()
    Path(cache).write_text(content)
    path = settled(tmp_path / "a", b"x" * 100)
    assert hash_files([path], cache=cache).known == {path: sha256(b"x" * 100)}
    assert [value[0] for value in json.loads(Path(cache).read_text())["files"].values()] == [sha256(b"x" * 100)]


@pytest.mark.parametrize("entry", [None, [], ["f" * 63, 1], ["F" * 64, 1], ["f" * 64, "1"], "f" * 64])
def test_an_entry_that_is_none_of_ours_is_dropped(tmp_path: Path, cache: str, entry: object) -> None:
    path = settled(tmp_path / "a", b"x" * 100)
    hash_files([path], cache=cache)
    stated = json.loads(Path(cache).read_text())
    Path(cache).write_text(json.dumps({"version": 1, "files": dict.fromkeys(stated["files"], entry)}))
    assert hash_files([path], cache=cache).known == {path: sha256(b"x" * 100)}


def test_without_a_place_for_the_cache_it_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = settled(tmp_path / "a", b"x" * 100)
    (tmp_path / "file").write_text("")
    assert hash_files([path], cache=str(tmp_path / "file" / "hashes.json")).known
    monkeypatch.setattr(
        "os.replace", lambda *_, **__: (_ for _ in ()).throw(OSError(errno.ENOSPC, "No space left on device"))
    )
    cache = tmp_path / "cache" / "hashes.json"
    assert hash_files([path], cache=str(cache)).known
    assert list(cache.parent.iterdir()) == []


def test_a_file_that_cannot_be_read_has_its_error(tmp_path: Path, cache: str) -> None:
    path = settled(tmp_path / "a", b"x" * 100)
    hashes = hash_files([path, str(tmp_path), str(tmp_path / "none")], cache=cache)
    assert list(hashes.known) == [path]
    assert {type(error) for error in hashes.errors.values()} == {IsADirectoryError, FileNotFoundError}


def test_an_interruption_stops_all_threads_and_leaves_a_whole_cache(tmp_path: Path, cache: str) -> None:
    done = settled(tmp_path / "done", b"x" * 100)
    hash_files([done], cache=cache)
    paths = []
    for number in range(4):
        path = tmp_path / f"large{number}"
        with path.open("wb") as stream:
            stream.truncate(1 << 36)
        paths.append(settled_sparse(path))

    calls = iter(range(1 << 40))

    def interrupt(count: int) -> None:
        if next(calls) == 3:
            raise KeyboardInterrupt

    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        hash_files(paths, interrupt, cache)
    assert time.monotonic() - start < 5
    assert not [each for each in threading.enumerate() if each.name.startswith("hash")]
    assert len(json.loads(Path(cache).read_text())["files"]) == 1


def settled_sparse(path: Path) -> str:
    os.utime(path, (1_700_000_000, 1_700_000_000))
    return str(path)
