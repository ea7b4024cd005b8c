"""A throw-away environment, built by uv from its cache and gone afterwards, whatever happens."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence

from compatcheck.advice import _uv, resolver
from compatcheck.advice._credentials import redacted
from compatcheck.advice.environment import _room
from compatcheck.advice.model import Demands, Line, Place, Solution, Wanted
from compatcheck.errors import InputError
from compatcheck.files import leftovers
from compatcheck.files.storage import cache_folder
from compatcheck.language import gettext as _

_CLOCK_SECONDS = 1.0
"""How far the times of a file system may lag behind the clock."""

_DOING = "building an environment in"


@contextlib.contextmanager
def build(
    requirements: Sequence[str],
    place: Place,
    *,
    torch_backend: str | None = None,
    over: Sequence[str] = (),
    on_line: Callable[[str], None] | None = None,
) -> Iterator[str]:
    """The interpreter of an environment with these requirements, removed when the context ends.

    ``over`` is installed last, whatever the others declare about it. ``place.interpreter`` is any Python that uv
    understands, a path or a version; ``on_line`` hears what uv tells of its progress. Raises InputError where there is
    no such Python, it is meant for another machine, the disk has no room or uv cannot install, and Unsolvable where the
    requirements contradict each other.
    """
    if place.platform is not None:
        seen = f"this machine is {sys.platform}, a different platform"
        raise InputError("building an environment for", place.platform, seen, "run this on a machine of that platform")
    cache = _cache()
    with _uv.stopped_by_signals(), _folder(cache) as folder:
        python = _venv(folder, place)
        here = place._replace(interpreter=python, python_version=None)
        needed = _require_room(folder, requirements, here, torch_backend)
        if on_line and needed > _room.LARGE:
            text = _("{size:.1f} GB on disk; packages that are not in uv's cache are downloaded now")
            on_line(text.format(size=needed / 1e9))
        with _swept(cache):
            _require_installed(_install(requirements, here, torch_backend, on_line))
            if over:
                _require_installed(_install(over, here, torch_backend, on_line, "--no-deps"))
        yield python


def change(
    python: str, pins: Sequence[str], *, torch_backend: str | None = None, on_line: Callable[[str], None] | None = None
) -> None:
    """Make an environment that `build` gave hold these pins and nothing else; what they share with before stays.

    Raises InputError as `build` does.
    """
    here = Place(python)
    _require_room(os.path.dirname(python), pins, here, torch_backend)
    with _swept(_cache()):
        _require_installed(_install(pins, here, torch_backend, on_line, command=("sync", "-")))


@contextlib.contextmanager
def _folder(cache: str) -> Iterator[str]:
    """A new folder on the file system of uv's cache, where files are linked and not copied."""
    with leftovers.temporary_folder("compatcheck-environment-", _folder_near(cache)) as path:
        try:
            yield path
        finally:
            with _undisturbed():
                shutil.rmtree(path, ignore_errors=True)


def _cache() -> str:
    done = _uv.run(["cache", "dir"])
    if done.status:
        raise InputError("looking for the cache of", "uv", _last(done), "fix the problem that uv reports")
    return done.stdout.strip()


def _folder_near(cache: str) -> str:
    """A folder of ours on the cache's file system, else the cache itself. Raises InputError where that is unusable."""
    try:
        os.makedirs(cache, exist_ok=True)
        device = os.stat(cache).st_dev
        for folder in (cache_folder(), os.path.dirname(cache), tempfile.gettempdir()):
            if os.path.isdir(folder) and os.access(folder, os.W_OK) and os.stat(folder).st_dev == device:
                return folder
    except OSError as error:
        seen = error.strerror or str(error)
        raise InputError(_DOING, cache, seen, "set UV_CACHE_DIR to a folder you can write to") from None
    return cache


@contextlib.contextmanager
def _undisturbed() -> Iterator[None]:
    """Tidying up goes on through a second request to stop."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def _swept(cache: str) -> Iterator[None]:
    """Where uv is ended early, what it had half fetched is removed from its cache; uv itself leaves it there."""
    started, done = time.time() - _CLOCK_SECONDS, False
    try:
        yield
        done = True
    finally:
        if not done:
            with _undisturbed():
                _remove_leftovers(cache, started)


def _venv(folder: str, place: Place) -> str:
    asked = place.python_version or place.interpreter
    path = os.path.join(folder, "venv")
    done = _uv.run(["venv", path, "--python", asked, "--no-project"])
    if done.status:
        raise InputError(
            "looking for Python", asked, "no working Python was found", f"install it: uv python install {asked}"
        )
    return os.path.join(path, *(("Scripts", "python.exe") if os.name == "nt" else ("bin", "python")))


def _install(
    requirements: Sequence[str],
    here: Place,
    torch_backend: str | None,
    on_line: Callable[[str], None] | None = None,
    *options: str,
    command: Sequence[str] = ("install", "-r", "-"),
) -> _uv.Done:
    resolver.require_known_settings()
    backend = ["--torch-backend", torch_backend] if torch_backend else []
    whole = ["pip", *command, "--python", here.interpreter, *backend, *options]
    stdin = _uv.joined(requirements)
    return _uv.run(whole + (["--offline"] if here.offline else []), stdin=stdin, on_line=on_line)


def _require_installed(done: _uv.Done) -> None:
    if done.status:
        raise InputError(
            "installing with", "uv", _last(done), "fix the problem that uv reports, then run this command again"
        )


def _require_room(folder: str, requirements: Sequence[str], here: Place, torch_backend: str | None) -> int:
    """The bytes that the environment takes.

    Refuse what does not fit, before anything is fetched; what is all in the cache is only linked, and fits.
    """
    wanted = Wanted(tuple(Line(text, None, text) for text in requirements), {})
    demands = Demands(torch_backend=torch_backend)
    pylock = resolver.lock(wanted, Solution({}), demands, here, "pylock.toml")
    needed, free = _room.needed_bytes(pylock, offline=here.offline), shutil.disk_usage(folder).free
    if needed > free and "Would download" in _install(requirements, here, torch_backend, None, "--dry-run").stderr:
        seen = f"about {needed / 1e9:.1f} GB are needed and {free / 1e9:.1f} GB are free"
        raise InputError(_DOING, folder, seen, "free some space, or set UV_CACHE_DIR to a larger disk")
    return needed


def _last(done: _uv.Done) -> str:
    """The error in one line."""
    return _uv.shortened(" ".join(redacted(done.stderr).partition("error: ")[2].split()) or f"status {done.status}")


def _remove_leftovers(cache: str, since: float) -> None:
    """Remove what an installation that was ended early left in uv's cache since then, unless some uv is still at work.

    Each uv holds the lock of the cache while it works, and one that starts meanwhile waits.
    """
    if sys.platform != "win32":
        import fcntl

        with contextlib.suppress(OSError), open(os.path.join(cache, ".lock"), "rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            for entry in os.scandir(cache):
                if entry.name.startswith(".tmp") and entry.stat(follow_symlinks=False).st_mtime >= since:
                    shutil.rmtree(entry.path, ignore_errors=True)
