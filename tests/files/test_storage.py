"""A file is written whole or not at all."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from compatcheck.errors import InputError
from compatcheck.files import storage
from compatcheck.files.storage import require_inside, write

posix = pytest.mark.skipif(os.name == "nt", reason="permissions, links and pipes are those of POSIX")


def test_a_new_file_and_an_old_one_hold_the_text_alone(tmp_path: Path) -> None:
    for text in ("long\n" * 1000, "short\n", "", "中文 é\n"):
        write(str(tmp_path / "out.txt"), text)
        assert (tmp_path / "out.txt").read_text(encoding="utf-8") == text
    assert os.listdir(tmp_path) == ["out.txt"]


def test_a_name_without_a_folder_is_in_the_present_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write("out.txt", "here\n")
    assert (tmp_path / "out.txt").read_text(encoding="utf-8") == "here\n"


@posix
def test_the_file_is_replaced_in_one_step(tmp_path: Path) -> None:
    out = tmp_path / "out.txt"
    out.write_text("old", encoding="utf-8")
    with out.open(encoding="utf-8") as reader:
        write(str(out), "new")
        assert reader.read() == "old"


@posix
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o755])
def test_permissions_are_kept(tmp_path: Path, mode: int) -> None:
    out = tmp_path / "out.txt"
    out.touch()
    out.chmod(mode)
    write(str(out), "x")
    assert out.stat().st_mode & 0o777 == mode


@posix
@pytest.mark.parametrize(("mask", "mode"), [(0o022, 0o644), (0o077, 0o600)])
def test_a_new_file_gets_what_the_umask_leaves(tmp_path: Path, mask: int, mode: int) -> None:
    before = os.umask(mask)
    try:
        write(str(tmp_path / "out.txt"), "x")
    finally:
        assert os.umask(before) == mask
    assert (tmp_path / "out.txt").stat().st_mode & 0o777 == mode


@posix
@pytest.mark.parametrize("existing", [True, False])
def test_a_link_is_followed_to_its_target(tmp_path: Path, existing: bool) -> None:
    (tmp_path / "elsewhere").mkdir()
    target, link = tmp_path / "elsewhere" / "target.txt", tmp_path / "link.txt"
    link.symlink_to(target)
    if existing:
        target.write_text("old", encoding="utf-8")
    write(str(link), "new")
    assert link.is_symlink() and target.read_text(encoding="utf-8") == "new" and not target.is_symlink()
    assert os.listdir(target.parent) == ["target.txt"]


@posix
def test_a_pipe_is_written_to_as_it_is(tmp_path: Path) -> None:
    pipe, heard = tmp_path / "pipe", list[str]()
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: heard.append(pipe.read_text(encoding="utf-8")), daemon=True)
    reader.start()
    write(str(pipe), "through\n")
    reader.join(10)
    assert heard == ["through\n"] and pipe.is_fifo()


@posix
def test_a_device_stays_a_device(tmp_path: Path) -> None:
    write(os.devnull, "gone")
    (tmp_path / "null").symlink_to(os.devnull)
    write(str(tmp_path / "null"), "gone")
    assert Path(os.devnull).is_char_device() and os.listdir(tmp_path) == ["null"]


@posix
@pytest.mark.parametrize("path", ["missing/out.txt", "plain/out.txt", ".", "loop"])
def test_a_place_that_cannot_be_written_is_named_and_left_alone(tmp_path: Path, path: str) -> None:
    (tmp_path / "plain").write_text("a file", encoding="utf-8")
    (tmp_path / "loop").symlink_to("loop")
    before = sorted(os.listdir(tmp_path))
    with pytest.raises(InputError, match=f"^writing .*{path}.*; choose a file in a folder you can write to$"):
        write(f"{tmp_path}/{path}", "x")
    assert sorted(os.listdir(tmp_path)) == before


@posix
@pytest.mark.skipif(hasattr(os, "geteuid") and os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(InputError, match="Permission denied"):
        write(str(tmp_path / "out.txt"), "x")
    assert os.listdir(tmp_path) == []


def test_text_that_has_no_encoding_is_replaced(tmp_path: Path) -> None:
    write(str(tmp_path / "out.txt"), "a\udcffb")
    assert (tmp_path / "out.txt").read_bytes() == b"a?b"


FULL_DISK = """
import resource, signal, sys
from compatcheck.files import storage
from compatcheck.files.storage import require_inside, write
from compatcheck.errors import InputError
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    write(sys.argv[1], "new" * 1000)
except InputError as error:
    print(error)
"""


@posix
@pytest.mark.parametrize("existing", [True, False])
def test_a_full_disk_leaves_what_was_there(tmp_path: Path, existing: bool) -> None:
    out = tmp_path / "out.txt"
    if existing:
        out.write_text("old", encoding="utf-8")
    done = subprocess.run([sys.executable, "-c", FULL_DISK, str(out)], capture_output=True, text=True, check=True)
    assert done.stdout == f"writing {out}: File too large; free some space, or write the file elsewhere\n"
    assert [path.read_text(encoding="utf-8") for path in tmp_path.iterdir()] == (["old"] if existing else [])


@pytest.mark.skipif(sys.platform != "linux", reason="handles of folders are Linux's here")
@pytest.mark.parametrize("name", ["file", "folder"])
def test_a_link_that_appears_while_a_file_is_written_is_not_followed(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outside, inside = tmp_path / "outside", tmp_path / "clone/inside"
    (tmp_path / "clone/.git").mkdir(parents=True)
    for folder in (outside, inside):
        folder.mkdir()
        (folder / "x.txt").write_text("old", encoding="utf-8")
    monkeypatch.chdir(tmp_path / "clone")

    def require_then_swap(*arguments: str) -> None:
        require_inside(*arguments)
        if name == "folder":
            inside.rename(tmp_path / "moved")
            inside.symlink_to(outside)
        else:
            (inside / "x.txt").unlink()
            (inside / "x.txt").symlink_to(outside / "x.txt")

    monkeypatch.setattr(storage, "require_inside", require_then_swap)
    if name == "folder":
        with pytest.raises(InputError):
            write("inside/x.txt", "new")
    else:
        write("inside/x.txt", "new")
    assert [path.name for path in outside.iterdir()] == ["x.txt"]
    assert (outside / "x.txt").read_text(encoding="utf-8") == "old"
