"""Throw-away environments, really built from tiny wheels."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections import namedtuple
from collections.abc import Iterator
from pathlib import Path

import pytest

from compatcheck.advice import environment
from compatcheck.advice.environment import _room, build
from compatcheck.advice.model import Place, Unsolvable
from compatcheck.errors import InputError

from .tiny_wheels import write_wheel

HERE = Place(sys.executable)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of its own, with room for our folder beside it, and a folder of wheels as the only source."""
    links = tmp_path / "links"
    write_wheel(links, "alpha", "1.0", ["beta<2"])
    write_wheel(links, "beta", "1.0", code="'x' * 10\n" * 2000)
    write_wheel(links, "beta", "2.0")
    (tmp_path / "uv.toml").write_text("no-index = true\nfind-links = ['links']\n", encoding="utf-8")
    for name in [name for name in os.environ if name.startswith("UV_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "cache" / "uv"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "cache" / "compatcheck").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "cache"


def left_in(folder: Path) -> list[Path]:
    return list(folder.rglob("compatcheck-environment-*"))


def test_the_environment_holds_what_was_asked_links_to_the_cache_and_is_gone_afterwards(cache: Path) -> None:
    lines: list[str] = []
    with build(["alpha"], HERE, on_line=lines.append) as python:
        code = "import alpha, beta, sys; print(alpha.__version__, beta.__file__, sys.prefix)"
        done = subprocess.run([python, "-I", "-c", code], capture_output=True, text=True, check=True)
        version, module, prefix = done.stdout.split()
        assert version == "1.0" and Path(prefix).is_relative_to(cache / "compatcheck")
        assert sys.platform != "linux" or os.stat(module).st_nlink > 1
    assert not Path(python).exists() and not left_in(cache)
    assert any(line.startswith("Installed 2 packages") for line in lines)


def test_an_error_inside_leaves_nothing_behind(cache: Path) -> None:
    with pytest.raises(ZeroDivisionError), build(["beta"], HERE):
        assert left_in(cache)
        raise ZeroDivisionError
    assert not left_in(cache)


@pytest.mark.parametrize(
    "requirements, place, error, told",
    [
        (["alpha", "beta>=2"], HERE, Unsolvable, "alpha depend on beta<2"),
        (["beta"], Place("3.99"), InputError, r"looking for Python 3\.99: no working Python was found"),
        (["beta"], HERE._replace(platform="windows"), InputError, "windows: this machine is"),
        (["gamma"], HERE._replace(offline=True), Unsolvable, "gamma was not found"),
    ],
)
def test_what_cannot_be_built_is_said_in_one_line(
    requirements: list[str], place: Place, error: type[Exception], told: str, cache: Path
) -> None:
    with pytest.raises(error, match=told) as caught, build(requirements, place):
        raise AssertionError("it was built")
    assert "\n" not in str(caught.value) and not left_in(cache)


Usage = namedtuple("Usage", "total used free")


@pytest.mark.network
def test_a_lack_of_room_is_seen_before_anything_is_fetched_and_what_is_cached_needs_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "uv.toml").unlink()
    with monkeypatch.context() as full:
        full.setattr(shutil, "disk_usage", lambda path: Usage(0, 0, 100))
        with pytest.raises(InputError, match=r"about 0\.0 GB are needed and 0\.0 GB are free"), build(["mpmath"], HERE):
            raise AssertionError("it was built")
    with build(["mpmath"], HERE):
        pass
    monkeypatch.setattr(shutil, "disk_usage", lambda path: Usage(0, 0, 100))
    with build(["mpmath"], HERE) as python:
        assert Path(python).exists()


def test_the_room_of_a_set_is_that_of_its_wheels_unpacked(tmp_path: Path) -> None:
    local = write_wheel(tmp_path, "local", "1.0")
    pylock = f"""
[[packages]]
name = "torch"
wheels = [{{ url = "https://host/a.whl", size = 1000 }}, {{ url = "https://host/b.whl", size = 900 }}]
sdist = {{ url = "https://host/torch.tar.gz", size = 9000 }}
[[packages]]
name = "local"
wheels = [{{ url = "{local.as_uri()}" }}]
[[packages]]
name = "nvidia-cublas-cu12"
wheels = [{{ url = "https://host/cublas.whl", size = 900000000 }}]
[[packages]]
name = "flash-attn"
sdist = {{ url = "https://host/flash.tar.gz", size = 2000 }}
[[packages]]
name = "unknown"
wheels = [{{ url = "https://host/unknown.whl" }}]
[[packages]]
name = "folder"
directory = {{ path = "/x" }}
"""
    assert _room.needed_bytes(pylock, offline=True) == round(4.5 * (3000 + local.stat().st_size) + 2.0 * 9e8)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of half a MiB, where we may make one."""
    disk = tmp_path / "disk"
    disk.mkdir()
    if sys.platform != "linux" or os.geteuid() != 0:
        pytest.skip("mounting a small disk needs root on Linux")
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", str(disk)], check=False)
    if mounted.returncode:
        pytest.skip("no file system can be mounted here")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def test_a_disk_that_fills_meanwhile_is_named(small_disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UV_CACHE_DIR", str(small_disk))
    monkeypatch.setattr(_room, "needed_bytes", lambda *pylock, **options: 0)
    write_wheel(small_disk.parent / "links", "large", "1.0", code="x = 1\n" * 200_000)
    with pytest.raises(InputError, match="the disk is full; free some space") as caught, build(["large"], HERE):
        raise AssertionError("it was built")
    assert "\n" not in str(caught.value) and not left_in(small_disk)


@pytest.mark.parametrize("busy", [False, True])
def test_half_fetched_files_of_this_run_leave_the_cache_unless_another_uv_is_at_work(
    cache: Path, busy: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    fcntl = pytest.importorskip("fcntl")
    with build(["beta"], HERE):
        pass
    old, new = cache / "uv" / ".tmpOld", cache / "uv" / ".tmpNew"
    (cache / "uv" / ".lock").touch()
    old.mkdir()
    os.utime(old, (0, 0))

    def interrupted(*arguments: object) -> None:
        new.mkdir()
        raise KeyboardInterrupt

    monkeypatch.setattr(environment, "_install", interrupted)
    with open(cache / "uv" / ".lock", "rb") as lock:
        if busy:
            fcntl.flock(lock, fcntl.LOCK_SH)
        with pytest.raises(KeyboardInterrupt), build(["beta"], HERE):
            raise AssertionError("it was built")
    assert old.exists() and new.exists() == busy and not left_in(cache)
