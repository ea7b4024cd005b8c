"""Import packages one after another and tell how each went.

Run by path in the interpreter under test, standard library only, Python 3.8+, with the control folder as its only
argument. In: ``order.json`` {limit, packages: [{package, statements}]}. Out: ``told.jsonl``, one flushed JSON object a
line: ``begin`` {package, statement}; then ``end`` {package, seconds}, or ``raised`` {causes, frames, names} after
which the process ends: whatever else it imported would stand on half a package. ``crash.txt`` holds what faulthandler
wrote: the stack at a fatal signal, and every 15 seconds (or third of the limit) that of an import that goes on.
"""

from __future__ import annotations

import faulthandler
import json
import linecache
import os
import sys
import time
from typing import Any, Dict, List

MESSAGE = 400
INTERVAL = 15.0


def main(control: str) -> None:
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or os.curdir) != here]
    with open(os.path.join(control, "order.json"), encoding="utf-8") as stream:
        order = json.load(stream)
    with open(os.path.join(control, "crash.txt"), "a", encoding="utf-8") as crash:
        _import(order, os.path.join(control, "told.jsonl"), crash)


def _import(order: Dict[str, Any], journal: str, crash: Any) -> None:
    def tell(event: str, **fields: Any) -> None:
        with open(journal, "a", encoding="utf-8") as stream:
            stream.write(json.dumps({"event": event, **fields}) + "\n")

    def on_error(kind: Any, error: BaseException, trace: Any) -> None:
        faulthandler.cancel_dump_traceback_later()
        links = _causes(error)
        tell(
            "raised",
            causes=["%s: %s" % (type(link).__name__, str(link).strip()[:MESSAGE]) for link in links],
            frames=[frame for link in links for frame in _frames(link.__traceback__)],
            names=[name for link in links for name in [getattr(link, "name", None)] if isinstance(name, str)],
        )

    faulthandler.enable(crash)
    sys.excepthook = on_error
    for package in order["packages"]:
        started = time.monotonic()
        faulthandler.dump_traceback_later(min(INTERVAL, order["limit"] / 3), repeat=True, file=crash)
        for statement in package["statements"]:
            tell("begin", package=package["package"], statement=statement)
            exec(compile(statement, "<statement>", "exec"), {"__name__": "__main__"})
        faulthandler.cancel_dump_traceback_later()
        tell("end", package=package["package"], seconds=round(time.monotonic() - started, 3))
    os._exit(0)


def _causes(error: BaseException) -> List[BaseException]:
    """The exception and what it was raised from, the root last."""
    links = [error]
    while links[-1].__cause__ is not None and len(links) < 16:
        links.append(links[-1].__cause__)
    return links


def _frames(trace: Any) -> List[Dict[str, Any]]:
    frames = []
    while trace is not None:
        code = trace.tb_frame.f_code
        text = linecache.getline(code.co_filename, trace.tb_lineno).strip()
        frames.append({"file": code.co_filename, "line": trace.tb_lineno, "in": code.co_name, "text": text[:200]})
        trace = trace.tb_next
    return frames


if __name__ == "__main__":
    main(sys.argv[1])
