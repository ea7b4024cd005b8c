"""What one release takes from another at import, whatever else is installed.

The two releases lie in folders of their own as installers lay them out, and the follower of imports that `check
--imports` has runs on them. Every other package is a blank: it may hold any name, its version is unknown, and it is
known to be there only where one of the two demands it. torch alone has a version.
"""

from __future__ import annotations

import ast
import gc
from collections.abc import Collection, Mapping, Sequence
from functools import cache, lru_cache
from hashlib import sha1
from pathlib import Path
from typing import Any, NamedTuple

from compatcheck.environment import Target
from compatcheck.import_check import _lazy, _source
from compatcheck.import_check._finder import Finder, is_stdlib
from compatcheck.import_check._interpreter import Interpreter
from compatcheck.import_check._modules import Modules
from compatcheck.import_check._natives import Native
from compatcheck.import_check._report import failure_of
from compatcheck.import_check._values import UNKNOWN, Array, Missing, Module, Raised, Table, Value

MODULES = {
    "auto-gptq": "auto_gptq",
    "autoawq": "awq",
    "colbert-ai": "colbert",
    "flagembedding": "FlagEmbedding",
    "ms-swift": "swift",
    "open-clip-torch": "open_clip",
    "optimum-quanto": "optimum",
    "pillow": "PIL",
    "protobuf": "google",
    "python-dateutil": "dateutil",
    "pyyaml": "yaml",
    "scikit-learn": "sklearn",
}
"""The module of a distribution, where it is not the name with underscores."""


_NEVER = frozenset({"flax", "jax", "keras", "keras_nlp", "tensorflow", "tensorflow_text", "tf_keras"})
"""Frameworks that a training with torch does without, and whose versions decide which names transformers has."""


class Demand(NamedTuple):
    """A module, or a name in one, that import statements ask of another package."""

    module: str
    name: str | None


class Failure(NamedTuple):
    """The first name that is surely not there, and the statement of a training run that ends there."""

    demand: Demand
    statement: str


class Setting(NamedTuple):
    """What stands beside the two releases; ``rest`` is whether all else is installed, or only what is demanded."""

    rest: bool
    torch: str = "2.13.0"
    python: str = "3.11.7"


ALONE, CROWDED = Setting(False), Setting(True, python="3.12.3")


class _Versions(dict[str, Any]):
    """Versions by distribution; where ``rest`` holds every other one is installed as well, newer than anybody asks."""

    rest = False

    def __contains__(self, name: object) -> bool:
        return self.rest or super().__contains__(name)

    def __missing__(self, name: str) -> str:
        return "99.0.0"


class _Folders(Finder):
    def provider(self, module: str) -> str | None:
        return "torch" if module.partition(".")[0] == "torch" else super().provider(module)


class _Blanks(Modules):
    """Modules of which only those in folders can be read; ``asked`` collects what is asked of the others.

    ``surely`` names modules of the top level that are there beside them.
    """

    rest = False
    surely: frozenset[str] = frozenset()

    def __init__(self, finder: Finder, natives: Mapping[tuple[str, str], Value], *parts: Any) -> None:
        super().__init__(
            finder, {**natives, ("importlib.metadata", "packages_distributions"): Native(_installed)}, *parts
        )
        self.asked: dict[Demand, None] = {}
        packaging = self._add(Module("packaging", open_=True))
        packaging.names["version"] = self._add(Module("packaging.version", open_=True))

    def exists(self, name: str) -> bool | None:
        top = name.partition(".")[0]
        if is_stdlib(top) or self.finder.find(top):
            return super().exists(name)
        return (True if name == top else None) if self._is_there(top) else False

    def _is_there(self, top: str) -> bool:
        return top in self.surely or (self.rest and top not in _NEVER)

    def _load_one(self, dotted: str, last: str, parent: Module | None) -> Module | None:
        blank = parent is None and not is_stdlib(last) and dotted not in self.loaded and not self.finder.find(last)
        if blank and self._is_there(last):
            return self._add(Module(dotted, open_=True))
        if blank:
            raise Raised(ModuleNotFoundError, Missing(dotted, None))
        if parent is not None and parent.open and not parent.folders:
            self.asked[Demand(dotted, None)] = None
        return super()._load_one(dotted, last, parent)

    def member(self, module: Module, name: str, importing: bool) -> Value:
        if module.open and not module.folders and module.file is None:
            self.asked[Demand(module.name, name)] = None
        return super().member(module, name, importing)

    def _may_hold(self, module: Module, name: str) -> bool:
        """As the follower, but for what ``_create_module_alias`` of transformers 5.4 and newer adds to its top level.

        https://github.com/huggingface/transformers/blob/v5.10.0/src/transformers/__init__.py
        """
        if module.name == "transformers" and module.lazy is not None and module.lazy.exact:
            return name.startswith("__") or name.endswith(("_fast", "tokenization_utils")) or name in self.loaded
        return super()._may_hold(module, name)


