"""What one module defines and what it asks of other packages, read from its text.

Of what stands in conditions that nobody can tell beforehand, in a ``try`` that catches its failure, or in a function
inside a function, nothing is asked.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import NamedTuple

from compatcheck.files.python_syntax import Function, is_self, is_super, last_name, parse_code
from compatcheck.interfaces.availability import returned
from compatcheck.interfaces.conditions import FAILS, NEVER, OWN_MORE, UNTOLD, atoms_of, opposite
from compatcheck.interfaces.given_names import Bound, bound_in_loops, names_given
from compatcheck.interfaces.signature import ANYTHING, keeps, signature_of
from compatcheck.interfaces.summary import DEFINED, FOREIGN, OF_PACKAGE, OPEN, Ask, Class, Module, Own, SelfCall

_LAZY = re.compile(r"sys\.modules\[__name__\]|^__getattr__\b", re.M)
"""What a module has that gives names up by a table of texts; each of the texts counts as a name of it."""
_REPLACED = re.compile(r"^\s*sys\.modules\[__name__\] = _?LazyModule\(", re.M)
"""What puts an object in the place of the module, which has the names that it is given and no other."""
_SETS = re.compile(r"globals\(\)\.update|setattr\(\s*sys\.modules|sys\.modules\[__name__\]\.__dict__")
_STORES = re.compile(r"globals\(\)\s*\[[^\]]*\]\s*=[^=]")
_SETS_ON = re.compile(r"\bsetattr\(\s*(\w+)\s*,")
_DOTTED = re.compile(r"[\"'](\w+(?:\.\w+)+)[\"']")
_CATCHES = frozenset(
    {"ImportError", "ModuleNotFoundError", "Exception", "BaseException", "AttributeError", "TypeError"}
)
_DATACLASS = "dataclass"
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_FIELDS_OF = frozenset({"NamedTuple", "TypedDict"})


def read_module(source: str, module: str, is_package: bool) -> Module:
    """Read one module; what cannot be parsed may hold anything."""
    tree = parse_code.__wrapped__(source)
    if tree is None:
        return Module({OPEN: DEFINED})
    reader = _Reader(module, is_package, _future_annotations(tree))
    reader.constants = _constants(tree)
    reader.defined = {each.name for each in at_top(tree.body) if isinstance(each, _DEFINITIONS)}
    reader.block(tree.body, _Where("", (), None, reader.aliases))
    return _module(tree, source, module, is_package, reader)


def _module(tree: ast.Module, source: str, module: str, is_package: bool, reader: _Reader) -> Module:
    top, on_demand = module.partition(".")[0], "define_import_structure(" in source
    names: dict[str, int] = {}
    taken: list[str] = []
    assigned: set[str] = set()
    offered: tuple[str, ...] | None = None
    for node in at_top(tree.body):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            if node.name != "__getattr__" or isinstance(node, ast.ClassDef):
                names[node.name] = DEFINED
            elif (given := names_given(node, tree)) is not None:
                names = {**dict.fromkeys(given, OF_PACKAGE), **names}
            else:
                names[OPEN] = DEFINED
        elif isinstance(node, ast.Import):
            names |= {(each.asname or each.name.partition(".")[0]): FOREIGN for each in node.names}
        elif isinstance(node, ast.ImportFrom):
            origin = origin_of(node, module, is_package)
            own = origin.partition(".")[0] == top
            for each in node.names:
                if each.name != "*":
                    names.setdefault(each.asname or each.name, OF_PACKAGE if own else FOREIGN)
                elif own:
                    taken.append(origin)
                elif not on_demand:
                    names[OPEN] = DEFINED
        else:
            names |= dict.fromkeys(_stored(node), DEFINED)
            assigned.update(_stored(node))
            if isinstance(node, ast.Assign) and _stored(node) == ["__all__"] and source.count("__all__") == 1:
                offered = _plain(node.value)
    lazy = _LAZY.search(source) is not None
    if lazy:
        texts = {each.value for node in tree.body for each in ast.walk(node) if isinstance(each, ast.Constant)}
        listed = {text for text in texts if isinstance(text, str) and text.isidentifier()}
        if _REPLACED.search(source):
            listed_or_typed = listed.union(_for_type_checkers(tree.body))
            names = {name: own for name, own in names.items() if name in listed_or_typed or name == OPEN}
        names = {**dict.fromkeys(listed, OF_PACKAGE), **names}
    sets_own = module.rpartition(".")[2] in _SETS_ON.findall(source)
    bound = Bound(frozenset(), ()) if not _STORES.search(source) else bound_in_loops(tree, reader.module_of)
    if bound is not None:
        names = {**dict.fromkeys(bound.names, DEFINED), **names}
        taken += bound.modules
    if ((bound is None or _SETS.search(source)) and not on_demand) or sets_own:
        names[OPEN] = DEFINED
    aliases = (found for found in _DOTTED.findall(source) if found.partition(".")[0] == top)
    changed = (top for found in _SETS_ON.findall(source) if found == top)
    return Module(
        names,
        tuple(dict.fromkeys(taken)),
        offered,
        tuple(sorted({*aliases, *changed})),
        lazy,
        on_demand and "prefix=" not in source,
        reader.origins,
        reader.functions,
        reader.classes,
        tuple({each._replace(line=0): each for each in reversed(reader.asks)}.values())[::-1],
        tuple(dict.fromkeys(reader.loads)),
        tuple(dict.fromkeys(reader.calls)),
        tuple(dict.fromkeys(reader.self_calls)),
        {} if lazy else dict(_needs(reader.bound, assigned)),
        reader.tests,
    )


def _needs(bound: Mapping[str, set[tuple[str, ...]]], assigned: Set[str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Each name that is only ever bound behind the same questions for what is installed, whatever else they ask."""
    for name, conditions in bound.items():
        first = tuple(each for each in next(iter(conditions)) if each[0] != OWN_MORE)
        if len(conditions) == 1 and first and name not in assigned and all(each[0] == "+" for each in first):
            yield name, tuple(each[1:] for each in first)


