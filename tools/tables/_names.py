"""Which names the modules of releases hold that other releases do not.

A module holds what is bound at its top level in some branch, so a name that a release is said to lack is bound there
nowhere. A module that can give names up without binding them, by a function ``__getattr__``, by ``setattr`` or
``globals()``, by what it takes over from compiled code or from another package whole, may hold anything: of it no name
is said to be missing. So may a module that is no file and whose name stands as a text in the package: an alias.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set

from packaging.version import Version

from compatcheck.interfaces.summary import DEFINED, FOREIGN, OF_PACKAGE, OPEN

_ITSELF, _PERHAPS = ".", "?"
NEAR = 3
"""So many parts has the name of a module that users import from, of most packages."""
_MANY = 60
"""A folder with more modules than these holds one for each model, or operator, of hundreds."""

_ALIASED = ("_fast", "tokenization_utils")
"""Modules that transformers 5.4 and newer has under these names too, without a file for each."""
_STANDS_FOR = "TokenizerFast"
"""The end of names that transformers 5 gives up for what has the rest of the name."""
_ASIDE = re.compile(r"tests?|dummy_\w+|convert_\w+|modular_\w+|benchmarks?|examples|cli|\w*version\w*")
"""Modules that nobody's code imports from."""


class Names:
    """Of one package the releases that were read, and for each module and name those that have it."""

    def __init__(self) -> None:
        self.releases: list[str] = []
        self._modules: dict[str, list[int]] = {}
        self._open: dict[str, set[int]] = {}
        self._unread: dict[str, set[int]] = {}
        self._names: dict[tuple[str, str], list[int]] = {}
        self._origin: dict[tuple[str, str], int] = {}

    @classmethod
    def over(cls, releases: Sequence[str]) -> Names:
        """Of releases alone, to spell runs of them."""
        names = cls()
        names.releases = list(releases)
        return names

    def add(self, version: Version, found: Mapping[str, Mapping[str, int]]) -> None:
        at = len(self.releases)
        self.releases.append(str(version))
        for module, names in found.items():
            self._modules.setdefault(module, []).append(at)
            if OPEN in names:
                self._open.setdefault(module, set()).add(at)
            if list(names) == [OPEN]:
                self._unread.setdefault(module, set()).add(at)
            for name, origin in names.items():
                self._names.setdefault((module, name), []).append(at)
                self._origin[module, name] = max(origin, self._origin.get((module, name), FOREIGN))

    def runs(self, at: Sequence[int]) -> str:
        """The runs of releases at these places."""
        return self._runs(at)

    def modules(self) -> Iterable[str]:
        return self._modules

    def has(self, module: str, name: str) -> bool:
        """Whether any release has the name there."""
        return (module, name) in self._names

    def told(self, near: int = NEAR) -> Iterator[tuple[str, str, str]]:
        """Module, name and the runs of releases that have it, of what some release lacks for certain.

        A name that came and stayed is told where users import it from: of packages and of modules that define it, whose
        own names have at most ``near`` parts. One that went is told wherever it was defined, since code of its day
        imports it from there.
        """
        newest = len(self.releases) - 1
        children = Counter(module.rpartition(".")[0] for module in self._modules)
        wide = {module for module, count in children.items() if "." in module and count > _MANY}
        packages = {module.rpartition(".")[0] for module in self._modules}
        for module, found in sorted(self._modules.items()):
            parent, _, last = module.rpartition(".")
            above, at = self._modules.get(parent), sorted({*found, *self._names.get((parent, last), ())})
            unread = self._unread.get(module, set())
            if not is_aside(module) and len(at) <= newest and at != above and not unread.issuperset(at):
                yield module, _ITSELF, self._told(at, unread)
        for (module, name), at in sorted(self._names.items()):
            if is_aside(module) or name == OPEN or name.endswith(_STANDS_FOR) or f"{module}.{name}" in self._modules:
                continue
            may = self._open.get(module, set()).difference(at)
            deep, went = _is_deep(module, near, wide), max((*at, *may)) < newest
            taken_from = module in packages or went
            wanted = OF_PACKAGE if taken_from and not deep else DEFINED
            if len(at) + len(may) == len(self._modules[module]) or self._origin[module, name] < wanted:
                continue
            is_private = name.startswith("_") and (near <= NEAR or self._origin[module, name] < DEFINED)
            if went or not (deep or is_private):
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


def is_aside(module: str) -> bool:
    """Whether nobody's code imports from a module, or it can be imported by a name that no file has."""
    parts = module.split(".")
    return any(map(_ASIDE.fullmatch, parts)) or (len(parts) > 1 and module.endswith(_ALIASED))


def _is_deep(module: str, near: int, wide: Set[str]) -> bool:
    """Whether a module is below a private one or a ``wide`` folder, or farther down than ``near``."""
    parts = module.split(".")
    above = {".".join(parts[:end]) for end in range(2, len(parts))}
    return len(parts) > near or any(part.startswith("_") for part in parts) or not wide.isdisjoint(above)


def rows(names: Names, near: int = NEAR) -> dict[str, dict[str, str]]:
    """The names by module and by the runs of releases that have them; ``near`` is that of `Names.told`."""
    found: dict[str, dict[str, list[str]]] = {}
    for module, name, runs in names.told(near):
        found.setdefault(module, {}).setdefault(runs, []).append(name)
    return {module: {runs: " ".join(each) for runs, each in by.items()} for module, by in sorted(found.items())}
