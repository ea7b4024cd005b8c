"""The versions of other packages that a module compares as soon as it is imported, read from its syntax tree."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

REQUIRING = frozenset({"require_version", "require_version_core", "check_version"})
"""Functions that end in ImportError unless the requirement in their first argument is met."""
_PARSING = frozenset({"parse", "Version", "parse_version", "LooseVersion", "TrueVersion"})
_READING = frozenset({"version", "importlib_version", "get_distribution"})
_DISTRIBUTIONS = {
    "PIL": "pillow",
    "cv2": "opencv-python",
    "google": "protobuf",
    "sklearn": "scikit-learn",
    "yaml": "pyyaml",
}
_UNLESS = {ast.Lt: ">=", ast.LtE: ">", ast.Gt: "<=", ast.GtE: "<", ast.Eq: "!=", ast.NotEq: "=="}
"""The demand of a module that raises where the comparison holds."""
_SWAPPED = {ast.Lt: ast.Gt, ast.LtE: ast.GtE, ast.Gt: ast.Lt, ast.GtE: ast.LtE, ast.Eq: ast.Eq, ast.NotEq: ast.NotEq}
_NOT = {">=": "<", ">": "<=", "<=": ">", "<": ">=", "!=": "==", "==": "!="}
_ABSENT = "PackageNotFoundError"
_SKIPPED_IF_OLD = frozenset({"accelerate"})
"""is_accelerate_available() is false of a release below the floor, which is then not compared:
https://github.com/huggingface/transformers/blob/v4.57.0/src/transformers/dependency_versions_check.py
"""
_CHECK = "dependency_versions_check"
_CHECKED = "pkgs_to_check_at_runtime"


class Demand(NamedTuple):
    """What an import demands of another package, as one clause: ``>=8``."""

    package: str
    clause: str


class Module(NamedTuple):
    """What a module does as soon as it is imported.

    ``imports`` names what it imports, ``checks`` what it compares, ``calls`` the functions that it calls without
    arguments, as ``module.function``; ``functions`` holds what its own functions of that kind compare.
    """

    imports: frozenset[str]
    checks: tuple[Demand, ...]
    calls: frozenset[str]
    functions: Mapping[str, tuple[Demand, ...]]


def read_module(text: str, name: str, *, is_package: bool, table: str = "") -> Module:
    """The module's part in an import; ``table`` is the text of the package's ``dependency_versions_table``.

    What stands in a function, or behind a condition on anything but the compared package, is left out.
    """
    tree = ast.parse(text)
    reader = _Reader(name if is_package else name.rpartition(".")[0])
    checks = list(reader.run(tree.body))
    if name.endswith(f".{_CHECK}"):
        checks += _listed(tree, table)
    functions = {
        each.name: tuple(_Reader(reader.package, reader).run(each.body))
        for each in tree.body
        if isinstance(each, ast.FunctionDef) and not each.args.args
    }
    return Module(frozenset(reader.imports), tuple(checks), frozenset(reader.calls), functions)


def clauses(requirement: str) -> Iterator[Demand]:
    """The clauses of a requirement."""
    try:
        parsed = Requirement(requirement)
    except InvalidRequirement:
        return
    for clause in parsed.specifier:
        yield Demand(canonicalize_name(parsed.name), str(clause))


def _listed(tree: ast.Module, table: str) -> Iterator[Demand]:
    """What transformers and diffusers check of their table of requirements when they are imported."""
    deps = _strings(table)
    for node in tree.body:
        target = node.targets[0] if isinstance(node, ast.Assign) else None
        if isinstance(node, ast.Assign) and isinstance(target, ast.Name) and target.id == _CHECKED:
            for package in set(_words(node.value)) - _SKIPPED_IF_OLD:
                yield from clauses(deps.get(package, package))


def _words(value: ast.expr) -> Sequence[str]:
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr == "split":
        value = value.func.value
    found = ast.literal_eval(value)
    return found.split() if isinstance(found, str) else found


def _strings(table: str) -> dict[str, str]:
    for node in ast.parse(table).body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Dict):
            found: dict[str, str] = ast.literal_eval(node.value)
            return found
    return {}


class _Reader:
    """Follows the statements that an import runs for certain."""

    def __init__(self, package: str, outer: _Reader | None = None) -> None:
        self.package = package
        self.imports: set[str] = set()
        self.calls: set[str] = set()
        self._modules: dict[str, str] = dict(outer._modules) if outer else {}
        self._names: dict[str, str] = dict(outer._names) if outer else {}
        self._values: dict[str, ast.expr] = dict(outer._values) if outer else {}

    def run(self, body: Sequence[ast.stmt], within: str = "") -> Iterator[Demand]:
        """The demands of some statements; ``within`` is the package whose presence is their only condition."""
        for node in body:
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                self._import(node)
            elif isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
                self._values[node.targets[0].id] = node.value
            elif isinstance(node, ast.Try):
                yield from self._try(node, within)
            elif isinstance(node, ast.If):
                yield from self._if(node, within)
            elif isinstance(node, ast.Assert) and isinstance(node.test, ast.Compare):
                yield from map(_negated, self._compared(node.test))
            elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
                yield from self._call(node.value)

    def _try(self, node: ast.Try, within: str) -> Iterator[Demand]:
        found = list(self.run(node.body, within))
        if all(isinstance(handler.body[-1], ast.Raise) for handler in node.handlers):
            yield from found
        elif all(map(_is_for_absent, node.handlers)):
            asked = {self._package(each) for each in ast.walk(node) if isinstance(each, ast.Call)} - {""}
            yield from (each for each in found if asked <= {each.package})

    def _if(self, node: ast.If, within: str) -> Iterator[Demand]:
        if "environ" in ast.dump(node.test) and node.orelse:
            yield from self.run(node.orelse, within)
        elif any(isinstance(each, ast.Raise) for each in node.body):
            yield from self._compared(node.test)
        elif package := _available(node.test):
            yield from (each for each in self.run(node.body, package) if each.package == package)

    def _import(self, node: ast.Import | ast.ImportFrom) -> None:
        if isinstance(node, ast.Import):
            for alias in node.names:
                self.imports.add(alias.name)
                self._modules[alias.asname or alias.name.partition(".")[0]] = alias.name
            return
        module = self._absolute(node)
        self.imports.add(module)
        for alias in node.names:
            self.imports.add(f"{module}.{alias.name}")
            self._names[alias.asname or alias.name] = f"{module}.{alias.name}"

    def _absolute(self, node: ast.ImportFrom) -> str:
        if not node.level:
            return node.module or ""
        above = self.package.split(".")
        parts = above[: len(above) - node.level + 1]
        return ".".join([*parts, *filter(None, [node.module])])

    def _call(self, call: ast.Call) -> Iterator[Demand]:
        name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        if name in REQUIRING and call.args:
            if isinstance(call.args[0], ast.Constant) and isinstance(call.args[0].value, str):
                yield from clauses(call.args[0].value)
        elif isinstance(call.func, ast.Name) and not call.args and not call.keywords:
            self.calls.add(self._names.get(name, f".{name}"))

    def _compared(self, test: ast.expr) -> Iterator[Demand]:
        """The demands of a condition under which the module raises: each part of an ``or`` raises by itself."""
        if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or):
            for part in test.values:
                yield from self._compared(part)
        elif isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            if isinstance(test.operand, ast.Compare):
                yield from map(_negated, self._compared(test.operand))
        elif isinstance(test, ast.Compare) and len(test.ops) == 1:
            yield from self._comparison(test.left, type(test.ops[0]), test.comparators[0])

    def _comparison(self, left: ast.expr, operator: type[ast.cmpop], right: ast.expr) -> Iterator[Demand]:
        if operator not in _UNLESS:
            return
        for one, other, op in ((left, right, operator), (right, left, _SWAPPED[operator])):
            package, bound = self._package(one), self._bound(other)
            whole = not _is_major(one) or op in (ast.Lt, ast.GtE)
            if package and bound and whole:
                yield Demand(package, _UNLESS[op] + bound)

    def _package(self, node: ast.expr, depth: int = 0) -> str:
        """The package whose version an expression is, if it is one."""
        if depth > 5:
            return ""
        if isinstance(node, ast.Name):
            source = self._names.get(node.id, "")
            if source.endswith(".__version__"):
                return _distribution(source)
            return self._package(self._values[node.id], depth + 1) if node.id in self._values else ""
        if isinstance(node, ast.Attribute):
            if node.attr == "__version__" and isinstance(node.value, ast.Name):
                return _distribution(self._modules.get(node.value.id, ""))
            return self._package(node.value, depth + 1) if node.attr == "major" else ""
        if isinstance(node, ast.Call) and len(node.args) == 1 and not node.keywords:
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name in _READING and isinstance(node.args[0], ast.Constant):
                return canonicalize_name(str(node.args[0].value))
            return self._package(node.args[0], depth + 1) if name in _PARSING else ""
        return ""

    def _bound(self, node: ast.expr, depth: int = 0) -> str:
        if isinstance(node, ast.Name) and node.id in self._values and depth < 5:
            return self._bound(self._values[node.id], depth + 1)
        if isinstance(node, ast.Call) and len(node.args) == 1:
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            return self._bound(node.args[0], depth + 1) if name in _PARSING else ""
        if not isinstance(node, ast.Constant) or isinstance(node.value, bool):
            return ""
        try:
            return str(Version(str(node.value)))
        except InvalidVersion:
            return ""


def _is_major(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "major"


def _negated(demand: Demand) -> Demand:
    end = 2 if demand.clause[1] == "=" else 1
    return Demand(demand.package, _NOT[demand.clause[:end]] + demand.clause[end:])


def _is_for_absent(handler: ast.ExceptHandler) -> bool:
    """Whether a handler looks for an absent package alone, and so lets a failed check end the import."""
    return handler.type is not None and ast.unparse(handler.type).endswith(_ABSENT)


def _available(test: ast.expr) -> str:
    """The package of ``is_torch_available()`` or ``_torch_available``."""
    name = ast.unparse(test).removesuffix("()").lstrip("_").removeprefix("is_")
    return canonicalize_name(name.removesuffix("_available")) if name.endswith("_available") else ""


def _distribution(module: str) -> str:
    top = module.partition(".")[0]
    return canonicalize_name(_DISTRIBUTIONS.get(top, top))
