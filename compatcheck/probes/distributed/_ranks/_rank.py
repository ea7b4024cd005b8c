"""One rank: join the others, answer each case, say so, and go without a word.

Run by path with the launch's folder, its own number and the pid of who started it; standard library until it joins.
In: ``order.json`` {probe, cases, limit, backend, device, world}. Out: ``rank<number>.jsonl``, a line per case
{number, answer} or {number, error, at}; number -1 stands for having joined.
"""

from __future__ import annotations

import datetime
import faulthandler
import importlib
import importlib.util
import json
import os
import sys
import threading
import time
import types
from typing import Any, Dict, NamedTuple

# Longer than a case may take, so that a hang is the starter's to tell.
COLLECTIVE_SECONDS = 600.0
WATCH_SECONDS = 0.5


class Rank(NamedTuple):
    """Who works: ``device`` is that of its tensors."""

    number: int
    world: int
    device: str
    backend: str


def main(folder: str, number: int, parent: int) -> None:
    with open(os.path.join(folder, "order.json"), encoding="utf-8") as stream:
        order = json.load(stream)
    faulthandler.dump_traceback_later(order["limit"], exit=True)
    threading.Thread(target=_follow, args=(parent,), daemon=True).start()
    _adopt(os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..")))
    diary = _Diary(os.path.join(folder, "rank%d.jsonl" % number))
    sys.excepthook = diary.last_words
    _obey(order, number, diary)
    # Tearing down a process group aborts now and then (pytorch#190489), and all is said.
    os._exit(0)


class _Diary:
    """Appends what the rank has to say; ``case`` is the one it is at."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.case = -1

    def say(self, **words: Any) -> None:
        with open(self.path, "a", encoding="utf-8") as stream:
            stream.write(json.dumps({"number": self.case, **words}) + "\n")

    def last_words(self, kind: Any, error: BaseException, trace: Any) -> None:
        """Whatever ended the rank is what the starter has to hear."""
        name = "ImportError" if isinstance(error, ImportError) else kind.__name__
        lines = str(error).strip().splitlines() or [""]
        self.say(error="%s: %s" % (name, lines[0][:300]), at=time.time())
        sys.__excepthook__(kind, error, trace)
        sys.stderr.flush()
        os._exit(1)


def _follow(parent: int) -> None:
    """End with the process that started this one, whatever ended that."""
    while os.getppid() == parent:
        time.sleep(WATCH_SECONDS)
    os._exit(1)


def _adopt(probes: str) -> None:
    """Stand in for the packages that hold the probes, without running what they import."""
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or os.curdir) != here]
    for name, path in (("compatcheck", []), ("compatcheck.probes", [probes])):
        package = types.ModuleType(name)
        package.__path__ = path
        sys.modules[name] = package


def _obey(order: Dict[str, Any], number: int, diary: _Diary) -> None:
    probe = _load(order["probe"])
    for name in probe.NEEDS:
        importlib.import_module(name)
    rank = _join(order, number)
    diary.say(answer={"pid": os.getpid()})
    for diary.case, work in enumerate(order["cases"]):
        diary.say(answer=probe.work(work, rank))
    _part(rank)


def _load(path: str) -> Any:
    spec = importlib.util.spec_from_file_location("compatcheck_probe", path)
    if spec is None or spec.loader is None:
        raise ImportError("not a Python file: " + path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def _join(order: Dict[str, Any], number: int) -> Rank:
    import torch

    torch.set_num_threads(1)
    if order["device"] == "cuda":
        torch.cuda.set_device(number)
    torch.distributed.init_process_group(
        order["backend"],
        init_method="env://",
        rank=number,
        world_size=order["world"],
        timeout=datetime.timedelta(seconds=COLLECTIVE_SECONDS),
    )
    device = "cuda:%d" % number if order["device"] == "cuda" else "cpu"
    return Rank(number, order["world"], device, order["backend"])


def _part(rank: Rank) -> None:
    """All ranks go together, for one that goes first tears the connections of the others."""
    import torch

    torch.distributed.barrier()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