class Pairwise(Interpreter):
    """The run of an interpreter in which only the packages in ``folders`` can be read; all else is a blank."""

    modules: _Blanks

    def __init__(self, folders: Sequence[Path], surely: Collection[str], setting: Setting) -> None:
        target = Target("", setting.python, "", tuple(map(str, folders)), "")
        self.finder = finder = _Folders(target)
        there = {name: version for name, version in finder.versions.items() if version}
        demanded = {_distribution(each): UNKNOWN for each in surely}
        versions = _Versions({**demanded, **there, "torch": setting.torch})
        versions.rest = setting.rest
        finder.versions = versions
        super().__init__(finder, setting.python, modules=_Blanks)
        self.modules.rest = setting.rest
        self.modules.surely = frozenset(surely) | {"torch"}


def _distribution(module: str) -> str:
    return next((name for name, holds in MODULES.items() if holds == module), module.replace("_", "-").lower())


def demands(folder: Path, lines: Sequence[str], surely: Collection[str], of: Collection[str]) -> list[Demand]:
    """What the statements may ask of the modules ``of``: what is asked in some branch, guarded or not."""
    with _prepared():
        run = Pairwise([folder], {*surely, *of}, CROWDED)
        for line in lines:
            run.statement(line)
    found = dict(run.modules.asked)
    for module in run.modules.loaded.values():
        if module.file and module.file.endswith(".py"):
            found.update(dict.fromkeys(_written(module.file)))
    return [each for each in found if each.module.partition(".")[0] in of and (each.name or "")[:2] != "__"]


def _written(file: str) -> list[Demand]:
    """What the statements of a module ask for, in whatever branch."""
    tree = _source.parse(_source.read(file))
    found: list[Demand] = []
    left: list[ast.AST] = list(tree.body) if tree else []
    while left:
        node = left.pop()
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found += [Demand(node.module, alias.name) for alias in node.names if alias.name != "*"]
        elif not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.expr)):
            left += ast.iter_child_nodes(node)
    return found


def lacking(folder: Path, wanted: Sequence[Demand], surely: set[str]) -> set[Demand]:
    """Which of the names a release surely does not have."""
    found: set[Demand] = set()
    with _prepared():
        run = Pairwise([folder], surely, ALONE)
        for demand in wanted:
            line = f"from {demand.module} import {demand.name}" if demand.name else f"import {demand.module}"
            error = run.statement(line)
            if error is not None and error.missing and not run.finder.find(error.missing.module.partition(".")[0]):
                return lacking(folder, wanted, {*surely, error.missing.module})
            if error is not None and _is_of(error, demand):
                found.add(demand)
    return found


def _is_of(error: Raised, demand: Demand) -> bool:
    missing = error.missing
    return missing is not None and (missing == Missing(*demand) or f"{demand.module}.".startswith(f"{missing.module}."))


def failure(
    package: str, folder: Path, other: Path, lines: Sequence[str], surely: set[str], setting: Setting
) -> Failure | None:
    """The first statement that ends because the release in ``folder`` asks the other for what it does not have.

    A third package that is imported without a guard is there: it is added to ``surely``.
    """
    with _prepared():
        while True:
            run = Pairwise([folder, other], surely, setting)
            found, demanded = _first_failure(run, package, lines)
            if demanded is None or demanded in surely:
                return found
            surely.add(demanded)


def _first_failure(run: Pairwise, package: str, lines: Sequence[str]) -> tuple[Failure | None, str | None]:
    """The failure, or the third package that a statement ends for."""
    for line in lines:
        error = run.statement(line)
        told = failure_of(error, line, run.finder) if error is not None else None
        if told is None or not told.module or told.error == "NameError":
            continue
        if told.provider in run.finder.versions and run.finder.find(told.module.partition(".")[0]):
            if told.distribution == package and told.provider != package:
                return Failure(Demand(told.module, told.name), line), None
        elif error is not None and error.missing is not None and "." not in told.module:
            return None, told.module
    return None, None


class _prepared:
    """The follower with memory: trees and exports are kept by their source."""

    def __enter__(self) -> None:
        gc.disable()
        gc.collect()
        gc.freeze()  # so that the trees that are kept are not walked again
        self.follower = _source.parse, _source.read, _lazy._exports
        _source.parse, _source.read, _lazy._exports = _tree, _read, _exports

    def __exit__(self, *error: object) -> None:
        _source.parse, _source.read, _lazy._exports = self.follower


_parse, _read = _source.parse, lru_cache(4000)(_source.read)
_read_exports = _lazy._exports
_EXPORTS: dict[tuple[bytes, str], tuple[list[str], list[str]]] = {}


@cache
def _tree(source: str) -> ast.Module | None:
    return _parse(source)


@cache
def _exports(path: str, file: str) -> tuple[list[str], list[str]]:
    """As the follower reads them, once for files of one content: most models stay as they are for many releases."""
    with open(path, "rb") as stream:
        key = sha1(stream.read(), usedforsecurity=False).digest(), file
    if key not in _EXPORTS:
        _EXPORTS[key] = _read_exports(path, file)
    return _EXPORTS[key]


def _installed(run: Any, arguments: list[Value], keywords: Mapping[str, Value]) -> Value:
    known = {MODULES.get(name, name.replace("-", "_")): Array([name]) for name in dict(run.finder.versions)}
    return Table({**known, **{name: Array([name]) for name in run.surely if name not in known}}, False)
