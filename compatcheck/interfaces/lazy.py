"""A release of which only the modules are read that a question leads to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from compatcheck.interfaces.release import Found, Release
from compatcheck.interfaces.summary import DEFINED, FOREIGN, OF_PACKAGE, OPEN, Module

_MOST_TAKEN = 40
"""A module that takes over every name of more modules than these is wide: they are not all read for it."""
_WIDE = "**"


class LazyRelease(Release):
    """As `Release`; ``modules`` and ``stubs`` read a module when it is asked for, and know their keys before.

    Of a module that takes over the names of very many others, ``is_written`` tells whether any text of the release
    may define a name; one that some text does is open.
    """

    def __init__(
        self, modules: Mapping[str, Module], stubs: Mapping[str, Module], is_written: Callable[[str], bool]
    ) -> None:
        self.modules, self.stubs, self._is_written = modules, stubs, is_written
        self._children = {}
        for name in modules:
            self._children.setdefault(name.rpartition(".")[0], []).append(name)
        self.names = _Names(modules, self._children)

    def named(self, module: str, name: str, above: tuple[str, ...] = ()) -> Found:
        """As `Release.named`."""
        found = super().named(module, name, above)
        is_wide = found.kind == "missing" and _WIDE in self.names.get(found.module, ())
        return found._replace(kind="open") if is_wide and self._is_written(found.name) else found


class _Names(Mapping[str, dict[str, int]]):
    """The names of each module, with what it takes over from others of the package."""

    def __init__(self, modules: Mapping[str, Module], children: Mapping[str, list[str]]) -> None:
        self._modules, self._children = modules, children
        self._packages: dict[str, set[str]] = {}
        for module in modules:
            parent, _, name = module.rpartition(".")
            while parent:
                self._packages.setdefault(parent, set()).add(name)
                parent, _, name = parent.rpartition(".")
        self._resolved: dict[str, dict[str, int]] = {}

    def __contains__(self, module: object) -> bool:
        return module in self._modules or module in self._packages

    def __iter__(self) -> Iterator[str]:
        yield from dict.fromkeys((*self._modules, *self._packages))

    def __len__(self) -> int:
        return len(self._modules.keys() | self._packages.keys())

    def __getitem__(self, module: str) -> dict[str, int]:
        if module not in self:
            raise KeyError(module)
        if module not in self._resolved:
            self._resolved[module] = self._names(module, ())
        return self._resolved[module]

    def _names(self, module: str, above: tuple[str, ...]) -> dict[str, int]:
        beside = dict.fromkeys(self._packages.get(module, ()), DEFINED)
        if module not in self._modules:
            return beside
        bound = self._modules[module]
        names = {**beside, **bound.names}
        origins = dict.fromkeys((*bound.taken, *(self._children.get(module, ()) if bound.gathering else ())))
        if len(origins) > _MOST_TAKEN:
            return {**names, _WIDE: DEFINED}
        for origin in origins:
            if origin not in self._modules:
                names |= {} if bound.lazy else {OPEN: DEFINED}
            elif origin not in (*above, module):
                names = {**self._taken(origin, bound, (*above, module)), **names}
        return names

    def _taken(self, origin: str, bound: Module, above: tuple[str, ...]) -> dict[str, int]:
        """What a module takes over from another with ``from ... import *``, or as it gathers what is beside it."""
        read = self._modules[origin]
        least = DEFINED if bound.gathering else FOREIGN
        offered = read.offered
        names = {
            name: min(own, OF_PACKAGE)
            for name, own in self._names(origin, above).items()
            if name in (OPEN, _WIDE) or (name in offered if offered is not None else own >= least or read.gathering)
        }
        return {**dict.fromkeys(offered or (), OF_PACKAGE), **names}
