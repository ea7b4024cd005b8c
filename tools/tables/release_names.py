"""Write matrix/tables/release-names.toml: which names the modules of releases hold that other releases do not.

    python tools/tables/release_names.py FOLDER [PACKAGE...]

The modules of every final release are read from its wheel or archive of sources, on their syntax trees and without
running them; the wheels themselves are not kept. FOLDER keeps what was found, so that a later run reads new releases
alone. The rows of packages that are not named stay as the table has them.

A module holds what is bound at its top level in some branch, so a name that a release is said to lack is bound there
nowhere. A module that can give names up without binding them, by a function ``__getattr__``, by ``setattr`` or
``globals()``, by what it takes over from compiled code or from another package whole, may hold anything: of it no name
is said to be missing. So may a module that is no file and whose name stands as a text in the package: an alias.
"""

from __future__ import annotations

import argparse
import ast
import gzip
import json
import re
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from packaging.version import Version

sys.path.insert(0, str(Path(__file__).parents[2]))

from compatcheck.files.python_syntax import parse_code
from compatcheck.matrix.compile import read_toml
from tools.tables import _toml, lay_out
from tools.tables._statements import module_of

PACKAGES = (
    *("accelerate", "auto-gptq", "autoawq", "bitsandbytes", "compressed-tensors", "datasets", "deepspeed", "diffusers"),
    *("evaluate", "flash-attn", "huggingface-hub", "liger-kernel", "lightning", "mmengine", "optimum", "peft"),
    *("pydantic", "pytorch-lightning", "safetensors", "sentence-transformers", "timm", "tokenizers", "torch"),
    *("torchao", "torchaudio", "torchmetrics", "torchvision", "transformers", "triton", "trl", "xformers"),
)
OLDEST = {
    "transformers": "4.20.0",
    "torch": "1.12.0",
    "pydantic": "1.8",
    "pytorch-lightning": "1.0",
    "deepspeed": "0.5",
}
TABLE = Path(__file__).parents[2] / "matrix" / "tables" / "release-names.toml"
_RUN = "python tools/tables/release_names.py FOLDER"
_SOURCES = ("https://pypi.org/", "https://docs.python.org/3/reference/import.html")
_WHAT = """Names that modules hold in some releases and not in others, by the runs of releases that have them. Those of
a run behind "?" may have them: what their module holds is not told by its text. "." is the module itself."""
_OPEN = "*"
_FOREIGN, _OF_PACKAGE, _DEFINED = range(3)
"""A name is imported from elsewhere, imported from another module of the same package, or defined where it stands."""

_LAZY = re.compile(r"sys\.modules\[__name__\]|^__getattr__\b", re.M)
"""What a module has that gives names up by a table of texts; each of the texts counts as a name of it."""

_SETS = re.compile(
    r"globals\(\)(?:\.update|\s*\[[^\]]*\]\s*=[^=])|setattr\(\s*sys\.modules|sys\.modules\[__name__\]\.__dict__"
)
_SETS_ON = re.compile(r"\bsetattr\(\s*(\w+)\s*,")
_DOTTED = re.compile(r"[\"'](\w+(?:\.\w+)+)[\"']")
_ITSELF, _PERHAPS = ".", "?"
_NEAR = 3
"""So many parts has the name of a module that users import from."""

_ALIASED = ("_fast", "tokenization_utils")
"""Modules that transformers 5.4 and newer has under these names too, without a file for each."""
_ASIDE = re.compile(r"tests?|testing\w*|dummy_\w+|convert_\w+|benchmarks?|examples|cli|\w*version\w*")
"""Modules that nobody's code imports from."""


class Bound(NamedTuple):
    """What a module binds at its top level, each name with where it is from; and what it takes over.

    ``taken`` are modules of which it takes every public name. ``offered`` is its ``__all__``, where that is plain.
    ``elsewhere`` are modules of the package that may hold anything by what is done here. A ``lazy`` package gives names
    up on demand, so that what it takes over for type checkers alone need not be there, and a ``gathering`` one those of
    all files beside it: https://github.com/huggingface/transformers/blob/v4.57.6/src/transformers/utils/import_utils.py
    """

    names: dict[str, int]
    taken: tuple[str, ...] = ()
    offered: tuple[str, ...] | None = None
    elsewhere: tuple[str, ...] = ()
    lazy: bool = False
    gathering: bool = False


