"""What the releases of a package define, by the tables that were read from all of them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from packaging.version import Version

from compatcheck.files.keyed_rows import KeyedRows
from compatcheck.interfaces.signature import ANYTHING, BASE, Parameters, parse, problem
from compatcheck.interfaces.summary import Ask
from compatcheck.packages.versions import contains, parse_range, parse_version

Table = Callable[[str], Mapping[str, Any]]
"""Gives a table of the matrix by its name; ``interfaces/<package>`` and ``links/<package>`` are those of a package."""

ITSELF, _PERHAPS = ".", "?"
"""The row of a module that some releases do not have at all, and the mark of a run that may have the names."""
NEEDS = "needs"
_READ = frozenset(("attribute", "member"))
_CALLED = frozenset(("call", "method", "super"))
"""What is asked so is no module, whatever module had its name once."""
_OF_CLASS = frozenset(("is", "of"))
_ALL = ("",)
"""The runs of what every release has."""
_BARE = frozenset(("enum", "abc", "typing"))
"""Modules whose classes bring nothing that a library would name."""
_BARE_CLASSES = frozenset(("transformers.utils.PushToHubMixin", "transformers.file_utils.PushToHubMixin"))
"""Classes without a constructor of their own, whose few methods no library writes anew."""
INDEX = "interfaces/index"
_DEEPEST = 8
_MOST_ANSWERS = 2048
"""Answers that are kept in memory, because a script makes the same call many times."""


class Refusal(NamedTuple):
    """Something that is asked of a package and that its release does not have, or does not take.

    ``kind`` is ``import``, ``attribute`` (both of a module), ``member`` (of a class), ``keyword``, ``missing``,
    ``positional`` or ``twice`` (of a call), or one of these behind ``override-`` where the release calls a method that
    is written anew and does not take what it is given. ``name`` is the name, the parameter or the number of places.
    Of the kind ``needs`` it is the distribution that must be installed for the release to have the name.
    ``accepts`` are the runs of releases in which it works; ``instead`` is what it is called now, where that is told.
    ``base`` is the class of that package whose parameter it is, where ``target`` is derived from it.
    """

    package: str
    kind: str
    target: str
    name: str
    accepts: tuple[str, ...]
    instead: str = ""
    line: int = 0
    base: str = ""


class Interfaces:
    """What is known of the packages whose releases were read; ``among`` bounds those in which a bare name is sought."""

    def __init__(self, table: Table, among: Collection[str] = ()) -> None:
        self._table = table
        index = table(INDEX)
        self._modules: Mapping[str, str] = index.get("modules", {})
        self._releases: Mapping[str, str] = index.get("releases", {})
        known = dict.fromkeys(self._modules.values())
        self._answers: dict[Hashable, Any] = {}
        self._packages = tuple(each for each in known if not among or each in among)

    def package_of(self, dotted: str) -> str | None:
        """The distribution that a full name belongs to; None where its releases were not read."""
        return self._modules.get(dotted.partition(".")[0])

    def releases(self, package: str) -> tuple[str, ...]:
        """The releases that were read, in order."""
        return tuple(self._releases.get(package, "").split())

    def runs_with(self, dotted: str) -> tuple[str, ...] | None:
        """The runs of releases in which a module has a name, or is there; None where all have it or nothing is told.

        A run that may have it is marked by ``?``.
        """
        package = self.package_of(dotted)
        if package is None:
            return None
        rows = self._table(f"interfaces/{package}")
        module, _, name = dotted.rpartition(".")
        for key, wanted in ((f"module {dotted}", ITSELF), (f"module {module}", name)):
            for runs, names in rows.get(key, {}).items():
                if wanted in names.split():
                    return tuple(runs.split())
        return None

    def modules_with(self, package: str, name: str) -> dict[str, tuple[str, ...]]:
        """The modules of a package that have a name in some releases only, with the runs of these releases."""
        table = self._table(f"interfaces/{package}")
        keys = table.keys_holding(name) if isinstance(table, KeyedRows) else table
        rows = {key.removeprefix("module "): table[key] for key in keys if key.startswith("module ")}
        return {
            module: tuple(runs.split())
            for module, by in rows.items()
            for runs, names in by.items()
            if name in names.split()
        }

    def callable_named(self, dotted: str) -> tuple[str, str] | None:
        """The package and the key of the function, class or method that a full name leads to.

        A package hands on what its modules define.
        """
        package = self.package_of(dotted)
        if package is None:
            return None
        rows = self._table(f"interfaces/{package}")
        parts = dotted.split(".")
        for members in range(min(2, len(parts) - 1)):
            module, name = ".".join(parts[: -1 - members]), ".".join(parts[-1 - members :])
            for key in (f"{module}:{parts[-1 - members]}", parts[-1 - members]):
                homes = rows.get(f"home {key}", "").split()
                if module in homes or (":" not in key and any(home.startswith(f"{module}.") for home in homes)):
                    return package, key + name.removeprefix(parts[-1 - members])
        return None

    def defined_below(self, dotted: str) -> tuple[str, str] | None:
        """The package and the key of the only callable of this name that a module below the stated one defines."""
        package = self.package_of(dotted)
        module, _, name = dotted.rpartition(".")
        table = self._table(f"interfaces/{package}") if package else {}
        keys = table.keys_ending(f":{name}") if isinstance(table, KeyedRows) else table
        found = [key[5:] for key in keys if key.startswith(f"home {module}.") and key.endswith(f":{name}")]
        return (package, found[0]) if package and len(found) == 1 else None

    def packages(self) -> tuple[str, ...]:
        """The packages whose releases were read, or those of them in which a bare name is sought."""
        return self._packages

    def defining(self, kind: str, key: str) -> Iterator[str]:
        """The packages with a row of this kind, ``class`` or ``call``, for a key."""
        return (package for package in self.packages() if f"{kind} {key}" in self._table(f"interfaces/{package}"))

    def callables(self, package: str, name: str) -> Iterator[str]:
        """The keys of the functions and methods of this name whose signature changed."""
        endings = (f" {name}", f".{name}", f":{name}")
        rows = self._table(f"interfaces/{package}")
        keys = rows.keys_ending(name) if isinstance(rows, KeyedRows) else rows
        return (key[5:] for key in keys if key.startswith("call ") and key.endswith(endings))

    def homes(self, package: str, key: str) -> tuple[str, ...]:
        """The modules from which a class or a function can be taken."""
        return tuple(self._table(f"interfaces/{package}").get(f"home {key}", "").split())

    def module_now(self, package: str, name: str, release: Version) -> str:
        """The module from which a release gives a class or a function, the shortest of the public ones; else empty."""

        def gives(module: str) -> bool:
            parts = module.split(".")
            dotted = (*(".".join(parts[:end]) for end in range(2, len(parts) + 1)), f"{module}.{name}")
            return all((runs := self.runs_with(each)) is None or is_in(release, _sure(runs)) for each in dotted)

        modules = [each for each in self.homes(package, name) if "._" not in each and gives(each)]
        return min(modules, key=lambda each: (each.count("."), len(each)), default="")

    def named(self, simple: str) -> Iterator[tuple[str, str]]:
        """Every package and key with this name, such as ``SFTTrainer`` or ``Trainer.train``."""
        for package in self._packages:
            if f"call {simple}" in self._table(f"interfaces/{package}"):
                yield package, simple

    def signatures(self, package: str, key: str) -> Mapping[str, tuple[str, ...]]:
        """The signatures of something by the runs of releases that have them; empty where all have the same."""
        found: Mapping[str, str] = self._table(f"interfaces/{package}").get(f"call {key}", {})
        return {signature: tuple(runs.split()) or _ALL for signature, runs in found.items()}

    def members(self, package: str, key: str, name: str, depth: int = 0) -> tuple[str, ...] | None:
        """The runs in which a class, or one above it, has a method or attribute; None where nothing is told."""
        row = self._table(f"interfaces/{package}").get(f"class {key}", {})
        told = next((runs for runs, names in row.items() if runs not in _OF_CLASS and name in names.split()), "")
        found = dict.fromkeys(told.split())
        for base in row.get("of", "").split() if depth < _DEEPEST else ():
            if "." not in base:
                found.update(dict.fromkeys(self.members(package, base, name, depth + 1) or ()))
        return tuple(found) or None

    def bases_elsewhere(self, package: str, key: str, depth: int = 0) -> tuple[str, ...]:
        """The classes of other packages from which a class is derived, by way of those of its own."""
        bases = self._table(f"interfaces/{package}").get(f"class {key}", {}).get("of", "").split()
        found = dict.fromkeys(base for base in bases if "." in base)
        for base in bases if depth < _DEEPEST else ():
            if base != key and "." not in base:
                found.update(dict.fromkeys(self.bases_elsewhere(package, base, depth + 1)))
        return tuple(found)

    def taken_at(self, package: str, key: str, release: Version, others: Mapping[str, Version]) -> str | None:
        """The signature at a release, with what classes of other packages take at theirs; None where it is not told."""
        for signature, runs in self.signatures(package, key).items():
            if is_in(release, runs):
                return self._with_bases(signature, others, 0)
        return None

    def parameters(self, package: str, key: str, release: Version, others: Mapping[str, Version]) -> tuple[str, ...]:
        """The names that can be given at a release; none where anything can, or where it is not told."""
        taken = self.taken_at(package, key, release, others)
        return parse(taken).keywords if taken else ()

    def _with_bases(self, signature: str, others: Mapping[str, Version], depth: int) -> str | None:
        words = []
        for word in signature.split():
            if not word.startswith(BASE):
                words.append(word)
                continue
            if word[1:] in _BARE_CLASSES:
                continue
            found = self.callable_named(word[1:])
            release = others.get(found[0]) if found else None
            if found is None or release is None or depth > _DEEPEST:
                return ANYTHING
            above = next((text for text, runs in self.signatures(*found).items() if is_in(release, runs)), None)
            more = None if above is None else self._with_bases(above, others, depth + 1)
            if more is None or ANYTHING in more.split():
                return ANYTHING
            words += more.split()
        return " ".join(words)

    def refusal(self, ask: Ask, releases: Mapping[str, Version]) -> Refusal | None:
        """Why what is asked fails beside these releases; None where it works, or where nothing is told.

        A release that was not read fails where those on both sides of it do.
        """
        question = (ask._replace(line=0), tuple(releases.items()))
        found: Refusal | None = self._remembered(question, lambda: self._read_refusal(ask, releases))
        return found and found._replace(line=ask.line)

    def _remembered(self, question: Hashable, read: Callable[[], Any]) -> Any:
        if question not in self._answers:
            if len(self._answers) == _MOST_ANSWERS:
                self._answers.clear()
            self._answers[question] = read()
        return self._answers[question]

    def _read_refusal(self, ask: Ask, releases: Mapping[str, Version]) -> Refusal | None:
        package = self.package_of(ask.target)
        if package is None or package not in releases:
            return None
        beside = around(releases[package], self.releases(package))
        found = [self._refusal(ask, {**releases, package: release}) for release in beside]
        return found[0] if all(found) and found else None

    def _refusal(self, ask: Ask, releases: Mapping[str, Version]) -> Refusal | None:
        dotted = f"{ask.target}.{ask.name}" if ask.kind == "import" and ask.name else ask.target
        package = self.package_of(dotted)
        release = releases.get(package) if package else None
        if package is None or release is None:
            return None
        parts = dotted.split(".")
        for end in range(2, len(parts) + 1):
            if ask.kind in _CALLED and end == len(parts) and f"module {dotted}" in self._table(f"interfaces/{package}"):
                break
            there = self.runs_with(".".join(parts[:end]))
            if there is not None and not is_in(release, there):
                kind = "import" if ask.kind == "import" else "attribute"
                return Refusal(package, kind, ".".join(parts[:end]), parts[end - 1], _sure(there), line=ask.line)
        if ask.kind == "import":
            needed = self._needed(package, dotted, release)
            lacking = next((each for each in needed if each in self._releases and each not in releases), None)
            return Refusal(package, NEEDS, dotted, lacking, (), line=ask.line) if lacking else None
        if ask.kind in ("super", "method", "member") and ask.name != "__init__":
            dotted = f"{dotted}.{ask.name}"
        found = self.callable_named(dotted)
        taken = self.taken_at(*found, release, releases) if found else None
        if found is None or taken is None:
            return self._without_member(ask, dotted, releases)
        if not taken and ANYTHING in self.signatures(*found):
            return None
        why = None if ask.kind in _READ else problem(parse(taken), ask.places, ask.keywords)
        if why is None:
            return None
        accepts = tuple(self.accepting(*found, ask.places, ask.keywords, releases))
        if why[0] == "keyword" and not accepts:
            for base in self._bases_at(*found, release):
                above = self.refusal(Ask("call", base, "", -1, (why[1],), "", (), ask.line), releases)
                if above is not None and above.kind == "keyword" and above.accepts:
                    return above._replace(target=dotted, base=above.base or base)
        return Refusal(package, why[0], dotted, why[1], accepts, self.renamed(*found, why[1]), ask.line)

    def _needed(self, package: str, dotted: str, release: Version) -> Sequence[str]:
        """The distributions without which a module does not have a name."""
        module, _, name = dotted.rpartition(".")
        for needed, by in self._table(f"interfaces/{package}").get(f"needs {module}", {}).items():
            if any(name in names.split() and is_in(release, runs.split() or _ALL) for runs, names in by.items()):
                return tuple(needed.split())
        return ()

    def _bases_at(self, package: str, key: str, release: Version) -> Iterator[str]:
        """The classes of other packages whose parameters are taken as well."""
        for signature, runs in self.signatures(package, key).items():
            if is_in(release, runs):
                yield from (word[1:] for word in signature.split() if word.startswith(BASE))

    def _without_member(self, ask: Ask, dotted: str, releases: Mapping[str, Version]) -> Refusal | None:
        owner, _, name = dotted.rpartition(".")
        found = self.callable_named(owner)
        runs = self._lacked_by(found[0], found[1], name, releases) if found else None
        return Refusal(found[0], "member", dotted, name, runs, line=ask.line) if found and runs else None

    def _lacked_by(
        self, package: str, key: str, name: str, releases: Mapping[str, Version], depth: int = 0
    ) -> tuple[str, ...] | None:
        """The runs in which a class has a member that it lacks here; None where it has it, or may by a class above."""
        row = self._table(f"interfaces/{package}").get(f"class {key}", {})
        release = releases.get(package)
        runs = next((runs for runs, names in row.items() if runs not in _OF_CLASS and name in names.split()), None)
        if runs is None or release is None or depth > _DEEPEST:
            return None
        there = row.get("is", "").split()
        if is_in(release, runs.split()) or (there and not is_in(release, there)):
            return None
        for base in row.get("of", "").split():
            if base.partition(".")[0] in _BARE or base in _BARE_CLASSES:
                continue
            above = self.callable_named(base) if "." in base else (package, base)
            if above is None or self._lacked_by(above[0], above[1], name, releases, depth + 1) is None:
                return None
        return tuple(runs.split())

    def accepting(
        self, package: str, key: str, places: int, keywords: Sequence[str], releases: Mapping[str, Version]
    ) -> Iterator[str]:
        """The runs of releases in which a call is accepted, beside the stated releases of the other packages."""
        for parameters, runs in self._all_parameters(package, key, releases):
            if problem(parameters, places, tuple(keywords)) is None:
                yield from runs

    def _all_parameters(
        self, package: str, key: str, releases: Mapping[str, Version]
    ) -> Sequence[tuple[Parameters, tuple[str, ...]]]:
        """What a call can give in each run of releases, beside the stated releases of the other packages."""

        def read() -> list[tuple[Parameters, tuple[str, ...]]]:
            wholes = [
                (self._with_bases(text, releases, 0), runs) for text, runs in self.signatures(package, key).items()
            ]
            return [(parse(whole), runs) for whole, runs in wholes if whole is not None]

        found: Sequence[tuple[Parameters, tuple[str, ...]]] = self._remembered(
            (package, key, tuple(releases.items())), read
        )
        return found

    def renamed(self, package: str, key: str, name: str) -> str:
        """What a parameter is called now, as a release that took both names says."""
        mark = f"+{name}>"
        for signature in self.signatures(package, key):
            for word in signature.split() if mark in signature else ():
                if word.startswith(mark):
                    return word.partition(">")[2]
        return ""


def is_in(release: Version, runs: Sequence[str]) -> bool:
    """Whether a release is in one of the runs; the mark of a run that may have a name does not count.

    The empty run holds every release.
    """
    return any(not run or contains(_range(run.removeprefix(_PERHAPS)), release) for run in runs)


def around(release: Version, read: Sequence[str]) -> tuple[Version, ...]:
    """The release itself if it was read, else those on both sides of it; none for one that is older than all."""
    listed = list(map(_version, read))
    at = bisect_left(listed, release)
    if listed[at : at + 1] == [release]:
        return (release,)
    return tuple(listed[at - 1 : at + 1]) if at else ()


def _sure(runs: Sequence[str]) -> tuple[str, ...]:
    return tuple(run for run in runs if not run.startswith(_PERHAPS))


_version = cache(Version)


@cache
def _range(text: str) -> Any:
    return parse_range(text)


def joined_runs(releases: Sequence[str], is_wanted: Callable[[Version], bool]) -> tuple[str, ...]:
    """The releases that are wanted as the fewest runs."""
    known = [version for each in releases if (version := parse_version(each))]
    wanted = [is_wanted(version) for version in known]
    found: list[str] = []
    start = 0
    for at, inside in enumerate(wanted):
        if inside and (at == 0 or not wanted[at - 1]):
            start = at
        if inside and (at + 1 == len(wanted) or not wanted[at + 1]):
            least = f">={known[start]}" if start else ""
            end = f"<{known[at + 1]}" if at + 1 < len(known) else ""
            found.append(",".join(filter(None, (least, end))))
    return tuple(filter(None, found))
