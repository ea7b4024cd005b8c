"""One probe in one child of the target's interpreter: start it, listen, end it.

See `_child.py` for the files that cross the process border, and `_forked_children.py` for children that are forked.
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
from typing import IO, Any, NamedTuple, Protocol

from compatcheck.environment import Target
from compatcheck.errors import CompatcheckError, InputError
from compatcheck.files import leftovers, limits
from compatcheck.files.reading import open_bytes
from compatcheck.probes._clock import Clock
from compatcheck.probes._criterion import Request
from compatcheck.probes._units import FOLDER

TAIL_BYTES = 8192
GRACE_SECONDS = 1.0
POLL_SECONDS = 0.01

LAUNCHER_VARIABLES = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
LAUNCHER_PREFIXES = ("ACCELERATE_", "TORCHELASTIC_", "OMPI_COMM_WORLD_", "PMI_")

SEARCH_PATHS = ("PYTHONPATH", "LD_LIBRARY_PATH")

OnStage = Callable[[str, float], None]


class Trace(NamedTuple):
    """What a child left behind; ``status`` is its exit status, negative for a signal.

    ``limit`` is the number of seconds after which it was ended, None where it ended by itself. ``warming`` is how many
    seconds the import in its warm parent took, where that had still to be done.
    """

    events: tuple[Mapping[str, Any], ...]
    status: int | None
    limit: float | None
    stderr: str
    warming: float = 0.0

    def last(self, event: str) -> Mapping[str, Any]:
        return next((entry for entry in reversed(self.events) if entry["event"] == event), {})


class Child(Protocol):
    """A process that runs: ``poll`` gives its exit status, None while it has none; ``pid`` is also its group's."""

    @property
    def pid(self) -> int: ...

    def poll(self) -> int | None: ...


def attempt(
    probe: Path,
    target: Target,
    request: Request,
    limit: float,
    on_stage: OnStage | None = None,
    *,
    bytecode: bool = False,
) -> Trace:
    """Run a probe file in a new process, ended with its process group after ``limit`` seconds of its own.

    ``bytecode`` is whether it may write that of what it imports beside it.
    """
    with control_folder() as control:
        command = write_order(control, probe, target, request, limit, fresh=True, bytecode=bytecode)
        process = start(command, control)
        errors = TailReader(process.stderr)
        events = Events(control)
        try:
            finished = wait(process, events, limit, on_stage)
        finally:
            end(process)
        errors.thread.join(GRACE_SECONDS)
        return Trace(events.all(), process.poll(), None if finished else limit, errors.text())


@contextlib.contextmanager
def control_folder() -> Iterator[Path]:
    """A private folder, removed with whatever the child left in it."""
    opening = contextlib.ExitStack()
    try:
        folder = opening.enter_context(leftovers.temporary_folder("compatcheck-probe-"))
    except OSError as error:
        raise _unwritable(tempfile.tempdir or "the temporary folder", error) from error
    with opening:
        yield Path(folder)


def write_order(
    control: Path, probe: Path, target: Target, request: Request, limit: float, *, fresh: bool, bytecode: bool = False
) -> list[str]:
    """Write what a child is to do; gives the command of a new process that does it."""
    command = [target.executable, *(() if bytecode else ("-B",)), str(FOLDER / "_child.py"), str(control)]
    order = {
        "protocol": 1,
        "probe": str(probe),
        "limit": limit,
        "request": _absolute_files({"seed": 0, "device": "auto", **request}),
        "environ": _private(control),
        "command": command,
        "fresh": fresh,
    }
    _write(control / "request.json", json.dumps(order))
    return command


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise _unwritable(str(path), error) from error


def _unwritable(path: str, error: OSError) -> CompatcheckError:
    advice = "free some space, or" if error.errno in (errno.ENOSPC, errno.EDQUOT) else "make it writable or"
    return CompatcheckError("preparing a probe in", path, error.strerror or str(error), f"{advice} set TMPDIR")


def _absolute_files(request: Request) -> dict[str, Any]:
    return {
        key: os.path.abspath(value) if key.endswith("_file") and value is not None else value
        for key, value in request.items()
    }


def _private(control: Path) -> dict[str, str]:
    """The variables that keep what libraries write inside the control folder, and them off the network.

    Threads of OpenMP wait asleep: where another program uses the cores, those that spin take ten times as long.
    """
    return {
        "OMP_WAIT_POLICY": os.environ.get("OMP_WAIT_POLICY", "PASSIVE"),
        "KMP_BLOCKTIME": os.environ.get("KMP_BLOCKTIME", "0"),
        "TORCH_EXTENSIONS_DIR": str(control / "torch_extensions"),
        "TRITON_CACHE_DIR": str(control / "triton"),
        "TORCHINDUCTOR_CACHE_DIR": str(control / "inductor"),
        "CUDA_CACHE_PATH": str(control / "cuda"),
        "HF_MODULES_CACHE": str(control / "modules"),
        **dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(control)),
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_OFFLINE": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "PYTHONHASHSEED": "0",
    }