@lru_cache(maxsize=100_000)
def bound_in(source: str, module: str, is_package: bool) -> Bound:
    """Read one module; what cannot be parsed may hold anything."""
    tree = parse_code(source)
    if tree is None:
        return Bound({_OPEN: _DEFINED})
    top, on_demand = module.partition(".")[0], "define_import_structure(" in source
    names: dict[str, int] = {}
    taken: list[str] = []
    offered: tuple[str, ...] | None = None
    for node in _at_top(tree.body):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names[_OPEN if node.name == "__getattr__" else node.name] = _DEFINED
        elif isinstance(node, ast.Import):
            names |= {(each.asname or each.name.partition(".")[0]): _FOREIGN for each in node.names}
        elif isinstance(node, ast.ImportFrom):
            origin = _origin(node, module, is_package)
            own = origin.partition(".")[0] == top
            for each in node.names:
                if each.name != "*":
                    names.setdefault(each.asname or each.name, _OF_PACKAGE if own else _FOREIGN)
                elif own:
                    taken.append(origin)
                elif not on_demand:
                    names[_OPEN] = _DEFINED
        else:
            names |= dict.fromkeys(_stored(node), _DEFINED)
            if isinstance(node, ast.Assign) and _stored(node) == ["__all__"] and source.count("__all__") == 1:
                offered = _plain(node.value)
    lazy = _LAZY.search(source) is not None
    if lazy:
        texts = (each.value for node in tree.body for each in ast.walk(node) if isinstance(each, ast.Constant))
        for text in texts:
            if isinstance(text, str) and text.isidentifier():
                names.setdefault(text, _OF_PACKAGE)
    if _SETS.search(source) and not on_demand:
        names[_OPEN] = _DEFINED
    aliases = (found for found in _DOTTED.findall(source) if found.partition(".")[0] == top)
    changed = (top for found in _SETS_ON.findall(source) if found == top)
    return Bound(names, tuple(taken), offered, tuple({*aliases, *changed}), lazy, on_demand and "prefix=" not in source)


