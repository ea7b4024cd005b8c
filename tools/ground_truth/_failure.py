"""What an exception says: the error, its files, and the two packages at fault; imports nothing of ours."""

import gc
import glob
import os
import re
import sys
import traceback
import types

_CALL = re.compile(
    r"^(?P<call>[\w.<>]+)\(\) (got an unexpected keyword|missing \d+ required|takes |got multiple|got some positional)"
)
_NAME = re.compile(
    r"cannot import name '([\w.]+)'|No module named '([\w.]+)'|has no attribute '(\w+)'|keyword argument '(\w+)'"
)


class WrongNumber(Exception):
    """The stage ran to its end and what it computed is not right."""


def failure(error, text=""):
    """A mapping for JSON; `root` is the error that others were raised from."""
    if error is None:
        return {"error": text, "root": text, "kind": "crash", "wrong": False, "files": [], "frames": []}
    chain = [error]
    while chain[-1].__cause__ is not None:
        chain.append(chain[-1].__cause__)
    root = chain[-1]
    frames = [frame for each in chain for frame in traceback.extract_tb(each.__traceback__)]
    frames = [frame for frame in frames if "importlib" not in frame.filename]
    owners = _distributions()
    provider = _distribution(_provider(root), owners)
    packages = [_distribution(_top(frame.filename), owners) for frame in frames]
    callers = [package for package in packages if package != provider] or [provider]
    named = _NAME.search(str(root))
    return {
        "error": _line(error),
        "root": _line(root),
        "kind": _kind(root, _provider(root)),
        "name": next(filter(None, named.groups()), "") if named else "",
        "caller": callers[-1],
        "provider": provider,
        "mentions": sorted(_mentions(str(root), owners)),
        "wrong": isinstance(root, WrongNumber),
        "files": [frame.filename for frame in frames],
        "frames": [f"{_short(frame.filename)}:{frame.lineno} {frame.name}" for frame in frames[-8:]],
    }


def _line(error):
    return f"{type(error).__name__}: {str(error)[:600]}"


def _short(path):
    return re.sub(r".*(site-packages|lib/python3\.\d+|ground_truth)/", "", path)


def _top(path):
    """The top-level module of a file below site-packages; empty for others."""
    found = re.search(r"site-packages/([\w.-]+?)(\.py)?(/|$)", path)
    return found.group(1) if found else ""


def _distributions():
    """The distribution of each top-level module, by the lists of installed files."""
    owners = {}
    for folder in filter(os.path.isdir, sys.path):
        for record in glob.glob(os.path.join(glob.escape(folder), "*.dist-info", "RECORD")):
            name = os.path.basename(os.path.dirname(record)).partition("-")[0]
            with open(record, encoding="utf-8", errors="replace") as stream:
                for module in set(re.findall(r"^([A-Za-z]\w*)(?:/|\.py,|\.[\w-]+\.so,)", stream.read(), re.MULTILINE)):
                    owners.setdefault(module, name.lower().replace("_", "-"))
    return owners


def _distribution(modules, owners):
    return ",".join(owners.get(each, each.lower().replace("_", "-")) for each in modules.split(",")) if modules else ""


def _kind(error, provider):
    if isinstance(error, ImportError):
        return "import"
    if isinstance(error, AttributeError) and provider not in ("", "builtins"):
        return "attribute"
    return "call" if isinstance(error, TypeError) and _CALL.match(str(error)) else "other"


def _provider(error):
    """The top-level module that lacks what was asked for; empty where the error does not tell."""
    if isinstance(error, ImportError):
        return (error.name or "").partition(".")[0]
    if isinstance(error, AttributeError):
        owner = getattr(error, "obj", None)
        if isinstance(owner, types.ModuleType):
            return owner.__name__.partition(".")[0]
        return (owner if isinstance(owner, type) else type(owner)).__module__.partition(".")[0]
    called = _CALL.match(str(error)) if isinstance(error, TypeError) else None
    return ",".join(_owners(called["call"], error.__traceback__)) if called else ""


def _owners(call, trace):
    """The modules that define what was called: by its name where the call is made, else by all functions there are."""
    while trace and trace.tb_next:
        trace = trace.tb_next
    names = {**trace.tb_frame.f_globals, **trace.tb_frame.f_locals} if trace else {}
    seen = names.get(call.partition(".")[0])
    if getattr(seen, "__module__", None):
        return [seen.__module__.partition(".")[0]]
    functions = (each for each in gc.get_objects() if isinstance(each, types.FunctionType))
    return sorted({each.__module__.partition(".")[0] for each in functions if each.__qualname__ == call})[:3]


def _mentions(text, owners):
    words = {word.lower().replace("_", "-") for word in re.findall(r"[A-Za-z][\w-]*", text)}
    return words & set(owners.values())
