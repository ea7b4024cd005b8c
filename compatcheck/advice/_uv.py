"""uv as a child process that never outlives us, with all of the user's own configuration."""

from __future__ import annotations

import contextlib
import functools
import os
import re
import shlex
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import FrameType
from typing import NamedTuple

from compatcheck.advice._credentials import redacted
from compatcheck.errors import InputError
from compatcheck.files import leftovers, limits

_GRACE_SECONDS = 5.0
_FULL = ("No space left on device", "os error 28", "Disk quota exceeded", "os error 122")

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


class Done(NamedTuple):
    """How uv ended, and what it said."""

    status: int
    stdout: str
    stderr: str


def shortened(text: str) -> str:
    """Without the middle of a long text, as a traceback has it."""
    return (
        text
        if len(text) <= limits.UV_CHARACTERS
        else f"{text[: limits.UV_CHARACTERS // 2]} ... {text[-limits.UV_CHARACTERS // 2 :]}"
    )


def joined(requirements: Iterable[str]) -> str:
    """The requirements as a file's lines. Raises InputError for one of several lines, which uv would read as more."""
    found = list(requirements)
    for text in found:
        if "\n" in text or "\r" in text:
            seen = f"{redacted(text)!r:.80} has a line break"
            raise InputError("resolving", "the requirements", seen, "write each requirement in one line")
    return "".join(line + "\n" for line in found)


def run(arguments: Sequence[str], *, stdin: str = "", on_line: Callable[[str], None] | None = None) -> Done:
    """Run uv to its end; ``on_line`` hears each line of its progress.

    Whatever ends us early, an interrupt or a request to stop, ends uv and its own children first. Raises InputError
    where uv cannot be started, or finds its disk full.
    """
    command = [_binary(), *arguments, "--color", "never"]
    with stopped_by_signals(), _started(command) as process:
        lines: list[str] = []
        reader = threading.Thread(target=_listen, args=(process, lines, on_line), daemon=True)
        reader.start()
        stdout = _talk(process, stdin)
        reader.join()
        done = Done(process.wait(), stdout, "".join(lines))
    if done.status and any(mark in done.stderr for mark in _FULL):
        raise InputError(
            "writing with", "uv", "the disk is full", "free some space, or set UV_CACHE_DIR to a larger disk"
        )
    return done


def _binary() -> str:
    """The uv that was installed with us, else the one on PATH."""
    try:
        from uv import find_uv_bin

        return find_uv_bin()
    except (ImportError, FileNotFoundError):
        import shutil

        found = shutil.which("uv")
        if found is None:
            raise InputError(
                "looking for", "uv", "not installed, and not on PATH", f"install it with {_install_command()}"
            ) from None
        return found


@functools.cache
def _cache(binary: str) -> dict[str, str]:
    """The variable for the user's cache, asked for outside of any project: a project's settings may name another."""
    if "UV_CACHE_DIR" in os.environ:
        return {}
    command = [binary, "cache", "dir"]
    try:
        asked = subprocess.run(
            command, cwd=os.path.sep, capture_output=True, encoding="utf-8", errors="replace", check=False
        )
    except OSError as error:
        raise _not_started(binary, error) from None
    return {"UV_CACHE_DIR": asked.stdout.strip()} if asked.returncode == 0 else {}


def _not_started(binary: str, error: OSError) -> InputError:
    seen = error.strerror or str(error)
    return InputError("starting", binary, seen, f"install it with {_install_command()}")


def _install_command() -> str:
    return shlex.join([sys.executable, "-m", "pip", "install", "uv"])


@contextlib.contextmanager
def _started(command: Sequence[str]) -> Iterator[subprocess.Popen[str]]:
    """The command in a session of its own, so that what it started in turn ends with it."""
    pipe = subprocess.PIPE
    try:
        process = subprocess.Popen(
            command,
            env={**os.environ, **_cache(command[0]), "UV_PYTHON_DOWNLOADS": "never", "COLUMNS": "1000"},
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,
        )
    except OSError as error:
        raise _not_started(command[0], error) from None
    leftovers.hold(process.pid)
    try:
        yield process
    finally:
        _end(process)
        leftovers.drop(process.pid)


def _talk(process: subprocess.Popen[str], stdin: str) -> str:
    """Hand over the input, and take what comes out."""
    assert process.stdin is not None and process.stdout is not None
    with contextlib.suppress(BrokenPipeError), process.stdin as stream:
        stream.write(stdin)
    with process.stdout as stream:
        return stream.read()


def _listen(process: subprocess.Popen[str], lines: list[str], on_line: Callable[[str], None] | None) -> None:
    assert process.stderr is not None
    with process.stderr as stream:
        for line in stream:
            plain = _COLOUR.sub("", line)
            lines.append(plain)
            del lines[: -limits.UV_LINES]
            if on_line is not None:
                on_line(redacted(plain.rstrip()))


def _end(process: subprocess.Popen[str]) -> None:
    """A request, some seconds to tidy up, then the end of the whole group."""
    if process.poll() is None:
        _signal_group(process, forced=False)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_GRACE_SECONDS)
    _signal_group(process, forced=True)
    process.wait()


def _signal_group(process: subprocess.Popen[str], *, forced: bool) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if sys.platform == "win32":
            process.terminate()
        else:
            os.killpg(process.pid, signal.SIGKILL if forced else signal.SIGTERM)


@contextlib.contextmanager
def stopped_by_signals() -> Iterator[None]:
    """Let a request to stop unwind us, where it would end us at once and leave the child and its files behind."""
    names = [name for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    before = {}
    if threading.current_thread() is threading.main_thread():
        numbers = [getattr(signal, name) for name in names]
        before = {
            number: signal.signal(number, _leave) for number in numbers if signal.getsignal(number) == signal.SIG_DFL
        }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _leave(number: int, frame: FrameType | None) -> None:
    sys.exit(128 + number)