def _at_top(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements that bind names of the module: those of its top level, whatever guards them."""
    for node in body:
        if isinstance(node, (ast.If, ast.Try, ast.With, ast.For, ast.While)):
            yield node
            for part in ("body", "orelse", "finalbody"):
                yield from _at_top(getattr(node, part, ()))
            for handler in getattr(node, "handlers", ()):
                yield from _at_top(handler.body)
        else:
            yield node


def _origin(node: ast.ImportFrom, module: str, is_package: bool) -> str:
    parts = module.split(".")
    base = parts[: len(parts) - node.level + is_package] if node.level else []
    return ".".join([*base, *filter(None, [node.module])])


def _stored(node: ast.stmt) -> list[str]:
    """The names that an assignment binds, or the head of a loop, a ``with`` or a condition."""
    heads = (each for each in ast.iter_child_nodes(node) if not isinstance(each, (ast.stmt, ast.ExceptHandler)))
    inner = (each for head in heads for each in ast.walk(head))
    return [each.id for each in inner if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)]


def _plain(value: ast.expr) -> tuple[str, ...] | None:
    try:
        found = ast.literal_eval(value)
    except (ValueError, TypeError, SyntaxError, RecursionError):
        return None
    return tuple(each for each in found if isinstance(each, str)) if isinstance(found, (list, tuple)) else None


def names_of(place: Path) -> dict[str, dict[str, int]]:
    """The names of each module of a release that lies in a folder as installers lay it out."""
    found = {}
    for path in sorted(place.rglob("*.py")):
        inside = path.relative_to(place).with_suffix("").parts
        is_package = inside[-1] == "__init__"
        module = ".".join(inside[:-1] if is_package else inside)
        if module and all(part.isidentifier() for part in module.split(".")):
            found[module] = bound_in(path.read_text(encoding="utf-8", errors="replace"), module, is_package)
    resolved = {module: dict(bound.names) for module, bound in found.items()}
    for path in place.rglob("*.*"):
        if path.suffix in lay_out.COMPILED:
            inside = path.relative_to(place).parts
            resolved[".".join((*inside[:-1], path.name.partition(".")[0]))] = {_OPEN: _DEFINED}
    for module in {each for bound in found.values() for each in bound.elsewhere}:
        if module == module.partition(".")[0] or module not in resolved:
            resolved.setdefault(module, {})[_OPEN] = _DEFINED
    for module in found:
        _take_over(module, found, resolved, ())
    for module in list(resolved):
        parent, _, name = module.rpartition(".")
        while parent:
            resolved.setdefault(parent, {}).setdefault(name, _DEFINED)
            parent, _, name = parent.rpartition(".")
    return resolved


def _take_over(
    module: str, found: Mapping[str, Bound], resolved: dict[str, dict[str, int]], above: tuple[str, ...]
) -> None:
    """Add what ``from ... import *`` brings into a module, after it was brought into those that it takes from."""
    bound = found[module]
    beside = [each for each in found if bound.gathering and each.rpartition(".")[0] == module]
    for origin in dict.fromkeys((*bound.taken, *beside)):
        if origin not in found:
            resolved[module] |= {} if bound.lazy else {_OPEN: _DEFINED}
        elif origin not in (*above, module):
            _take_over(origin, found, resolved, (*above, module))
            offered = found[origin].offered
            least = _DEFINED if bound.gathering else _FOREIGN
            for name, own in resolved[origin].items():
                if name in offered if offered is not None else own >= least or found[origin].gathering:
                    resolved[module].setdefault(name, min(own, _OF_PACKAGE))
            resolved[module] |= {name: _OF_PACKAGE for name in offered or () if name not in resolved[module]}


def kept_names(folder: Path, package: str, version: Version, file: lay_out.File) -> dict[str, dict[str, int]] | None:
    """The names of one release, from the folder where they were kept or from the index; None where that fails."""
    kept = folder / package / f"{version}.json.gz"
    if not kept.is_file():
        with tempfile.TemporaryDirectory(dir=folder) as room:
            problem = lay_out.lay_out(Path(room), package, version, file)
            if problem:
                print(problem, file=sys.stderr)
                return None
            place = Path(room) / package / str(version)
            top = module_of(package).partition(".")[0]
            found = {module: names for module, names in names_of(place).items() if module.partition(".")[0] == top}
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_bytes(gzip.compress(json.dumps(found).encode(), 5))
    known: dict[str, dict[str, int]] = json.loads(gzip.decompress(kept.read_bytes()))
    return known


class Names:
    """Of one package the releases that were read, and for each module and name those that have it."""

    def __init__(self) -> None:
        self.releases: list[str] = []
        self._modules: dict[str, list[int]] = {}
        self._open: dict[str, set[int]] = {}
        self._unread: dict[str, set[int]] = {}
        self._names: dict[tuple[str, str], list[int]] = {}
        self._origin: dict[tuple[str, str], int] = {}

    def add(self, version: Version, found: Mapping[str, Mapping[str, int]]) -> None:
        at = len(self.releases)
        self.releases.append(str(version))
        for module, names in found.items():
            self._modules.setdefault(module, []).append(at)
            if _OPEN in names:
                self._open.setdefault(module, set()).add(at)
            if list(names) == [_OPEN]:
                self._unread.setdefault(module, set()).add(at)
            for name, origin in names.items():
                self._names.setdefault((module, name), []).append(at)
                self._origin[module, name] = max(origin, self._origin.get((module, name), _FOREIGN))

    def told(self) -> Iterator[tuple[str, str, str]]:
        """Module, name and the runs of releases that have it, of what some release lacks for certain.

        A name that came and stayed is told where users import it from: of packages and of modules that define it, near
        the top. One that went is told wherever it was defined, since code of its day imports it from there.
        """
        newest = len(self.releases) - 1
        packages = {module.rpartition(".")[0] for module in self._modules}
        for module, at in sorted(self._modules.items()):
            above = self._modules.get(module.rpartition(".")[0])
            unread = self._unread.get(module, set())
            if not _is_aside(module) and len(at) <= newest and at != above and not unread.issuperset(at):
                yield module, _ITSELF, self._told(at, unread)
        for (module, name), at in sorted(self._names.items()):
            if _is_aside(module) or name == _OPEN or f"{module}.{name}" in self._modules:
                continue
            may = self._open.get(module, set()).difference(at)
            deep, went = _is_deep(module), max((*at, *may)) < newest
            taken_from = module in packages or went
            wanted = _OF_PACKAGE if taken_from and not deep else _DEFINED
            if len(at) + len(may) == len(self._modules[module]) or self._origin[module, name] < wanted:
                continue
            if went or not (deep or name.startswith("_")):
                yield module, name, self._told(at, may)

    def _told(self, at: Sequence[int], perhaps: Set[int]) -> str:
        surely = [each for each in at if each not in perhaps]
        return " ".join(filter(None, (self._runs(surely), self._runs(sorted(perhaps), _PERHAPS))))

    def _runs(self, at: Sequence[int], mark: str = "") -> str:
        """The runs of releases as ranges, each from its first release to before the first that is without."""
        runs: list[list[int]] = []
        for each in at:
            if runs and runs[-1][1] == each - 1:
                runs[-1][1] = each
            else:
                runs.append([each, each])
        return " ".join(mark + self._range(low, high) for low, high in runs)

    def _range(self, low: int, high: int) -> str:
        bounds = [f">={self.releases[low]}"] if low else []
        return ",".join([*bounds, *(f"<{each}" for each in self.releases[high + 1 : high + 2])])


def _is_aside(module: str) -> bool:
    """Whether nobody's code imports from a module, or it can be imported by a name that no file has."""
    parts = module.split(".")
    return any(map(_ASIDE.fullmatch, parts)) or (len(parts) > 1 and module.endswith(_ALIASED))


def _is_deep(module: str) -> bool:
    """Whether a module is one of a single model or pipeline, of which a package has hundreds."""
    parts = module.split(".")
    return len(parts) > _NEAR or (len(parts) == _NEAR and parts[1] in ("models", "pipelines"))


def rows(names: Names) -> dict[str, dict[str, str]]:
    """The names by module and by the runs of releases that have them."""
    found: dict[str, dict[str, list[str]]] = {}
    for module, name, runs in names.told():
        found.setdefault(module, {}).setdefault(runs, []).append(name)
    return {module: {runs: " ".join(each) for runs, each in by.items()} for module, by in sorted(found.items())}


def read_package(folder: Path, address: str, package: str) -> Names:
    """Every final release of a package, read or kept from before."""
    names, oldest = Names(), Version(OLDEST.get(package, "0"))
    for version, file in lay_out.offered(address, package).items():
        found = kept_names(folder, package, version, file) if version >= oldest else None
        if found is not None:
            names.add(version, found)
    return names


def write(table: Mapping[str, Mapping[str, Any]], path: Path = TABLE) -> None:
    """``modules``, ``read`` and ``names``, each by package."""
    lines = [_toml.header(_WHAT, _RUN, _SOURCES)]
    lines += [_toml.section("modules", dict(sorted(table["modules"].items())))]
    lines += ["\n[read]\n", *(f"{package} = {json.dumps(span)}\n" for package, span in sorted(table["read"].items()))]
    for package, modules in sorted(table["names"].items()):
        for module, by in modules.items():
            lines.append(f"\n[names.{package}.{json.dumps(module)}]\n")
            lines += [f"{json.dumps(runs)} = {json.dumps(names)}\n" for runs, names in by.items()]
    path.write_text("".join(lines), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("packages", nargs="*", metavar="PACKAGE")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    address = lay_out.index()
    table: dict[str, dict[str, Any]] = {"modules": {}, "read": {}, "names": {}}
    if TABLE.is_file():
        known = read_toml(TABLE)
        table = {key: dict(known[key]) for key in table}
    for package in given.packages or PACKAGES:
        names = read_package(given.folder, address, package)
        if names.releases:
            table["modules"][module_of(package).partition(".")[0]] = package
            table["read"][package] = [names.releases[0], names.releases[-1]]
            table["names"][package] = rows(names)
        print(f"{package}: {len(names.releases)} releases read", file=sys.stderr, flush=True)
    write(table)


if __name__ == "__main__":
    main()