def _for_type_checkers(body: Iterable[ast.stmt]) -> Iterable[str]:
    """The names that ``if TYPE_CHECKING`` imports."""
    for node in body:
        if isinstance(node, ast.If) and last_name(node.test) == "TYPE_CHECKING":
            for each in at_top(node.body):
                if isinstance(each, (ast.Import, ast.ImportFrom)):
                    yield from (alias.asname or alias.name.partition(".")[0] for alias in each.names)


def at_top(body: Iterable[ast.stmt]) -> Iterable[ast.stmt]:
    """The statements that bind names of the module: those of its top level, whatever guards them."""
    for node in body:
        if isinstance(node, (ast.If, ast.Try, ast.With, ast.For, ast.While)):
            yield node
            for part in ("body", "orelse", "finalbody"):
                yield from at_top(getattr(node, part, ()))
            for handler in getattr(node, "handlers", ()):
                yield from at_top(handler.body)
        else:
            yield node


def origin_of(node: ast.ImportFrom, module: str, is_package: bool) -> str:
    """The module that ``from ... import`` takes from, by its full name."""
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


def _future_annotations(tree: ast.Module) -> bool:
    return any(
        isinstance(node, ast.ImportFrom)
        and node.module == "__future__"
        and any(each.name == "annotations" for each in node.names)
        for node in tree.body[:6]
    )


def _constants(tree: ast.Module) -> dict[str, ast.expr]:
    found: dict[str, ast.expr] = {}
    twice: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
            twice |= {name} if name in found else set()
            found[name] = node.value
    return {name: value for name, value in found.items() if name not in twice}


class _Where(NamedTuple):
    """Where a statement stands: its scope, what must hold to reach it, the class around it and the imported names."""

    scope: str
    conditions: tuple[str, ...]
    owner: str | None
    aliases: dict[str, str]
    asks: bool = True

    def when(self, atoms: Sequence[str]) -> _Where:
        if UNTOLD in atoms or NEVER in atoms:
            return self._replace(asks=False)
        return self._replace(conditions=tuple(dict.fromkeys((*self.conditions, *atoms))))


