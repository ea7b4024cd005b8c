"""One probe in one child of the target's interpreter: start it, listen, end it.

See `_child.py` for the files that cross the process border.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any, NamedTuple

from compatcheck.errors import CompatcheckError, InputError
from compatcheck.model import Target

FOLDER = Path(__file__).parent
TAIL_BYTES = 8192
GRACE_SECONDS = 1.0
POLL_SECONDS = 0.02

LAUNCHER_VARIABLES = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
LAUNCHER_PREFIXES = ("ACCELERATE_", "TORCHELASTIC_", "OMPI_COMM_WORLD_", "PMI_")

OnStage = Callable[[str, float], None]


class Trace(NamedTuple):
    """What a child left behind; ``status`` is its exit status, negative for a signal.

    ``limit`` is the number of seconds after which it was ended, None where it ended by itself.
    """

    events: tuple[Mapping[str, Any], ...]
    status: int | None
    limit: float | None
    stderr: str

    def last(self, event: str) -> Mapping[str, Any]:
        return next((entry for entry in reversed(self.events) if entry["event"] == event), {})


def attempt(
    probe: Path, target: Target, request: Mapping[str, Any], limit: float, on_stage: OnStage | None = None
) -> Trace:
    """Run a probe file in one child, ended with its process group after ``limit`` seconds."""
    with _control_folder() as control:
        order = {
            "protocol": 1,
            "probe": str(probe),
            "limit": limit,
            "request": _absolute_files({"seed": 0, "device": "auto", **request}),
        }
        _write(control / "request.json", json.dumps(order))
        command = [target.executable, "-B", str(FOLDER / "_child.py"), str(control)]
        process = _start(command, control)
        tails = [_TailReader(stream) for stream in (process.stdout, process.stderr) if stream is not None]
        try:
            finished = _wait(process, control, limit, on_stage)
        finally:
            _end(process)
        stderr = tails[1].text()
        return Trace(tuple(_events(control)), process.poll(), None if finished else limit, stderr)


@contextlib.contextmanager
def _control_folder() -> Iterator[Path]:
    """A private folder, removed with whatever the child left in it."""
    try:
        folder = tempfile.TemporaryDirectory(prefix="compatcheck-probe-", ignore_cleanup_errors=True)
    except OSError as error:
        raise _unwritable(tempfile.gettempdir(), error) from error
    with folder as path:
        yield Path(path)


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise _unwritable(str(path), error) from error


def _unwritable(path: str, error: OSError) -> CompatcheckError:
    advice = "free some space or" if error.errno in (errno.ENOSPC, errno.EDQUOT) else "make it writable or"
    return CompatcheckError("prepare probe in", path, error.strerror or str(error), f"{advice} set TMPDIR")


def _absolute_files(request: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: os.path.abspath(value) if key.endswith("_file") and value is not None else value
        for key, value in request.items()
    }


def _start(command: list[str], control: Path) -> subprocess.Popen[bytes]:
    private = {
        "TORCH_EXTENSIONS_DIR": str(control / "torch_extensions"),
        "TRITON_CACHE_DIR": str(control / "triton"),
        "TORCHINDUCTOR_CACHE_DIR": str(control / "inductor"),
        "TMPDIR": str(control),
        "HF_HUB_OFFLINE": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "PYTHONHASHSEED": "0",
    }
    kept = {
        key: value
        for key, value in os.environ.items()
        if key not in LAUNCHER_VARIABLES and not key.startswith(LAUNCHER_PREFIXES)
    }
    try:
        return subprocess.Popen(
            command,
            cwd=control,
            env={**kept, **private},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        raise InputError(
            "run a probe with",
            command[0],
            error.strerror or str(error),
            "name a working interpreter with --python",
        ) from error


def _wait(process: subprocess.Popen[bytes], control: Path, limit: float, on_stage: OnStage | None) -> bool:
    """Whether the child ended by itself; new stages are passed on as they come."""
    deadline = time.monotonic() + limit
    heard = 0
    while True:
        ended = process.poll() is not None
        if on_stage is not None:
            stages = [event for event in _events(control) if event["event"] == "stage"]
            for event in stages[heard:]:
                on_stage(event["name"], event["seconds"])
            heard = len(stages)
        if ended or time.monotonic() >= deadline:
            return ended
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(POLL_SECONDS)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the child and whatever it started: SIGTERM, a second, SIGKILL to the process group."""
    if process.poll() is None:
        _signal_group(process, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(GRACE_SECONDS)
    _signal_group(process, signal.SIGKILL if sys.platform != "win32" else signal.SIGTERM)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(GRACE_SECONDS)


def _signal_group(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    if sys.platform == "win32":
        process.terminate()
        return
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


class _TailReader:
    """Drains a pipe and keeps its last bytes."""

    def __init__(self, stream: IO[bytes]) -> None:
        self.stream = stream
        self.tail = b""
        self.thread = threading.Thread(target=self._drain, daemon=True)
        self.thread.start()

    def text(self) -> str:
        self.thread.join(GRACE_SECONDS)
        return self.tail.decode("utf-8", "replace")

    def _drain(self) -> None:
        with self.stream:
            while chunk := os.read(self.stream.fileno(), 65536):
                self.tail = (self.tail + chunk)[-TAIL_BYTES:]


def _events(control: Path) -> Iterator[Mapping[str, Any]]:
    """The complete lines of the child's event file; a line cut short by its death is left out."""
    try:
        text = (control / "events.jsonl").read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return
    for line in text.split("\n")[:-1]:
        with contextlib.suppress(json.JSONDecodeError):
            yield json.loads(line)
