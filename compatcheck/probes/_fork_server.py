"""The warm parent of probes, in the interpreter under test: it imports what they share and forks a child for each.

Linux only; standard library, Python 3.8+. It initialises no CUDA and starts no thread; those that numpy's OpenBLAS
starts when it is imported survive a fork by that library's own care.

Orders come on standard input, one a line: ``import SECONDS NAME``, answered by ``imported`` {name} among the events of
the parent's own folder, or ``run CONTROL`` (see `_child.py`). An import that takes longer than its seconds ends the
parent, so that none hangs where nobody waits any more. A child has a session of its own, named in ``CONTROL/pid``; its
status is written to ``CONTROL/status`` once the mark of its end stands on standard error. Where standard input ends
while a child runs, the child is killed with all it started, and the folders are removed.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import json
import os
import select
import shutil
import signal
import sys
import tempfile
import traceback
import warnings
from typing import Any, NoReturn

from compatcheck.probes import _child

ENDED = b"\0compatcheck: the child has ended\0"
WATCH_SECONDS = 0.01
NVML_CHECK = "PYTORCH_NVML_BASED_CUDA_CHECK"
LOADED_LATE = {"transformers": ("PreTrainedModel", "AutoModelForCausalLM", "Trainer")}


def serve(folder: str) -> NoReturn:
    """Obey until standard input ends; ``folder`` is the parent's own. What libraries do at exit is not waited for."""
    with open(os.path.join(folder, "events.jsonl"), "a", encoding="utf-8") as events:
        reporter = _child.Reporter(events)
        for line in sys.stdin.buffer:
            verb, _, what = os.fsdecode(line).rstrip("\n").partition(" ")
            if verb == "run":
                if not _run(what):
                    break
                continue
            limit, _, name = what.partition(" ")
            reporter.stage(_child.IMPORTING + name)
            signal.setitimer(signal.ITIMER_REAL, float(limit) + _child.ORPHAN_SECONDS)
            failed = _child.failure(functools.partial(_import, name, reporter), reporter)
            signal.setitimer(signal.ITIMER_REAL, 0)
            if failed:
                _child.not_importable[name] = failed["what"]
            reporter.send("imported", name=name)
    shutil.rmtree(folder, ignore_errors=True)
    os._exit(0)


def _import(name: str, reporter: _child.Reporter) -> None:
    """Import a package, and those of its parts that load late and that many probes use, as far as they can be."""
    asked = os.environ.get(NVML_CHECK)
    os.environ[NVML_CHECK] = "1"  # or else `torch.cuda.is_available` initialises CUDA, which no fork survives
    try:
        module = importlib.import_module(name)
        for part in LOADED_LATE.get(name, ()):
            _child.failure(functools.partial(getattr, module, part), reporter)
    finally:
        os.environ.pop(NVML_CHECK)
        if asked is not None:
            os.environ[NVML_CHECK] = asked


def _run(control: str) -> bool:
    """Fork a child and wait for its end; False where nobody waits for it any more."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python 3.12 and later warn of forks beside OpenBLAS's threads
        pid = os.fork()
    if pid == 0:
        _be_child(control)
    ended, status = os.waitpid(pid, os.WNOHANG)
    while not ended:
        if select.select([0], [], [], WATCH_SECONDS)[0]:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)
            shutil.rmtree(control, ignore_errors=True)
            return False
        ended, status = os.waitpid(pid, os.WNOHANG)
    os.write(2, ENDED)
    _write(os.path.join(control, "status"), -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status))
    return True


def _be_child(control: str) -> None:
    """Measure one probe and end; in a new process where the order asks for one or CUDA does not survive the fork."""
    code: Any = 70
    try:
        os.setsid()
        _write(os.path.join(control, "pid"), os.getpid())
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        with open(os.path.join(control, "request.json"), encoding="utf-8") as stream:
            order = json.load(stream)
        os.environ.update(order["environ"])
        os.chdir(control)
        tempfile.tempdir = None
        _die_first()
        if order["fresh"] or _cuda_is_spoilt():
            os.execv(order["command"][0], order["command"])
        code = _child.main(control)
    except SystemExit as leaving:
        code = leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)
    finally:
        if code == 70:
            traceback.print_exc()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _die_first() -> None:
    """Where memory runs out, the kernel is to end this process and none of the user's."""
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w", encoding="ascii") as stream:
        stream.write("1000")


def _cuda_is_spoilt() -> bool:
    """Whether CUDA was initialised before the fork, as some package did on import: it cannot be used after it."""
    torch = sys.modules.get("torch")
    bad_fork = getattr(getattr(torch, "_C", None), "_cuda_isInBadFork", None)
    return bool(bad_fork and bad_fork()) or "/dev/nvidia-uvm" in _open_files()


def _open_files() -> set[str]:
    found = set()
    for number in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            found.add(os.readlink("/proc/self/fd/" + number))
    return found


def _write(path: str, number: int) -> None:
    with open(path, "w", encoding="ascii") as stream:
        stream.write("%d\n" % number)