class _Reader:
    """Follows the statements of a module and notes what they define and ask."""

    def __init__(self, module: str, is_package: bool, postponed: bool) -> None:
        self.module, self.is_package, self.postponed = module, is_package, postponed
        self.top = module.partition(".")[0]
        self.aliases: dict[str, str] = {}
        self.constants: dict[str, ast.expr] = {}
        self.defined: set[str] = set()
        self.bound_when: dict[str, tuple[str, ...]] = {}
        self.bound: dict[str, set[tuple[str, ...]]] = {}
        self.made: dict[str, str] = {}
        self.origins: dict[str, str] = {}
        self.functions: dict[str, str] = {}
        self.classes: dict[str, Class] = {}
        self.bases: dict[str, tuple[str, ...]] = {}
        self.asks: list[Ask] = []
        self.loads: list[Own] = []
        self.calls: list[Own] = []
        self.self_calls: list[SelfCall] = []
        self.tests: dict[str, tuple[str, ...]] = {}

    def block(self, body: Sequence[ast.stmt], where: _Where) -> None:
        for node in body:
            self.statement(node, where)
            if isinstance(node, ast.If) and not node.orelse and node.body:
                last = node.body[-1]
                _, against = self.sides(node.test, where)
                if isinstance(last, (ast.Return, ast.Continue, ast.Break)) and where.scope:
                    where = where.when(against)
                elif isinstance(last, ast.Raise):
                    where = where if UNTOLD in against or NEVER in against else where.when(against)

    def sides(self, test: ast.expr, where: _Where) -> tuple[Sequence[str], Sequence[str]]:
        """What holds where a test is true, and where it is false."""

        def own(function: ast.expr) -> str | None:
            dotted = self.dotted(function, where)
            return dotted if dotted and dotted.partition(".")[0] == self.top else None

        atoms = atoms_of(test, self.constants, own=own)
        return atoms, opposite(atoms)

    def statement(self, node: ast.stmt, where: _Where) -> None:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            self.imported(node, where)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            self.function(node, where)
        elif isinstance(node, ast.ClassDef):
            self.class_(node, where)
        elif isinstance(node, ast.If):
            self.expression(node.test, where)
            held, against = self.sides(node.test, where)
            self.block(node.body, where.when(held))
            self.block(node.orelse, where.when(against))
        elif isinstance(node, ast.Try):
            self.tried(node, where)
        elif isinstance(node, (ast.With, ast.AsyncWith)):
            names = [
                last_name(each.context_expr.func) for each in node.items if isinstance(each.context_expr, ast.Call)
            ]
            for item in node.items:
                self.expression(item.context_expr, where)
            self.block(node.body, where.when((UNTOLD,)) if "suppress" in names or "raises" in names else where)
        elif isinstance(node, (ast.For, ast.AsyncFor)):
            self.expression(node.iter, where)
            self.block(node.body, where)
        elif isinstance(node, ast.While):
            self.expression(node.test, where)
            self.block(node.body, where)
        elif isinstance(node, ast.Match):
            self.expression(node.subject, where)
            for case in node.cases:
                self.block(case.body, where.when((UNTOLD,)))
        elif isinstance(node, ast.Assign):
            self.expression(node.value, where)
            self.assigned(node, where)
        elif isinstance(node, ast.AnnAssign):
            if node.value is not None:
                self.expression(node.value, where)
            if not self.postponed and not where.scope:
                self.expression(node.annotation, where)
        elif isinstance(node, (ast.Expr, ast.Return, ast.AugAssign, ast.Raise, ast.Assert, ast.Delete)):
            for child in ast.iter_child_nodes(node):
                if isinstance(child, ast.expr):
                    self.expression(child, where)

    def tried(self, node: ast.Try, where: _Where) -> None:
        """What may be caught is not asked, unless all that is tried is a test: `if not is_x_available(): raise`."""
        passed = failed = where.when((UNTOLD,))
        first = node.body[0] if len(node.body) == 1 else None
        if isinstance(first, ast.If) and len(first.body) == 1 and isinstance(first.body[0], ast.Raise):
            atoms, against = self.sides(first.test, where)
            passed, failed = where.when(against), where.when(atoms)
        elif (target := self.only_import(node.body)) is not None:
            failed = where.when((f"{FAILS}{target}",))
        self.block(node.body, where.when((UNTOLD,)) if any(map(_forgives, node.handlers)) else where)
        for handler in node.handlers:
            self.block(handler.body, failed)
        self.block(node.orelse, passed)
        self.block(node.finalbody, where)

    def only_import(self, body: Sequence[ast.stmt]) -> str | None:
        """What a block imports from elsewhere, by its full name, where it does nothing else."""
        first = body[0] if len(body) == 1 else None
        if not isinstance(first, (ast.Import, ast.ImportFrom)) or len(first.names) != 1:
            return None
        name = first.names[0].name
        if isinstance(first, ast.Import):
            target = name
        else:
            target = f"{origin_of(first, self.module, self.is_package)}.{name}".removesuffix(".*")
        return target if target.partition(".")[0] not in (self.top, *sys.stdlib_module_names) else None

    def imported(self, node: ast.Import | ast.ImportFrom, where: _Where) -> None:
        if isinstance(node, ast.Import):
            for each in node.names:
                bound, target = (each.asname, each.name) if each.asname else (each.name.partition(".")[0],) * 2
                self.bind_at_top(bound, where)
                self.bind(bound, target, where)
                if not where.scope:
                    self.origins.setdefault(bound, target)
                self.ask_import(each.name, "", where, node.lineno)
            return
        origin = origin_of(node, self.module, self.is_package)
        for each in node.names:
            if each.name != "*":
                self.bind_at_top(each.asname or each.name, where)
                self.bind(each.asname or each.name, f"{origin}.{each.name}", where)
                if not where.scope:
                    self.origins.setdefault(each.asname or each.name, f"{origin}:{each.name}")
            self.ask_import(origin, "" if each.name == "*" else each.name, where, node.lineno)

    def bind(self, name: str, target: str, where: _Where) -> None:
        """Keep what a name leads to, and when; one that leads elsewhere as well is not followed."""
        known = where.aliases.get(name)
        if (not where.asks and known != target) or (where.conditions and known not in (None, target)):
            target = ""
        where.aliases[name] = target
        if not where.scope:
            self.bound_when[name] = where.conditions

    def bind_at_top(self, name: str, where: _Where) -> None:
        """Keep what must hold for a name of the module to be bound; nothing where nobody can tell."""
        if not where.scope and not where.owner:
            self.bound.setdefault(name, set()).add(where.conditions if where.asks else ())

    def as_bound(self, node: ast.expr, where: _Where) -> _Where:
        """Where what a name of the module leads to is there at all."""
        while isinstance(node, ast.Attribute):
            node = node.value
        return where.when(self.bound_when.get(node.id, ())) if isinstance(node, ast.Name) else where

    def ask_import(self, module: str, name: str, where: _Where, line: int) -> None:
        if not where.asks:
            return
        if module.partition(".")[0] == self.top:
            if any(each[0] == FAILS for each in where.conditions):
                return
            self.loads.append(Own(f"{module}:{name}" if name else module, where.scope, where.conditions))
        else:
            self.ask("import", module, name, 0, (), where, line)

    def ask(
        self, kind: str, target: str, name: str, places: int, keywords: tuple[str, ...], where: _Where, line: int
    ) -> None:
        if where.asks and target.partition(".")[0] not in sys.stdlib_module_names:
            self.asks.append(Ask(kind, target, name, places, keywords, where.scope, where.conditions, line))

    def function(self, node: Function, where: _Where) -> None:
        self.bind_at_top(node.name, where)
        for each in (*node.decorator_list, *node.args.defaults, *filter(None, node.args.kw_defaults)):
            self.expression(each, where)
        if not self.postponed and not where.scope:
            given = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
            for annotation in (*(each.annotation for each in given), node.returns):
                if annotation is not None:
                    self.expression(annotation, where)
        if where.scope:
            return
        name = f"{where.owner}.{node.name}" if where.owner else node.name
        if not where.owner and not _is_overload(node):
            signature = signature_of(node)
            same = self.functions.get(name, signature) == signature
            if atoms := returned(node, self.constants):
                self.tests[name] = atoms if same else ()
            self.functions[name] = signature if same else ANYTHING
        inner = _Where(name, (), where.owner, dict(where.aliases))
        self.block(node.body, inner)

    def class_(self, node: ast.ClassDef, where: _Where) -> None:
        self.bind_at_top(node.name, where)
        for each in (*node.decorator_list, *node.bases, *(each.value for each in node.keywords)):
            self.expression(each, where)
        if where.scope:
            return
        name = f"{where.owner}.{node.name}" if where.owner else node.name
        bases = (each.value if isinstance(each, ast.Subscript) else each for each in node.bases)
        self.bases[name] = tuple(filter(None, (self.dotted(each, where) or _text(each) for each in bases)))
        self.block(node.body, where._replace(owner=name))
        described = self.described(node, name)
        same = self.classes.get(name, described) == described
        self.classes[name] = described if same else described._replace(is_open=True)

    def described(self, node: ast.ClassDef, name: str) -> Class:
        methods: dict[str, str] = {}
        attributes: dict[str, None] = {}
        properties: dict[str, None] = {}
        for item in at_top(node.body):
            if isinstance(item, (ast.FunctionDef, ast.AsyncFunctionDef)):
                words = {last_name(each) for each in item.decorator_list if not isinstance(each, ast.Call)}
                if words & {"property", "cached_property", "setter"}:
                    properties[item.name] = None
                elif not _is_overload(item):
                    static = "staticmethod" in words
                    signature = (". " if static else "") + signature_of(item)
                    methods[item.name] = signature if methods.get(item.name, signature) == signature else ANYTHING
                for each in ast.walk(item):
                    if isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Store) and is_self(each.value):
                        attributes[each.attr] = None
            elif isinstance(item, ast.ClassDef):
                attributes[item.name] = None
            elif not isinstance(item, (ast.If, ast.Try, ast.For, ast.While, ast.With)):
                attributes |= dict.fromkeys(_stored(item))
        decorators = {last_name(each.func if isinstance(each, ast.Call) else each) for each in node.decorator_list}
        is_data = _DATACLASS in decorators or any(base.rpartition(".")[2] in _FIELDS_OF for base in self.bases[name])
        fields = tuple(_fields(node)) if is_data else None
        is_open = bool(node.keywords) or not all(each == _DATACLASS or keeps(each or "") for each in decorators)
        return Class(
            self.bases[name],
            methods,
            tuple(attributes),
            tuple(properties),
            fields,
            is_open or "__getattr__" in methods,
        )

    def assigned(self, node: ast.Assign, where: _Where) -> None:
        """Keep which class made what a name or an attribute of the object holds, and names of foreign things."""
        made = self.maker(node.value, where)
        for target in node.targets:
            key = _key(target, where.owner)
            if key is None:
                continue
            if made:
                self.made[key if key.startswith(".") else f"{where.scope}:{key}"] = made
            else:
                self.made.pop(f"{where.scope}:{key}", None)
            if isinstance(target, ast.Name):
                dotted = self.dotted(node.value, where) if isinstance(node.value, ast.Attribute) else None
                if dotted and dotted.partition(".")[0] != self.top:
                    self.bind(target.id, dotted, self.as_bound(node.value, where))
                elif where.scope or target.id in where.aliases:
                    where.aliases[target.id] = ""

    def maker(self, value: ast.expr, where: _Where) -> str | None:
        if not isinstance(value, ast.Call):
            return None
        dotted = self.dotted(value.func, where)
        if not dotted or dotted.partition(".")[0] == self.top:
            return None
        parts = dotted.split(".")
        if parts[-1] == "from_pretrained" and not parts[-2].startswith("Auto"):
            parts.pop()
        return ".".join(parts) if parts[-1][:1].isupper() else None

    def expression(self, node: ast.expr, where: _Where) -> None:
        if isinstance(node, ast.Call):
            self.called(node, where)
        elif isinstance(node, ast.Attribute):
            dotted = self.dotted(node, where)
            if dotted is None:
                key = _key(node.value, where.owner)
                made = key and self.made.get(key if key.startswith(".") else f"{where.scope}:{key}")
                if made and where.asks:
                    self.ask("member", made, node.attr, 0, (), where, node.lineno)
                else:
                    self.expression(node.value, where)
            elif dotted.partition(".")[0] != self.top and where.asks:
                self.ask("attribute", dotted, "", 0, (), self.as_bound(node, where), node.lineno)
        elif isinstance(node, ast.Lambda):
            return
        elif isinstance(node, ast.IfExp):
            held, against = self.sides(node.test, where)
            self.expression(node.test, where)
            self.expression(node.body, where.when(held))
            self.expression(node.orelse, where.when(against))
        elif isinstance(node, ast.BoolOp):
            for each in node.values:
                self.expression(each, where)
                held, against = self.sides(each, where)
                where = where.when(held if isinstance(node.op, ast.And) else against)
        elif isinstance(node, (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)):
            self.expression(node.generators[0].iter, where)
        else:
            for child in ast.iter_child_nodes(node):
                if isinstance(child, ast.expr):
                    self.expression(child, where)
                elif isinstance(child, ast.keyword):
                    self.expression(child.value, where)

    def called(self, node: ast.Call, where: _Where) -> None:
        for each in node.args:
            self.expression(each.value if isinstance(each, ast.Starred) else each, where)
        for keyword in node.keywords:
            self.expression(keyword.value, where)
        starred = any(isinstance(each, ast.Starred) for each in node.args) or any(
            not each.arg for each in node.keywords
        )
        places = -1 - len(node.args) if starred else len(node.args)
        if starred and any(isinstance(each, ast.Starred) for each in node.args):
            places = -1
        keywords = tuple(sorted(each.arg for each in node.keywords if each.arg))
        function = node.func
        imported = self.imported_by_call(node)
        if imported:
            self.ask_import(imported, "", where, node.lineno)
            return
        dotted = self.dotted(function, where)
        if dotted and dotted.partition(".")[0] != self.top:
            if where.asks:
                self.ask("call", dotted, "", places, keywords, self.as_bound(function, where), node.lineno)
            return
        if isinstance(function, ast.Attribute):
            self.method_called(node, function, places, keywords, where)
        if dotted and where.asks and not any(each[0] == FAILS for each in where.conditions):
            self.calls.append(Own(dotted, where.scope, where.conditions))

    @staticmethod
    def imported_by_call(node: ast.Call) -> str | None:
        """The module that ``__import__("...")`` or ``importlib.import_module("...")`` imports."""
        first = node.args[0] if len(node.args) == 1 and not node.keywords else None
        text = first.value if isinstance(first, ast.Constant) else None
        is_import = ast.unparse(node.func) in ("__import__", "importlib.import_module") if text else False
        return text if is_import and isinstance(text, str) and not text.startswith(".") else None

    def method_called(
        self, node: ast.Call, function: ast.Attribute, places: int, keywords: tuple[str, ...], where: _Where
    ) -> None:
        name = function.attr
        if is_super(function.value) and where.owner:
            if where.asks:
                for base in self.bases.get(where.owner, ()):
                    if "." in base:
                        self.ask("super", base, name, places, keywords, where, node.lineno)
                self.calls.append(Own(f"super.{where.owner}.{name}", where.scope, where.conditions))
            return
        if is_self(function.value) and where.owner:
            told = where.conditions if where.asks else (UNTOLD,)
            self.self_calls.append(SelfCall(where.owner, name, places, keywords, where.scope, told))
            if where.asks:
                self.calls.append(Own(f"self.{where.owner}.{name}", where.scope, where.conditions))
            return
        key = _key(function.value, where.owner)
        made = key and self.made.get(key if key.startswith(".") else f"{where.scope}:{key}")
        if made and where.asks:
            self.ask("method", made, name, places, keywords, where, node.lineno)
        else:
            self.expression(function.value, where)

    def module_of(self, node: ast.expr) -> str | None:
        """The module of the package itself that an expression at the top level leads to."""
        dotted = self.dotted(node, _Where("", (), None, self.aliases))
        return dotted if dotted and dotted.partition(".")[0] == self.top else None

    def dotted(self, node: ast.expr, where: _Where) -> str | None:
        """The full name of what an imported name leads to; None for anything else."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return None
        if node.id in where.aliases:
            target = where.aliases[node.id]
            return ".".join([target, *reversed(parts)]) if target else None
        if not parts and node.id in self.defined:
            return f"{self.module}.{node.id}"
        return None


def _key(node: ast.expr, owner: str | None) -> str | None:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and is_self(node.value) and owner:
        return f".{owner}.{node.attr}"
    return None


def _text(node: ast.expr) -> str:
    return ast.unparse(node) if isinstance(node, (ast.Name, ast.Attribute)) else last_name(node) or ""


def _is_overload(node: Function) -> bool:
    return any(last_name(each) == "overload" for each in node.decorator_list)


def _forgives(handler: ast.ExceptHandler) -> bool:
    """Whether a handler goes on after a name that is not there, instead of raising again."""
    kinds = [last_name(each) for each in getattr(handler.type, "elts", [handler.type]) if each is not None]
    return (handler.type is None or bool(_CATCHES.intersection(filter(None, kinds)))) and not any(
        isinstance(each, ast.Raise) for each in handler.body[-1:]
    )


def _fields(node: ast.ClassDef) -> Iterable[str]:
    """The fields of a dataclass in order, those with a default marked by ``=``; those that no caller gives left out."""
    for item in node.body:
        if not (isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name)):
            continue
        if "ClassVar" in ast.unparse(item.annotation):
            continue
        value = item.value
        if isinstance(value, ast.Call) and last_name(value.func) == "field":
            given = {each.arg: each.value for each in value.keywords}
            init = given.get("init")
            if isinstance(init, ast.Constant) and init.value is False:
                continue
            has_default = "default" in given or "default_factory" in given
        else:
            has_default = value is not None
        yield f"{item.target.id}=" if has_default else item.target.id


__all__ = ["ANYTHING", "Ask", "Class", "Module", "Own", "SelfCall", "read_module"]
