"""From the end of an importing process to the chain of files that led there, and whose they are."""

from __future__ import annotations

import os
import re
import signal
import sys
import sysconfig
from importlib import metadata
from typing import Any, Dict, Iterable, List, Mapping

from compatcheck.probes._criterion import Measured, Row

LONGEST = 12
FAULT_FRAME = re.compile(r'^  File "(.+)", line (\d+) in (.+)$')


def versions() -> Dict[str, str]:
    """The installed distributions by normalised name; of several, the one that is found first."""
    found: Dict[str, str] = {}
    for distribution in metadata.distributions():
        name = distribution.metadata["Name"]
        if name:
            found.setdefault(_normalised(name), distribution.version)
    return found


def owners(modules: Iterable[str]) -> Dict[str, str]:
    """The distribution that brings each top-level module."""
    found: Dict[str, str] = {}
    wanted = {module for module in modules if module}
    for distribution in metadata.distributions():
        name = distribution.metadata["Name"]
        missing = wanted - set(found)
        if not name or not missing:
            continue
        listed = (distribution.read_text("top_level.txt") or "").split()
        record = "\n" + (distribution.read_text("RECORD") or "")
        for module in missing:
            if module in listed or "\n%s/" % module in record or "\n%s.py," % module in record:
                found[module] = _normalised(name)
    return found


def top_level(package: str) -> List[str]:
    """The modules that a distribution brings, those meant for others."""
    found = set()
    for path in metadata.distribution(package).files or ():
        if path.suffix in (".py", ".so", ".pyd"):
            found.add(path.parts[0].partition(".")[0])
    return sorted(name for name in found if name.isidentifier() and not name.startswith("_") and name != "tests")


def failure_row(end: Measured, installed: Mapping[str, str]) -> Row:
    """The row of a package that did not come through: outcome, what happened in words, causes and chain.

    ``outcome`` is raised, died, exited, hung or slow.
    """
    row = {"package": end["package"], "statement": end["statement"], "causes": [], "seconds": None}
    raised = end.get("raised")
    if raised:
        frames = [frame for frame in raised["frames"] if _is_code(frame["file"])]
        chain, last = _chain(frames), frames[-1] if frames else None
        what = "fails: " + re.sub(r" \([^()]*__init__\.py\)$| \([^()]*[/\\][^()]*\)$", "", raised["causes"][-1])
        row.update(outcome="raised", what=_one_line(what), causes=raised["causes"], chain=chain)
        row.update(line=last["text"] if last else "", asks=_asks(last, raised["names"], installed))
        return row
    dumps = _dumps(str(end["stack"]))
    row.update(chain=_chain(dumps[-1]) if dumps else [], said=_one_line(str(end["said"])[-LONGEST * 40 :]))
    if end["slow"] is not None:
        hung = stands_still(str(end["stack"])) and not end["working"]
        outcome = "hung" if hung else "slow"
        text = "hangs at the same place after %g s" if hung else "did not end within %g s"
        row.update(outcome=outcome, what=text % end["slow"])
    elif end["status"] < 0:
        row.update(outcome="died", what="is ended by %s" % _signal(-end["status"]))
    else:
        row.update(outcome="exited", what="ends the process with exit status %d" % end["status"])
    return row


def stands_still(stacks: str) -> bool:
    """Whether the last three stacks that faulthandler wrote are the same."""
    last = _dumps(stacks)[-3:]
    return len(last) == 3 and bool(last[0]) and last[0] == last[1] == last[2]


def _normalised(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _is_code(file: str) -> bool:
    """Whether a frame's file tells something: not the driver, the import machinery or the statement itself."""
    library = os.path.join(sysconfig.get_paths()["stdlib"], "importlib")
    return not (file.startswith(("<", library)) or os.path.basename(file) == "_importing.py")


def _chain(frames: List[Row]) -> List[str]:
    """Files being imported, outermost first, each once with its line, and the place where it ended."""
    modules = [frame for frame in frames[:-1] if frame["in"] == "<module>"] + frames[-1:]
    places: List[str] = []
    for frame in modules:
        place = "%s:%d" % (_short_path(frame["file"]), frame["line"])
        if place not in places:
            places.append(place)
    return places if len(places) <= LONGEST else [*places[:2], "...", *places[3 - LONGEST :]]


def _short_path(path: str) -> str:
    folders = [folder for folder in sys.path if folder and path.startswith(folder + os.sep)]
    return path[len(max(folders, key=len)) + 1 :] if folders else path


def _asks(frame: Any, names: List[str], installed: Mapping[str, str]) -> str:
    """Whose line failed and which version of the other side it met."""
    if frame is None:
        return ""
    module = _short_path(frame["file"]).replace("\\", "/").partition("/")[0]
    wanted = names[-1].partition(".")[0] if names else ""
    owner_of = owners((module, wanted))
    asker, provider = owner_of.get(module), owner_of.get(wanted)
    parts = ["%s %s" % (asker, installed.get(asker, "")) if asker else _short_path(frame["file"])]
    if provider and provider != asker:
        parts.append("%s is %s" % (provider, installed.get(provider)))
    return ", ".join(parts)


def _dumps(text: str) -> List[List[Row]]:
    """The stack of the importing thread in each dump of faulthandler, outermost frame first."""
    dumps: List[List[Row]] = []
    for block in re.split(r"^(?:Current thread|Thread) 0x.*$", text, flags=re.M)[1:]:
        matches = [match for match in map(FAULT_FRAME.match, block.splitlines()) if match]
        frames: List[Row] = [{"file": m.group(1), "line": int(m.group(2)), "in": m.group(3)} for m in reversed(matches)]
        if any(os.path.basename(frame["file"]) == "_importing.py" for frame in frames):
            dumps.append([frame for frame in frames if _is_code(frame["file"])])
    return dumps


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "signal %d" % number


def _one_line(text: str) -> str:
    return " ".join(text.split())
