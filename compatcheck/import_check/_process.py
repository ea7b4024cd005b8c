"""Follow imports in a child process of our own interpreter: start it, listen, end it. See `_child.py` for the wire."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import IO, Any

from compatcheck.environment import Target
from compatcheck.errors import CompatcheckError
from compatcheck.files import leftovers, limits

_PROGRAM = """
import json, sys
order = json.load(sys.stdin)
sys.path[:] = order["path"]
from compatcheck.import_check._child import main
main(order)
"""


def failures(
    target: Target, on_module: Callable[[str], None] | None = None, model_folders: Sequence[str] = ()
) -> list[dict[str, Any]]:
    """The imports that surely fail in an environment. Raises CompatcheckError where the child dies."""
    order = {"path": sys.path, "target": target._asdict(), "model_folders": list(map(os.path.abspath, model_folders))}
    deadline = time.monotonic() + limits.IMPORTS_SECONDS
    with tempfile.TemporaryFile() as errors, _child(target, errors) as child:
        _send(child, json.dumps(order))
        for line in child.stdout or ():
            event = json.loads(line) if line.endswith("\n") else {}
            if "failures" in event:
                found: list[dict[str, Any]] = event["failures"]
                return found
            if on_module is not None and "module" in event:
                on_module(event["module"])
        late = time.monotonic() >= deadline
        slow = f"following the imports took longer than {limits.IMPORTS_SECONDS:.0f} seconds"
        raise _error(target, slow if late else _last_words(child.wait(), errors))


@contextmanager
def _child(target: Target, errors: IO[bytes]) -> Iterator[subprocess.Popen[str]]:
    """A process that is ended, and waited for, however the block is left or when its time is over."""
    command, pipe = [sys.executable, "-I", "-B", "-c", _PROGRAM], subprocess.PIPE
    try:
        child = subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=errors, encoding="utf-8", start_new_session=True
        )
    except OSError as error:
        raise _error(target, f"{sys.executable} does not start: {error.strerror or error}") from error
    leftovers.hold(child.pid)
    timer = threading.Timer(limits.IMPORTS_SECONDS, child.kill)
    timer.daemon = True
    timer.start()
    try:
        yield child
    finally:
        timer.cancel()
        timer.join()
        child.kill()
        child.wait()
        leftovers.drop(child.pid)
        for stream in (child.stdin, child.stdout):
            with suppress(OSError):
                if stream:
                    stream.close()


def _send(child: subprocess.Popen[str], order: str) -> None:
    """Hand over the order; a child that died before it read it is found out by what it does not answer."""
    with suppress(BrokenPipeError):
        if child.stdin:
            child.stdin.write(order)
            child.stdin.close()


def _last_words(status: int, errors: IO[bytes]) -> str:
    errors.seek(max(0, errors.seek(0, os.SEEK_END) - limits.TAIL_BYTES))
    lines = errors.read().decode("utf-8", "replace").split("\n")
    last = next((line.strip() for line in reversed(lines) if line.strip()), "")
    how = f"signal {-status}" if status < 0 else f"exit status {status}"
    return f"the child process ended with {how}" + (f": {last}" if last else "")


def _error(target: Target, seen: str) -> CompatcheckError:
    return CompatcheckError("following the imports of", target.prefix, seen, "check without --imports")
