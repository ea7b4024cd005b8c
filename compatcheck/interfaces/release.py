"""One release as its modules define it: what a name leads to, and how what it leads to can be called."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

from compatcheck.interfaces.signature import ANYTHING, BASE, FORWARDED, parse, problem
from compatcheck.interfaces.summary import DEFINED, FOREIGN, OF_PACKAGE, OPEN, Ask, Class, Module

_OF_EVERY_CLASS = frozenset({"mro", "name", "value", "register"})
"""What a class has by `type`, `Enum` or `ABCMeta`."""
_PLAIN = frozenset({"object", "ABC", "abc.ABC", "Generic", "typing.Generic", "Protocol", "typing.Protocol"})
_PLAIN_PATHS = frozenset({"abc.ABC", "typing.Generic", "typing.Protocol", "object"})


class Found(NamedTuple):
    """What a dotted name leads to.

    ``kind`` is ``module``, ``class``, ``function``, ``value`` (something whose text says no more), ``foreign`` (of
    another package, ``module`` is its dotted name), ``open`` (perhaps there) or ``missing``: then ``module`` is the
    last that is there and ``name`` what it lacks. ``rest`` is what is asked of the thing itself, such as a method.
    """

    kind: str
    module: str
    name: str = ""
    rest: tuple[str, ...] = ()


class Release:
    """The modules of one release by name; those of stubs have ``!`` behind their name.

    ``elsewhere`` are modules that other releases have as files: one that is no file here does not come from a
    `__getattr__`.
    """

    elsewhere: Collection[str] = ()

    def __init__(self, modules: Mapping[str, Module], elsewhere: Collection[str] = ()) -> None:
        self.elsewhere = elsewhere
        self.modules: Mapping[str, Module] = {n: module for n, module in modules.items() if not n.endswith("!")}
        self.stubs: Mapping[str, Module] = {n[:-1]: module for n, module in modules.items() if n.endswith("!")}
        self.names: Mapping[str, Mapping[str, int]] = resolved_names(_with_stubs(self.modules, self.stubs))
        self._children: dict[str, list[str]] = {}
        for name in self.modules:
            self._children.setdefault(name.rpartition(".")[0], []).append(name)

    def find(self, dotted: str) -> Found:
        """Follow a full dotted name from its top module."""
        parts = dotted.split(".")
        module = parts[0]
        if module not in self.names:
            return Found("missing", module)
        for at, part in enumerate(parts[1:], 1):
            deeper = f"{module}.{part}"
            if deeper in self.names:
                module = deeper
                continue
            found = self.named(module, part)
            return found._replace(rest=tuple(parts[at + 1 :]))
        return Found("module", module)

    def named(self, module: str, name: str, above: tuple[str, ...] = ()) -> Found:
        """What a name of a module leads to, through what modules take from each other."""
        if f"{module}.{name}" in self.names and module not in above:
            return Found("module", f"{module}.{name}")
        names = self.names.get(module)
        if names is None:
            return Found("missing", module)
        if name not in names:
            is_open = OPEN in names and f"{module}.{name}" not in self.elsewhere
            return Found("open" if is_open else "missing", module, name)
        read = self.modules.get(module)
        if read is None or module in above:
            return Found("value", module, name)
        for kind, listed in (("class", read.classes), ("function", read.functions)):
            if name in listed:
                return Found(kind, module, name) if name not in read.origins else Found("value", module, name)
        stub = self.stubs.get(module)
        if name in read.origins:
            origin, _, inside = read.origins[name].partition(":")
            if origin.partition(".")[0] != module.partition(".")[0]:
                return Found("foreign", f"{origin}.{inside}" if inside else origin)
            if not inside:
                return Found("module", origin)
            found = self.named(origin, inside, (*above, module))
            if found.kind in ("class", "function", "module", "foreign"):
                return found
            return self._of_stub(stub, module, name)
        for origin in read.taken:
            if name in self.names.get(origin, ()):
                return self.named(origin, name, (*above, module))
        if read.gathering or read.lazy:
            for child in self._children.get(module, ()):
                inner = self.modules[child]
                if name in inner.classes or name in inner.functions:
                    return self.named(child, name, (*above, module))
        return self._of_stub(stub, module, name)

    @staticmethod
    def _of_stub(stub: Module | None, module: str, name: str) -> Found:
        if stub and name in stub.classes:
            return Found("class", module, name)
        if stub and name in stub.functions:
            return Found("function", module, name)
        return Found("value", module, name)

    def class_(self, module: str, name: str) -> Class | None:
        """A class where it is defined, in code or in a stub."""
        for read in (self.modules.get(module), self.stubs.get(module)):
            if read and name in read.classes:
                return read.classes[name]
        return None

    def bases(self, module: str, name: str) -> Iterator[Found]:
        """The classes that a class is derived from; an unknown one is a value."""
        known = self.class_(module, name)
        for base in known.bases if known else ():
            if "." in base:
                top = base.partition(".")[0]
                yield self.find(base) if top == module.partition(".")[0] else Found("foreign", base)
            elif base in _PLAIN:
                continue
            else:
                yield self.named(module, base) if base in self.names.get(module, ()) else Found("value", module, base)

    def line(self, module: str, name: str, above: tuple[tuple[str, str], ...] = ()) -> Iterator[Found]:
        """A class and all that it is derived from, nearest first; what is foreign or unknown is not followed."""
        if (module, name) in above:
            return
        yield Found("class", module, name)
        for base in self.bases(module, name):
            if base.kind == "class":
                yield from self.line(base.module, base.name, (*above, (module, name)))
            else:
                yield base

    def method(self, module: str, name: str, method: str) -> tuple[str | None, Found | None]:
        """The signature of a method, or the foreign or unknown base that may have it; neither where it is missing."""
        for each in self.line(module, name):
            if each.kind != "class":
                return None, each
            known = self.class_(each.module, each.name)
            if known and method in known.methods:
                return known.methods[method], None
            if known and method in (*known.attributes, *known.properties):
                return ANYTHING, None
            if known and known.is_open:
                return ANYTHING, None
        return None, None

    def has_member(self, module: str, name: str, member: str) -> bool | None:
        """Whether a class, or what it is derived from, has a method or an attribute; None where that is not told."""
        if member.startswith("__") or member in _OF_EVERY_CLASS:
            return None
        for each in self.line(module, name):
            known = self.class_(each.module, each.name) if each.kind == "class" else None
            if known is None:
                return None
            if member in known.methods or member in known.attributes or member in known.properties:
                return True
            if known.fields and any(field.removesuffix("=") == member for field in known.fields):
                return True
            if known.is_open:
                return None
        return False

    def constructor(self, module: str, name: str, above: tuple[tuple[str, str], ...] = ()) -> str:
        """The signature of making an object of a class, less the object itself."""
        known = self.class_(module, name)
        if known is None or (module, name) in above or (known.is_open and "__getattr__" not in known.methods):
            return ANYTHING
        above = (*above, (module, name))
        if known.fields is not None and "__init__" not in known.methods:
            inherited = [self._inherited(base, above) for base in self.bases(module, name)]
            words = [word for text in inherited for word in text.split()]
            return _fields([*words, *known.fields])
        own = known.methods.get("__init__") or known.methods.get("__new__")
        if own is None:
            return next(filter(None, (self._inherited(base, above) for base in self.bases(module, name))), "")
        words = own.split()[1:] if own != ANYTHING else [ANYTHING]
        if FORWARDED in words:
            words.remove(FORWARDED)
            first = next(self.bases(module, name), None)
            words = _merged(words, ["**kwargs"] if first is None else self._inherited(first, above).split())
        return " ".join(words)

    def _inherited(self, base: Found, above: tuple[tuple[str, str], ...]) -> str:
        if base.kind == "class":
            return self.constructor(base.module, base.name, above)
        if base.kind == "foreign":
            return "" if base.module in _PLAIN_PATHS else f"{BASE}{base.module}"
        return ANYTHING

    def signature(self, found: Found) -> str | None:
        """How what a name leads to can be called, less the object; None where that is not told or it is missing."""
        if found.kind == "function" and not found.rest:
            for read in (self.modules.get(found.module), self.stubs.get(found.module)):
                if read and found.name in read.functions:
                    return read.functions[found.name]
        if found.kind == "class" and not found.rest:
            return self.constructor(found.module, found.name)
        if found.kind == "class" and len(found.rest) == 1:
            signature, _ = self.method(found.module, found.name, found.rest[0])
            if signature is None or signature == ANYTHING:
                return signature
            return _without_object(signature)
        return None

    def answer(self, ask: Ask) -> tuple[str, str] | None:
        """Why what is asked fails here, as a kind and the name it is about; None where it does not or is not told."""
        dotted = f"{ask.target}.{ask.name}" if ask.kind == "import" and ask.name else ask.target
        found = self.find(dotted)
        if found.kind == "missing" and not found.name.startswith("__"):
            kind = "import" if ask.kind == "import" else "attribute"
            return kind, f"{found.module}.{found.name}".rstrip(".")
        if ask.kind == "import" or found.kind not in ("class", "function"):
            return None
        if ask.kind in ("super", "method", "member"):
            return self._asked_of_class(ask, found)
        if found.rest:
            if found.kind == "class" and len(found.rest) == 1:
                there = self.has_member(found.module, found.name, found.rest[0])
                if there is False:
                    return "member", f"{found.name}.{found.rest[0]}"
            else:
                return None
        return self._called(ask, found) if ask.kind == "call" else None

    def _called(self, ask: Ask, found: Found) -> tuple[str, str] | None:
        signature = self.signature(found)
        if signature is None or BASE in signature:
            return None
        return problem(parse(signature), ask.places, ask.keywords)

    def _asked_of_class(self, ask: Ask, found: Found) -> tuple[str, str] | None:
        if found.kind != "class" or found.rest:
            return None
        if ask.name == "__init__":
            signature: str | None = self.constructor(found.module, found.name)
        else:
            if self.has_member(found.module, found.name, ask.name) is False:
                return "member", f"{found.name}.{ask.name}"
            if ask.kind == "member":
                return None
            signature = self.signature(found._replace(rest=(ask.name,)))
        if signature is None or BASE in signature:
            return None
        return problem(parse(signature), ask.places, ask.keywords)


def gives(release: Release, kind: str, target: str, name: str) -> bool | None:
    """Whether a release gives what a link asks of it; None where its text does not tell."""
    found = release.find(target)
    if kind in ("import", "attribute"):
        return None if found.kind in ("open", "foreign") else found.kind != "missing"
    if kind == "member":
        is_method = found.kind == "class" and len(found.rest) == 1
        return release.has_member(found.module, found.name, found.rest[0]) if is_method else None
    if kind != "keyword":
        return None
    signature = release.signature(found)
    if signature is None or BASE in signature:
        return None
    taken = parse(signature)
    return taken.takes_more or name in taken.keywords


def _without_object(signature: str) -> str:
    words = signature.split()
    return " ".join(words[1:]) if words else ""


def _fields(words: list[str]) -> str:
    """The fields of a dataclass and of those above it: one that is written again keeps its place."""
    placed: dict[str, str] = {}
    for word in words:
        placed[word.removesuffix("=")] = word
    return " ".join(placed.values())


def _merged(words: list[str], more: list[str]) -> list[str]:
    """Parameters, and those of the base class that are given by keyword through ``**``.

    None of these is required where the rest of the arguments by place may go to the base class as well.
    """
    names = {word.rstrip("=") for word in words if not word.startswith("*")}
    star = [] if any(word.startswith("*") for word in words) else ["*"]
    has_rest = any(word.startswith("*") and len(word) > 1 for word in words)
    taken = [word for word in more if not word.startswith("*") or word.startswith("**")]
    added = [word for word in taken if word.rstrip("=") not in names and word != "/"]
    return [*words, *star, *(f"{word}=" if has_rest and word.isidentifier() else word for word in added)]


def _with_stubs(modules: Mapping[str, Module], stubs: Mapping[str, Module]) -> dict[str, Module]:
    """The modules; one that may hold anything has the names of its stub as well.

    A stub is no full list: that of torch's compiled module lacks 44 of its names.
    """
    found = dict(modules)
    for name, stub in stubs.items():
        known = modules.get(name)
        if known is not None and OPEN in known.names:
            told = {each: own for each, own in stub.names.items() if own > FOREIGN and not each.startswith("_")}
            found[name] = known._replace(names={**told, **known.names})
    return found


def resolved_names(modules: Mapping[str, Module]) -> dict[str, dict[str, int]]:
    """The names of each module, with what it takes over from others of the package."""
    resolved = {name: dict(module.names) for name, module in modules.items()}
    real = {parent for name in modules for parent in (name, *_above(name))}
    for name in {each for module in modules.values() for each in module.elsewhere}:
        if "." not in name or name not in resolved:
            resolved.setdefault(name, {})[OPEN] = DEFINED
        for parent in _above(name):
            if parent not in real:  # an object that looks like a module, as torch.ops does
                resolved.setdefault(parent, {})[OPEN] = DEFINED
    for name in modules:
        _take_over(name, modules, resolved, ())
    for module in list(resolved):
        for below, parent in zip((module, *_above(module)), _above(module)):
            resolved.setdefault(parent, {}).setdefault(below.rpartition(".")[2], DEFINED)
    return resolved


def _above(module: str) -> Iterator[str]:
    parent = module.rpartition(".")[0]
    while parent:
        yield parent
        parent = parent.rpartition(".")[0]


def _take_over(
    module: str, found: Mapping[str, Module], resolved: dict[str, dict[str, int]], above: tuple[str, ...]
) -> None:
    """Add what ``from ... import *`` brings into a module, after it was brought into those that it takes from."""
    bound = found[module]
    beside = [each for each in found if each.rpartition(".")[0] == module] if bound.gathering else []
    for origin in dict.fromkeys((*bound.taken, *beside)):
        if origin not in found:
            resolved[module] |= {} if bound.lazy else {OPEN: DEFINED}
        elif origin not in (*above, module):
            _take_over(origin, found, resolved, (*above, module))
            offered = found[origin].offered
            least = DEFINED if bound.gathering else FOREIGN
            for name, own in resolved[origin].items():
                if name in offered if offered is not None else own >= least or found[origin].gathering:
                    resolved[module].setdefault(name, min(own, OF_PACKAGE))
            resolved[module] |= {name: OF_PACKAGE for name in offered or () if name not in resolved[module]}
