"""The modules of the simulated run: which one a name leads to, and whether it holds what is asked of it."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Callable, Mapping

from compatcheck.import_check import _compiled, _lazy, _source
from compatcheck.import_check._finder import Finder, Found, is_stdlib
from compatcheck.import_check._state import Program, State
from compatcheck.import_check._values import (
    UNKNOWN,
    Array,
    Frame,
    Function,
    Missing,
    Module,
    Namespace,
    Raised,
    Table,
    Undecided,
    Value,
    is_exception,
)

_OPAQUE = frozenset({"sympy", "mpmath", "networkx", "triton", "IPython", "matplotlib", "tensorflow", "jax", "six"})
_CREATES_MODULES = re.compile(r"meta_path|sys\.modules\[(?!__name__\])")
_CHANGES_SEARCH_PATH = re.compile(r"\bsys\.path(?:\.(?:insert|append|extend)\b|\[| *\+?=[^=])")
_CHANGES_PATH = re.compile(r"^__path__|\b__path__ *(?:\+?=|\.)", re.MULTILINE)
_GLOBAL_STATEMENT = re.compile(r"^[ \t]+global[ \t]+([\w, \t]+)", re.MULTILINE)
_DYNAMIC = re.compile(
    r"(?:globals|vars|locals)\(\)(?!\[[\"'])|\bexec\(|setattr\(sys\.modules|\bmod(?:ule)?\.__dict__[\[.]"
)
_DYNAMIC_WORDS = ("globals()", "vars()", "locals()", "exec(", "setattr(sys.modules", "mod.__dict__", "module.__dict__")


class Modules:
    """The modules of one simulated interpreter; ``natives`` are the members of some whose meaning is known."""

    def __init__(
        self,
        finder: Finder,
        natives: Mapping[tuple[str, str], Value],
        state: State,
        program: Program,
        on_module: Callable[[str], None] | None = None,
    ) -> None:
        self.finder = finder
        self.state = state
        self.loaded: dict[str, Module] = {}
        self._natives = natives
        self._native_modules = {module for module, _ in natives if module.startswith(("importlib.", "os."))}
        self._program = program
        self._on_module = on_module
        self._makers: list[tuple[str, str]] = []
        self._path_editors: set[str] = set()
        self._carried: dict[str, set[str]] = {}

    def unknown(self) -> Value:
        return self.state.unknown()

    def call(self, function: Value, arguments: list[Value], keywords: dict[str, Value]) -> Value:
        return self._program.call(function, arguments, keywords)

    def load(self, name: str) -> Value:
        """Import a dotted name, its parents first; the module itself, or `UNKNOWN`."""
        module: Module | None = None
        dotted = ""
        for last in name.split("."):
            dotted = f"{dotted}.{last}" if dotted else last
            module = self._load_one(dotted, last, module)
            if module is None:
                return UNKNOWN
        return module

    def exists(self, name: str) -> bool | None:
        """What ``importlib.util.find_spec`` would find; its parents are imported for that."""
        if name in self.loaded:
            return True
        parent, _, last = name.rpartition(".")
        if not parent:
            return (
                True
                if is_stdlib(last) or self.finder.find(last)
                else (None if self._may_be_created(last, None) else False)
            )
        holder = self.load(parent)
        if not isinstance(holder, Module) or holder.open:
            return None
        found = holder.folders and self.finder.find(last, holder.folders)
        return True if found else (None if self._may_be_created(last, holder) else False)

    def _load_one(self, dotted: str, last: str, parent: Module | None) -> Module | None:
        """Import a module below one that is loaded; None where it is not known what that gives."""
        loaded = self.loaded.get(dotted)
        if loaded is not None and loaded.error is not None:
            raise loaded.error.again()
        if loaded is not None:
            return loaded
        if parent is None:
            found = None if is_stdlib(last) or last in _OPAQUE else self.finder.find(last)
            if is_stdlib(last) or (last in _OPAQUE and self.finder.find(last)):
                return self._add(Module(dotted, open_=True))
        else:
            if not parent.folders and parent.open:
                parent.names[last] = made = self._add(Module(dotted, open_=True))
                return made
            found = self.finder.find(last, parent.folders) if parent.folders else None
        if found is None:
            if self._may_be_created(last, parent):
                self.unknown()
                return None
            raise Raised(ModuleNotFoundError, Missing(dotted, None))
        module = self._run_found(dotted, found)
        if parent is not None and last not in parent.names:
            parent.names[last] = module
        return module

    def _add(self, module: Module) -> Module:
        self.loaded[module.name] = module
        return module

    def _run_found(self, dotted: str, found: Found) -> Module:
        module = self._add(Module(dotted, found.file, found.folders))
        if found.kind == "compiled":
            self.state.unknown()
            module.open = module.compiled_itself = True
            return module
        if found.kind == "namespace" or found.file is None:
            return module
        source = _source.read(found.file)
        tree = _source.parse(source)
        if tree is None:
            module.open = True
            return module
        if self._on_module:
            self._on_module(dotted)
        if ("meta_path" in source or "sys.modules[" in source) and _CREATES_MODULES.search(source):
            self._makers.append((dotted.partition(".")[0], source))
        if "sys.path" in source and _CHANGES_SEARCH_PATH.search(source):
            self._path_editors.add(dotted.partition(".")[0])
        module.makes_path = "__path__" in source and _CHANGES_PATH.search(source) is not None
        if " global " in source:
            module.late = frozenset(n.strip() for each in _GLOBAL_STATEMENT.findall(source) for n in each.split(","))
        module.open = _is_dynamic(source)
        del source
        package = dotted if found.kind == "package" else dotted.rpartition(".")[0]
        module.names.update(
            __name__=dotted,
            __file__=found.file,
            __package__=package,
            __spec__=UNKNOWN,
            __doc__=UNKNOWN,
            __loader__=UNKNOWN,
        )
        if found.kind == "package":
            module.names["__path__"] = UNKNOWN
        self._run(module, tree)
        return self.loaded.get(dotted, module)

    def _run(self, module: Module, tree: ast.Module) -> None:
        """Run a module as a whole: what it does is certain of itself, however unsure it is that it is imported."""
        state = self.state
        doubt, import_doubt, shaky, state.shaky = state.doubt, state.import_doubt, state.shaky, 0
        module.state = "running"
        undecided = False
        try:
            self._program.run_module(module, tree)
        except Raised as error:
            module.error, module.state = error, "failed"
            for borrower in module.borrowers:
                self.loaded.pop(borrower, None)
            raise error.again() from None
        except (Undecided, RecursionError):
            module.open = undecided = True
        finally:
            state.shaky, state.doubt, state.import_doubt = shaky, doubt, import_doubt
        if undecided:
            state.unknown()
        module.state = "done"

    def _may_be_created(self, last: str, parent: Module | None) -> bool:
        """Whether a module that no file holds may be put in place by code: start-up hooks, ``sys.modules``, finders."""
        if parent is None and (
            self.finder.may_be_hooked(last) or any(self._has_loose_module(p, last) for p in self._path_editors)
        ):
            return True
        if isinstance(parent, Module) and parent.state == "done" and parent.open and not parent.folders:
            return True
        if isinstance(parent, Module) and parent.makes_path:
            return True
        if parent is None:
            pattern, root = rf"sys\.modules\[[^\]]*\b{re.escape(last)}\b", None
        else:
            root = parent.name.partition(".")[0]
            pattern = rf"[\"'](?:[\w.]*\.)?{re.escape(last)}[\"']"
        return any(re.search(pattern, source) for top, source in self._makers if root in (None, top))

    def _has_loose_module(self, package: str, last: str) -> bool:
        """Whether a package that changes the search path has the module in a folder that is no part of the package."""
        if package not in self._carried:
            module = self.loaded.get(package)
            self._carried[package] = {
                entry.removesuffix(".py")
                for top in (module.folders if module else ())
                for _, folders, files in os.walk(top)
                if "__init__.py" not in files
                for entry in (*folders, *files)
            }
        return last in self._carried[package]

    def member(self, module: Module, name: str, importing: bool) -> Value:
        """A name of a module, as ``from module import name`` or as ``module.name``; raises `Raised` if missing."""
        if name == "__version__" and "." not in module.name and not isinstance(module.names.get(name), str):
            provider = self.finder.provider(module.name)
            return (self.finder.versions.get(provider) if provider else None) or self.unknown()
        if (module.name, name) in self._natives:
            return self._natives[module.name, name]
        if f"{module.name}.{name}" in self._native_modules:
            return self.load(f"{module.name}.{name}")
        if module.lazy is not None:
            served = _lazy.member(self, module, module.lazy, name)
            if served is not None:
                return served[0]
        if name in module.names:
            return module.names[name]
        served = self._serve(module, name)
        if served is not None:
            return served[0]
        if module.folders and self.finder.find(name, module.folders):
            return self.load(f"{module.name}.{name}") if importing else self.unknown()
        if self._may_hold(module, name):
            return self.unknown()
        raise Raised(ImportError if importing else AttributeError, Missing(module.name, name))

    def _may_hold(self, module: Module, name: str) -> bool:
        if module.open or module.state == "running" or name in module.late or name.startswith("__"):
            return True
        dotted = f"{module.name}.{name}"
        if dotted in self.loaded or self._may_be_created(name, module):
            return True
        return any(_compiled.may_define(self.loaded.get(each), module, name) for each in module.compiled)

    def _serve(self, module: Module, name: str) -> tuple[Value] | None:
        """What the module's own ``__getattr__`` gives; None where it says that there is no such name."""
        if "__getattr__" not in module.names or name.startswith("__"):
            return None
        server = module.names["__getattr__"]
        if not isinstance(server, Function):
            return (self.unknown(),)
        try:
            return (self.call(server, [name], {}),)
        except Raised as error:
            if is_exception(error.kind, AttributeError) is True and error.missing is None:
                return None
            raise
        except Undecided:
            return (self.unknown(),)

    def import_star(self, module: Value, frame: Frame) -> None:
        """``from module import *``."""
        if not isinstance(module, Module):
            self.open_up(frame.module)
            return
        declared = module.names.get("__all__")
        items = getattr(declared, "items", declared)
        listed = [item for item in items if isinstance(item, str)] if isinstance(items, (list, tuple)) else []
        whole = isinstance(items, (list, tuple)) and getattr(declared, "exact", True)
        for name in listed if declared is not None else [name for name in module.names if name[0] != "_"]:
            frame.names[name] = self.member(module, name, importing=True)
        if declared is not None and not whole:
            for name in [name for name in module.names if name[:2] != "__"]:
                frame.names.setdefault(name, UNKNOWN)
        if module.compiled_itself:
            frame.module.compiled.add(module.name)
        elif module.open or module.state == "running" or module.lazy is not None:
            frame.module.open = True
        frame.module.compiled |= module.compiled

    def open_up(self, module: Module) -> None:
        """The module may now hold names that nobody can list."""
        extension = f"{module.name}._C"
        if extension in self.loaded:
            module.compiled.add(extension)
        else:
            module.open = True

    def leak(self, values: list[Value]) -> Value:
        """What an unknown function gives; it may have changed whatever it was handed."""
        for value in values:
            if isinstance(value, (Array, Table)):
                value.exact = False
            elif isinstance(value, Namespace):
                self.open_up(value.module)
            elif isinstance(value, Module) and value.state == "running":
                self.open_up(value)
        return self.unknown()


def _is_dynamic(source: str) -> bool:
    """Whether a function in the module may add names to it when it is called; what runs at import is followed."""
    if not any(word in source for word in _DYNAMIC_WORDS):
        return False
    for match in _DYNAMIC.finditer(source):
        start = source.rfind("\n", 0, match.start()) + 1
        if source[start] in " \t":
            return True
    return False