def start(command: list[str], control: Path, stdin: int = subprocess.DEVNULL) -> subprocess.Popen[bytes]:
    """Start a command in a session of its own, without a launcher's variables; search paths stay those of here."""
    kept = {
        key: _from_here(value) if key in SEARCH_PATHS else value
        for key, value in os.environ.items()
        if key not in LAUNCHER_VARIABLES and not key.startswith(LAUNCHER_PREFIXES)
    }
    if "-B" not in command:
        kept.pop("PYTHONDONTWRITEBYTECODE", None)
    try:
        child = subprocess.Popen(
            command,
            cwd=control,
            env={**kept, **_private(control)},
            stdin=stdin,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        raise InputError(
            "running a probe with",
            command[0],
            error.strerror or str(error),
            "pass a working interpreter with --python",
        ) from error
    leftovers.hold(child.pid)
    return child


def _from_here(search_path: str) -> str:
    """The path with its relative folders, which the child's own folder would mislead, as absolute ones."""
    return os.pathsep.join(map(os.path.abspath, search_path.split(os.pathsep))) if search_path else ""


def wait(child: Child, events: Events, limit: float, on_stage: OnStage | None, until: str = "") -> bool:
    """Whether the child ended by itself, or told of ``until``; new stages are passed on as they come.

    ``limit`` is of the time that the child had: see `_clock.py`.
    """
    clock = Clock(limit, lambda: child.pid)
    while True:
        ended = child.poll() is not None
        for event in events.new():
            ended = ended or event["event"] == until
            if on_stage is not None and event["event"] == "stage":
                on_stage(event["name"], event["seconds"])
        if ended or clock.is_over():
            return ended
        time.sleep(POLL_SECONDS)


def end(child: Child) -> None:
    """End the child and whatever it started: SIGTERM, a second, SIGKILL to the process group.

    Windows knows no such groups: there the child itself is ended, at once.
    """
    if child.poll() is None:
        _signal_group(child.pid, forced=False)
        _await_end(child)
    _signal_group(child.pid, forced=True)
    _await_end(child)
    leftovers.drop(child.pid)


def _await_end(child: Child) -> None:
    deadline = time.monotonic() + GRACE_SECONDS
    while child.poll() is None and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)


def _signal_group(pid: int, *, forced: bool) -> None:
    """Without a pid the child has not begun, and there is nobody to signal."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if not pid:
            return
        if sys.platform == "win32":
            os.kill(pid, signal.SIGTERM)
        else:
            os.killpg(pid, signal.SIGKILL if forced else signal.SIGTERM)


class TailReader:
    """Drains a pipe and keeps its last bytes."""

    def __init__(self, stream: IO[bytes] | None) -> None:
        self.stream = stream
        self.tail = b""
        self.thread = threading.Thread(target=self._drain, daemon=True)
        self.thread.start()

    def text(self) -> str:
        return self.tail.decode("utf-8", "replace")

    def cut(self, mark: bytes) -> str:
        """What came before the mark, which is awaited for a moment; the rest begins anew."""
        deadline = time.monotonic() + GRACE_SECONDS
        while mark not in self.tail and time.monotonic() < deadline:
            time.sleep(POLL_SECONDS)
        before, _, self.tail = self.tail.partition(mark)
        return before.decode("utf-8", "replace")

    def _drain(self) -> None:
        if self.stream is not None:
            with self.stream:
                while chunk := os.read(self.stream.fileno(), 65536):
                    self.tail = (self.tail + chunk)[-TAIL_BYTES:]


_NUMBER = (int, float)
_FIELDS: Mapping[str, Mapping[str, Any]] = {
    "stage": {"name": str, "seconds": _NUMBER},
    "row": {"row": dict},
    "result": {"measured": dict, "seconds": _NUMBER},
    "hello": {"versions": dict},
    "loaded": {"modules": dict},
    "missing": {"what": str},
    "unusable": {"what": str},
    "error": {"type": str, "message": str, "traceback": list},
}
"""What each event has; the child is the target's program, and may be a stranger's."""


def _event(line: bytes) -> Mapping[str, Any] | None:
    """The event on a line, None where it is none."""
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        return None
    fields = _FIELDS.get(str(event.get("event")), {}) if isinstance(event, dict) else None
    if fields is None or not isinstance(event.get("event"), str):
        return None
    return event if all(isinstance(event.get(name), kind) for name, kind in fields.items()) else None


class Events:
    """The complete lines of a child's event file; what is no event is left out, as is what goes beyond a limit."""

    def __init__(self, control: Path) -> None:
        self.path = control / "events.jsonl"
        self.position = 0
        self.seen: list[Mapping[str, Any]] = []

    def new(self) -> list[Mapping[str, Any]]:
        """Those that came since the last time."""
        try:
            with open_bytes(str(self.path)) as stream:
                stream.seek(self.position)
                lines, _, _ = stream.read(max(0, limits.EVENTS_BYTES - self.position)).rpartition(b"\n")
        except OSError:
            return []
        found = [event for line in lines.splitlines() if (event := _event(line)) is not None]
        self.position += len(lines) + bool(lines)
        self.seen += found
        return found

    def all(self) -> tuple[Mapping[str, Any], ...]:
        self.new()
        return tuple(self.seen)
