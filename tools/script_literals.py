"""Count how many of the literal settings in training scripts are read: ``python -m tools.script_literals FOLDER...``

The settings are the keyword arguments, as a plain walk of the syntax tree finds them, of the calls that configure
training: classes named ``...Config``, ``...Arguments``, ``...Plugin`` and ``...Kwargs``, trainers, ``Accelerator``
and ``from_pretrained``. One is literal if `ast.literal_eval` takes it or it is a torch dtype. It is read if
`read_calls` has a call in the same line with the same value, wrong if it has another value, and missed if the call or
the value is not known. Of settings that are no literals it counts how many have a known value all the same. Each
missed or wrong one is printed with ``--list``; ``--sample N`` prints N settings that were read, for the eye.
"""

from __future__ import annotations

import argparse
import ast
import random
import sys
import time
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from compatcheck.errors import InputError
from compatcheck.project.python_values import Open, Reference
from compatcheck.project.script_calls.calls import Call
from compatcheck.project.script_calls.reader import read_calls

PACKAGES = ("transformers", "trl", "peft", "accelerate", "unsloth", "lightning", "pytorch_lightning", "deepspeed")
ENDINGS = ("Config", "Arguments", "Plugin", "Kwargs", "Trainer", "Accelerator", "from_pretrained")
DTYPES = ("float16", "bfloat16", "float32", "half", "float", "uint8", "int8")
UNKNOWN = object()


class Setting(NamedTuple):
    file: str
    line: int
    callee: str
    keyword: str
    text: str
    value: object


def settings_in(tree: ast.Module, file: str) -> Iterator[Setting]:
    """The keyword arguments of the calls that configure training; ``UNKNOWN`` for the value of what is no literal."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        func = node.func
        name = func.attr if isinstance(func, ast.Attribute) else func.id if isinstance(func, ast.Name) else ""
        if name.endswith(ENDINGS) and (name[0].isupper() or name == "from_pretrained"):
            for keyword in node.keywords:
                if keyword.arg:
                    text = ast.unparse(keyword.value)
                    yield Setting(file, node.lineno, name, keyword.arg, text, literal(keyword.value))


def literal(node: ast.expr) -> object:
    """The value of a literal or a torch dtype; ``UNKNOWN`` for anything else."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "torch":
        return Reference(f"torch.{node.attr}") if node.attr in DTYPES else UNKNOWN
    try:
        return listed(ast.literal_eval(node))
    except (ValueError, TypeError, SyntaxError):
        return UNKNOWN


def listed(value: object) -> object:
    """The same with lists for tuples and sets, as calls have them."""
    if isinstance(value, (list, tuple)):
        return [listed(each) for each in value]
    return {key: listed(each) for key, each in value.items()} if isinstance(value, dict) else value


def is_same(left: object, right: object) -> bool:
    return type(left) is type(right) and repr(left) == repr(right)


def is_ours(tree: ast.Module) -> bool:
    """Whether a script imports a package whose calls are read."""
    for node in ast.walk(tree):
        names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if any(name.partition(".")[0] in PACKAGES for name in names):
            return True
    return False


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--list", action="store_true", help="print each literal that is missed or wrong")
    parser.add_argument("--sample", type=int, default=0, metavar="N", help="print N settings that were read")
    chosen = parser.parse_args()
    counts: Counter[str] = Counter()
    read: list[str] = []
    spent = 0.0
    for path in sorted(path for folder in chosen.folders for path in folder.rglob("*.py")):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                tree = ast.parse(path.read_text(encoding="utf-8", errors="replace"))
        except (SyntaxError, ValueError):
            continue
        if not is_ours(tree):
            continue
        counts["scripts"] += 1
        started = time.process_time()
        try:
            calls = read_calls(str(path)).calls
        except InputError as error:
            print(error, file=sys.stderr)
            counts["scripts refused"] += 1
            calls = ()
        spent += time.process_time() - started
        by_place: defaultdict[tuple[str, int], list[Call]] = defaultdict(list)
        for call in calls:
            by_place[call.at.file, call.at.line or 0].append(call)
        for setting in settings_in(tree, str(path)):
            made = by_place[setting.file, setting.line]
            given = [call.keywords[setting.keyword] for call in made if setting.keyword in call.keywords]
            known = [value for value in given if not isinstance(value, (Open, Call))]
            kind = "literal" if setting.value is not UNKNOWN else "other"
            counts[kind] += 1
            outcome = "read" if known else "missed"
            if kind == "literal" and any(not is_same(value, setting.value) for value in known):
                outcome = "wrong"
            counts[f"{kind} {outcome}"] += 1
            counts[f"{kind} read in doubt"] += bool(known) and all(call.doubt for call in made)
            line = f"{setting.file}:{setting.line}: {setting.callee}({setting.keyword}={setting.text:.60})"
            if known:
                read.append(f"{line} -> {known}")
            if chosen.list and outcome != "read" and kind == "literal":
                print(outcome, line, given)
    for each in random.Random(0).sample(read, min(chosen.sample, len(read))):
        print(each)
    share = 100 * counts["literal read"] / max(1, counts["literal"])
    print(dict(counts), f"{share:.1f} % of the literal settings are read, in {spent:.1f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
