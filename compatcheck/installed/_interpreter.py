"""Ask an interpreter that no file describes for its version and folders."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from threading import Thread
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from compatcheck.errors import NothingInspectedError
from compatcheck.files import leftovers, limits

if TYPE_CHECKING:
    from subprocess import Popen

_PAUSE = 0.005
_CHUNK = 1 << 16
_QUESTION = """
import json, site, sys, sysconfig
paths = sysconfig.get_paths()
print(json.dumps({
    "version": "%d.%d.%d" % sys.version_info[:3] + {
        "alpha": "a%d", "beta": "b%d", "candidate": "rc%d"
    }.get(sys.version_info[3], "%.0s") % sys.version_info[4],
    "executable": sys.executable,
    "prefix": sys.prefix,
    "folders": list(dict.fromkeys(site.getsitepackages() + [paths["purelib"], paths["platlib"]])),
}))
"""


class Description(NamedTuple):
    """What an interpreter says of itself."""

    version: str
    executable: str
    prefix: str
    site_folders: tuple[str, ...]


def describe(executable: str) -> Description:
    """Start the interpreter once, isolated and without ``site``, so that none of the user's hooks run.

    Raises `NothingInspectedError` where it cannot be started, hangs or does not answer.
    """
    answer = _answer(executable, _output(executable))
    return Description(
        answer["version"], answer["executable"] or executable, answer["prefix"], tuple(answer["folders"])
    )


def _output(executable: str) -> bytes:
    """What it writes, of which no more than the limit is held; whatever it started ends with it."""
    from subprocess import DEVNULL, PIPE, Popen

    command = [executable, "-I", "-S", "-c", _QUESTION]
    try:
        child = Popen(command, stdin=DEVNULL, stdout=PIPE, stderr=PIPE, start_new_session=True)
    except OSError as error:
        raise _failure(executable, f"the interpreter cannot be started ({error.strerror or error})") from None
    leftovers.hold(child.pid)
    answer, errors = _Start(child.stdout), _Start(child.stderr)
    deadline = time.monotonic() + limits.ANSWER_SECONDS
    try:
        while child.poll() is None and not answer.is_full and time.monotonic() < deadline:
            time.sleep(_PAUSE)
        status = child.poll()
    finally:
        _end(child)
    if answer.is_full:
        raise _failure(executable, f"the response exceeds {limits.ANSWER_BYTES >> 20} MiB")
    if status is None:
        raise _failure(executable, f"the interpreter did not answer within {limits.ANSWER_SECONDS:.0f} s")
    if status:
        lines = errors.read().decode("utf-8", "replace").strip().splitlines()
        last = f": {lines[-1][:200]}" if lines else ""
        raise _failure(executable, f"the interpreter ended with status {status}{last}")
    return answer.read()


class _Start:
    """The beginning of a stream, read beside everything else; of what is too long the rest is left unread."""

    def __init__(self, stream: IO[bytes] | None) -> None:
        self.content = b""
        self.thread = Thread(target=self._read, args=(stream,), daemon=True)
        self.thread.start()

    @property
    def is_full(self) -> bool:
        return len(self.content) > limits.ANSWER_BYTES

    def _read(self, stream: IO[bytes] | None) -> None:
        while stream and not self.is_full and (part := os.read(stream.fileno(), _CHUNK)):
            self.content += part

    def read(self) -> bytes:
        """All of it, once those who write have ended."""
        self.thread.join(limits.ANSWER_SECONDS)
        return self.content


def _end(child: Popen[bytes]) -> None:
    """End the process with all that it started."""
    if hasattr(os, "killpg"):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, signal.SIGKILL)
    child.kill()
    child.wait()
    leftovers.drop(child.pid)


def _answer(executable: str, output: bytes) -> dict[str, Any]:
    import json

    try:
        answer = json.loads(output)
    except (ValueError, RecursionError):
        answer = None
    if not isinstance(answer, dict) or not _is_description(answer):
        raise _failure(executable, "the program does not respond as Python does")
    return answer


_LONGEST_PART = 8
"""Characters of a part of a version of Python, as ``0rc12+``."""


def _is_description(answer: dict[str, Any]) -> bool:
    texts = [answer.get(name) for name in ("version", "executable", "prefix")]
    folders = answer.get("folders")
    texts += folders if isinstance(folders, list) else [None]
    return all(isinstance(each, str) and "\0" not in each for each in texts) and _is_version(answer["version"])


def _is_version(text: str) -> bool:
    return text[:1].isdecimal() and max(map(len, text.split("."))) <= _LONGEST_PART


def _failure(executable: str, seen: str) -> NothingInspectedError:
    advice = "pass a working Python 3.8 or later with --python"
    return NothingInspectedError("asking the interpreter", executable, seen, advice)
