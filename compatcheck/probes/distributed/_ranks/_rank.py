"""One rank: join the others, answer each case, say so, and go without a word.

Run by path with the launch's folder, its own number and the pid of who started it; standard library until it joins.
In: ``order.json`` {probe, cases, limit, backend, device, world}, and where the ranks are on several machines {local,
timeout, environ}: the number on this machine, seconds of patience, variables. Out: ``rank<number>.jsonl``, a line per
case {number, answer} or {number, error, at}; number -1 stands for having joined. Between them {number, mark, arrived}:
what the rank does next, and the how manyth mark that is, which is the same in every rank; and while nothing follows
that for long {number, frame, arrived}: where in the code it is.
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
from typing import Any, Callable, Dict, NamedTuple

# Longer than a case may take, so that a hang is the starter's to tell.
COLLECTIVE_SECONDS = 600.0
WATCH_SECONDS = 0.5
STUCK_SECONDS = 2.0


def _unmarked(doing: str) -> None:
    pass


def _alone(mine: bool) -> bool:
    return mine


class Rank(NamedTuple):
    """Who works: ``device`` is that of its tensors.

    ``mark`` tells what comes next, in the same order in every rank; ``decide`` gives every rank what rank 0 says, so
    that all leave a loop together.
    """

    number: int
    world: int
    device: str
    backend: str
    mark: Callable[[str], None] = _unmarked
    decide: Callable[[bool], bool] = _alone


def main(folder: str, number: int, parent: int) -> None:
    with open(os.path.join(folder, "order.json"), encoding="utf-8") as stream:
        order = json.load(stream)
    faulthandler.dump_traceback_later(order["limit"], exit=True)
    threading.Thread(target=_follow, args=(parent,), daemon=True).start()
    _adopt(os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..")))
    diary = _Diary(os.path.join(folder, "rank%d.jsonl" % number))
    os.environ.update(order.get("environ", {}))
    sys.excepthook = diary.last_words
    threading.Thread(target=diary.watch, args=(threading.get_ident(),), daemon=True).start()
    _obey(order, number, diary)
    # Tearing down a process group aborts now and then (pytorch#190489), and all is said.
    os._exit(0)


class _Diary:
    """Appends what the rank has to say; ``case`` is the one it is at."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.case = -1
        self.arrived = 0
        self.marked = time.monotonic()

    def say(self, **words: Any) -> None:
        with open(self.path, "a", encoding="utf-8") as stream:
            stream.write(json.dumps({"number": self.case, **words}) + "\n")

    def mark(self, doing: str) -> None:
        self.arrived += 1
        self.marked = time.monotonic()
        self.say(mark=doing, arrived=self.arrived)

    def watch(self, thread: int) -> None:
        """Tell where a thread is that has not marked anything for long."""
        reported = ("", 0)
        while True:
            time.sleep(WATCH_SECONDS)
            if time.monotonic() - self.marked > STUCK_SECONDS:
                place = (_place(sys._current_frames().get(thread)), self.arrived)
                if place != reported:
                    reported = place
                    self.say(frame=place[0], arrived=place[1])

    def last_words(self, kind: Any, error: BaseException, trace: Any) -> None:
        """Whatever ended the rank is what the starter has to hear."""
        name = "ImportError" if isinstance(error, ImportError) else kind.__name__
        lines = str(error).strip().splitlines() or [""]
        self.say(error="%s: %s" % (name, lines[0][:300]), at=time.time())
        sys.__excepthook__(kind, error, trace)
        sys.stderr.flush()
        os._exit(1)


def _place(frame: Any) -> str:
    if frame is None:
        return "nowhere"
    code = frame.f_code
    return "%s, line %d of %s" % (code.co_name, frame.f_lineno, os.path.basename(code.co_filename))


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
        diary.mark("importing " + name)
        importlib.import_module(name)
    diary.mark("coming together")
    rank = _join(order, number)._replace(mark=diary.mark)
    diary.say(answer={"pid": os.getpid()})
    for diary.case, work in enumerate(order["cases"]):
        diary.mark("%s, %s, %s" % (work["case"], work["variant"], work["dtype"]))
        diary.say(answer=probe.work(work, rank))
    diary.mark("parting")
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
    local = int(order.get("local", number))
    if order["device"] == "cuda":
        local %= torch.cuda.device_count()  # a launcher may show each rank its own GPU alone
        torch.cuda.set_device(local)
    patience = datetime.timedelta(seconds=order.get("timeout", COLLECTIVE_SECONDS))
    host, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    store = torch.distributed.TCPStore(host, port, order["world"], number == 0, patience)
    torch.distributed.init_process_group(
        order["backend"],
        store=torch.distributed.PrefixStore("ranks", store),
        rank=number,
        world_size=order["world"],
        timeout=patience,
    )
    device = "cuda:%d" % local if order["device"] == "cuda" else "cpu"
    return Rank(number, order["world"], device, order["backend"], decide=_Council(store, number).decide)


class _Council:
    """Rank 0 decides, and the others read it in the store, which no collective under trial goes through."""

    def __init__(self, store: Any, number: int) -> None:
        self.store = store
        self.number = number
        self.asked = 0

    def decide(self, mine: bool) -> bool:
        self.asked += 1
        key = "decision%d" % self.asked
        if self.number == 0:
            self.store.set(key, str(int(mine)))
        return bool(int(self.store.get(key)))


def _part(rank: Rank) -> None:
    """All ranks go together, for one that goes first tears the connections of the others."""
    import torch

    torch.distributed.barrier()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
