"""Which releases an error line speaks of: those of the package that lacks what is asked, and of the one that asks."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from packaging.version import Version

from compatcheck.interfaces.history import Interfaces, Table, is_in, joined_runs
from compatcheck.interfaces.signature import BASE, Parameters, parse
from compatcheck.packages.interface_errors import (
    MissingArgument,
    MissingName,
    NoAttribute,
    TooManyPositionals,
    UnexpectedKeyword,
    last_part,
)
from compatcheck.packages.interface_failures import Failure

_INSTALLED = ("site-packages", "dist-packages")
_OF_MODELS = "transformers_modules"
_CONSTRUCTORS = (".__init__", ".__new__")
_MODEL = re.compile(r"For[A-Z]\w+\Z|(?:Model|LMHead)\Z")
_BASE_OF_MODELS = "PreTrainedModel"
_DEEPEST = 4
_MOST_ALIKE = 60
"""Methods of one name in a package beyond which the name says nothing."""

CallError = UnexpectedKeyword | MissingArgument | TooManyPositionals


class Answer(NamedTuple):
    """What a package lacks, or asks of code that it calls, and the releases that differ in it.

    ``kind`` is ``name``, ``module``, ``member``, ``keyword``, ``missing``, ``positional``, or one of the last three
    behind ``override-`` where the package calls a method of somebody else's class with what that does not take.
    ``target`` is what lacks it and ``name`` what is lacking. ``accepts`` are the runs of releases of the package
    without the fault; ``asks`` those of the ``caller`` that ask for it, empty where that is not told.
    """

    package: str
    kind: str
    target: str
    name: str
    accepts: tuple[str, ...]
    caller: str = ""
    asks: tuple[str, ...] = ()


class _Change(NamedTuple):
    """A callable of a package whose signatures differ in what an error is about, and the runs that accept the call."""

    package: str
    key: str
    accepts: tuple[str, ...]


def answers(
    failure: Failure, table: Table, versions: Mapping[str, Version | None], among: Collection[str] = ()
) -> Iterator[Answer]:
    """What explains a failure by the tables, one answer for each package that may be at fault.

    ``versions`` are the packages that are known to be there, None without a version. ``among`` are those that may be at
    fault, where that is known.
    """
    interfaces = Interfaces(table, among)
    caller = package_of_file(failure.caller.file, interfaces) if failure.caller else ""
    found = _preferred(list(_providers(failure, interfaces, caller, versions)), versions, interfaces, table)
    for each in found:
        whole = _with_caller(each, caller, interfaces, table, versions)
        yield whole._replace(
            accepts=_joined(whole.package, whole.accepts, interfaces),
            asks=_joined(whole.caller, whole.asks, interfaces) if whole.asks else (),
        )


def _joined(package: str, runs: Sequence[str], interfaces: Interfaces) -> tuple[str, ...]:
    return joined_runs(interfaces.releases(package), lambda version: is_in(version, runs)) or tuple(runs)


def package_of_file(file: str, interfaces: Interfaces) -> str:
    """The package that a file of a traceback belongs to, empty for a user's own file and for a model's own code."""
    parts = [part.removesuffix(".py") for part in file.split("/")]
    if _OF_MODELS in parts:
        return ""
    for at in range(len(parts) - 1, 0, -1):
        if parts[at - 1] in _INSTALLED:
            return interfaces.package_of(parts[at]) or ""
    known = [package for part in parts[:-1] if (package := interfaces.package_of(part))]
    is_whole = file.startswith(("/", "~")) or file[1:2] == ":"
    return known[-1 if is_whole else 0] if known else ""


def _providers(failure: Failure, interfaces: Interfaces, caller: str, there: Collection[str]) -> Iterator[Answer]:
    error = failure.error
    if isinstance(error, MissingName) and error.name and not error.module:
        yield from _anywhere(error.name, interfaces, caller, there)
    elif isinstance(error, MissingName):
        package = interfaces.package_of(error.module)
        runs = interfaces.runs_with(f"{error.module}.{error.name}" if error.name else error.module)
        if package and runs:
            kind = "name" if error.name else "module"
            yield Answer(package, kind, error.module, error.name or error.module, runs)
    elif isinstance(error, NoAttribute):
        owner = last_part(error.owner)
        for base in (owner, *_likely_bases(owner)):
            places = [
                (package, base)
                for package in interfaces.defining("class", base)
                if base == owner or _is_exported(package, base, interfaces)
            ]
            if found := [each for place in places for each in _members(*place, error.name, interfaces, 0)]:
                yield from found
                return
    elif isinstance(error, (UnexpectedKeyword, MissingArgument, TooManyPositionals)):
        yield from _of_call(error, interfaces, caller, failure.caller.file if failure.caller else "")


def _likely_bases(owner: str) -> Iterator[str]:
    """The classes from which one is derived by its name: its ending, and of a model the class of all models."""
    yield from _endings(owner)
    if _MODEL.search(owner):
        yield _BASE_OF_MODELS


def _endings(name: str) -> Iterator[str]:
    return (name[at:] for at, letter in enumerate(name) if at and letter.isupper())


def _members(package: str, key: str, name: str, interfaces: Interfaces, depth: int) -> Iterator[Answer]:
    """Which releases give a class the member: its own, else those of the packages that its base classes are from."""
    if runs := interfaces.members(package, key, name):
        yield Answer(package, "member", key.rpartition(":")[2], name, runs)
        return
    for base in interfaces.bases_elsewhere(package, key) if depth < _DEEPEST else ():
        if found := interfaces.callable_named(base) or interfaces.defined_below(base):
            yield from _members(*found, name, interfaces, depth + 1)


def _anywhere(name: str, interfaces: Interfaces, caller: str, there: Collection[str]) -> Iterator[Answer]:
    """A name of unknown modules: of a package that is there, or of the only one that ever had it in some releases."""
    known = [each for each in interfaces.packages() if each in there and each != caller]
    found = {
        package: modules
        for package in known or interfaces.packages()
        if package != caller and (modules := interfaces.modules_with(package, name))
    }
    for package, modules in found.items() if known or len(found) == 1 else ():
        runs = tuple(dict.fromkeys(run for runs in modules.values() for run in runs))
        yield Answer(package, "name", min(modules, key=len), name, runs)


def _of_call(error: CallError, interfaces: Interfaces, caller: str, file: str) -> Iterator[Answer]:
    """The callable itself where the tables know it, else the method of a base class that the caller calls."""
    name = error.callable
    for constructor in _CONSTRUCTORS:
        name = name.removesuffix(constructor)
    kind, about = _about(error)
    owner, _, method = name.rpartition(".")
    own = [each for package, key in interfaces.named(name) for each in _changes(package, key, error, interfaces, 0)]
    if not own and not owner:
        own = _methods(method, error, interfaces, interfaces.packages())
    for each in own:
        yield Answer(each.package, kind, each.key, about, each.accepts)
    if own or isinstance(error, MissingArgument):
        return
    overridden = (
        _overridden(owner, method, error, interfaces, caller) if owner else _named_so(method, error, interfaces)
    )
    for each in overridden or _at_home(method, error, interfaces, file, caller):
        if fitting := _others(each, interfaces):
            yield Answer(each.package, f"override-{kind}", name, about, fitting)


def _others(change: _Change, interfaces: Interfaces) -> tuple[str, ...]:
    """The releases whose method does not take the call, or that have none: they do not call it so."""
    return joined_runs(interfaces.releases(change.package), lambda version: not is_in(version, change.accepts))


def _about(error: CallError) -> tuple[str, str]:
    if isinstance(error, UnexpectedKeyword):
        return "keyword", error.keyword
    if isinstance(error, MissingArgument):
        return "missing", ", ".join(error.names)
    return "positional", str(error.given)


def _methods(method: str, error: CallError, interfaces: Interfaces, packages: Iterable[str]) -> list[_Change]:
    """The functions and methods of this name that changed alike; none of a name that too many have."""
    keys = [(package, key) for package in packages for key in interfaces.callables(package, method)]
    if len(keys) > _MOST_ALIKE:
        return []
    return _agreeing([each for package, key in keys for each in _changes(package, key, error, interfaces, 0)])


def _overridden(owner: str, method: str, error: CallError, interfaces: Interfaces, caller: str) -> list[_Change]:
    """The method of the class whose name ends that of an unknown class, as names of derived classes mostly do."""
    for base in _endings(owner):
        key = f"{base}.{method}"
        packages = [each for each in interfaces.defining("call", key) if not caller or each == caller]
        found = [each for package in packages for each in _takes(package, key, error, interfaces)]
        if found:
            return found
    return []


def _named_so(method: str, error: CallError, interfaces: Interfaces) -> list[_Change]:
    """The methods of this name that take what is given, where few have it."""
    keys = [(package, key) for package in interfaces.packages() for key in interfaces.callables(package, method)]
    few = keys if len(keys) <= _MOST_ALIKE else ()
    return _agreeing([each for package, key in few if "." in key for each in _takes(package, key, error, interfaces)])


def _at_home(method: str, error: CallError, interfaces: Interfaces, file: str, caller: str) -> list[_Change]:
    """The method of a class of the very file that calls it."""
    module = f".{file.removesuffix('.py').replace('/', '.')}"
    return [
        each
        for key in (interfaces.callables(caller, method) if caller else ())
        if any(module.endswith(f".{home}") for home in interfaces.homes(caller, key.partition(".")[0]))
        for each in _takes(caller, key, error, interfaces)
    ]


def _changes(package: str, key: str, error: CallError, interfaces: Interfaces, depth: int) -> Iterator[_Change]:
    """Whether the signatures of a callable differ in the error; of parameters from a base class, those of the base."""
    accepts, perhaps, refuses, bases = _runs_by_answer(package, key, error, interfaces)
    if (accepts or perhaps) and (refuses or (perhaps and accepts)):
        yield _Change(package, key, accepts or perhaps)
    elif not accepts and depth < _DEEPEST:
        for base in bases:
            if found := interfaces.callable_named(base):
                yield from _changes(*found, error, interfaces, depth + 1)


def _takes(package: str, key: str, error: CallError, interfaces: Interfaces) -> Iterator[_Change]:
    """The runs in which a method surely takes what is given, where there are any."""
    accepts = _runs_by_answer(package, key, error, interfaces)[0]
    if accepts:
        yield _Change(package, key, accepts)


def _runs_by_answer(
    package: str, key: str, error: CallError, interfaces: Interfaces
) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """The runs of releases that accept the call, perhaps do and refuse it; and the classes of other packages above."""
    found: dict[bool | None, list[str]] = {True: [], None: [], False: []}
    bases: dict[str, None] = {}
    for signature, runs in interfaces.signatures(package, key).items():
        words = signature.split()
        bases.update(dict.fromkeys(word[1:] for word in words if word.startswith(BASE)))
        plain = " ".join(word for word in words if not word.startswith(BASE))
        found[_is_accepted(error, parse(plain), key, plain)] += runs
    return tuple(found[True]), tuple(found[None]), tuple(found[False]), tuple(bases)


def _is_accepted(error: CallError, parameters: Parameters, key: str, signature: str) -> bool | None:
    """Whether the call is accepted; None for any other keyword, which may be refused further on."""
    if isinstance(error, UnexpectedKeyword):
        return error.keyword in parameters.keywords or (None if parameters.takes_more else False)
    if isinstance(error, MissingArgument):
        return not set(error.names) & set(parameters.required)
    is_bound = key[:1].isupper() and not signature.startswith(".")
    return parameters.takes_rest or len(parameters.positional) >= error.given - is_bound


def _agreeing(changes: Sequence[_Change]) -> list[_Change]:
    """The first of each package if all of that package changed in the same releases, else none of it."""
    found: dict[str, list[_Change]] = {}
    for each in changes:
        found.setdefault(each.package, []).append(each)
    alike = (group for group in found.values() if len({each.accepts for each in group}) == 1)
    return [group[0] for group in alike]


def _preferred(
    found: Sequence[Answer], versions: Mapping[str, Version | None], interfaces: Interfaces, table: Table
) -> Sequence[Answer]:
    """Of answers by several packages those of packages that are there, else those of the one that most others ask."""
    different = list({(each.package, each.kind, each.accepts): each for each in reversed(found)}.values())[::-1]
    present = [each for each in different if each.package in versions]
    chosen = present or different
    packages = list(dict.fromkeys(each.package for each in chosen))
    if len(packages) < 2:
        return chosen
    exporting = [
        each
        for each in packages
        if any(
            _is_exported(each, answer.target.partition(".")[0], interfaces)
            for answer in chosen
            if answer.package == each
        )
    ]
    asked = [sum(each in table(f"links/{other}") for other in interfaces.packages()) for each in exporting or packages]
    best = (exporting or packages)[asked.index(max(asked))]
    return [each for each in chosen if each.package == best]


def _is_exported(package: str, key: str, interfaces: Interfaces) -> bool:
    """Whether people take something from the package itself, as they do what they derive from."""
    return any("." not in home for home in interfaces.homes(package, key))


def _with_caller(
    answer: Answer, caller: str, interfaces: Interfaces, table: Table, versions: Mapping[str, Version | None]
) -> Answer:
    """The answer with the package that asks: that of the frame, else the only one that is there and asks for it."""
    if caller and caller != answer.package:
        return answer._replace(caller=caller, asks=_asks(answer, caller, table))
    if caller or answer.kind.startswith("override-"):
        return answer
    asking = {
        package: asks
        for package in interfaces.packages()
        if package in versions and package != answer.package and (asks := _asks(answer, package, table))
    }
    chosen = [each for each in asking if _may_ask(versions[each], asking[each])]
    return answer._replace(caller=chosen[0], asks=asking[chosen[0]]) if len(chosen) == 1 else answer


def _may_ask(version: Version | None, asks: Sequence[str]) -> bool:
    return version is None or is_in(version, asks)


def _asks(answer: Answer, package: str, table: Table) -> tuple[str, ...]:
    """The runs of a package that ask another for what it lacks, as far as a training run gets to it."""
    runs: dict[str, None] = {}
    for kind, target, name, *_, asks, _accepts, _fails in table(f"links/{package}").get(answer.package, ()):
        if _is_asked(answer, kind, target, name):
            runs.update(dict.fromkeys(asks.split()))
    return tuple(runs)


def _is_asked(answer: Answer, kind: str, target: str, name: str) -> bool:
    if answer.kind == "name":
        return target == f"{answer.target}.{answer.name}"
    if answer.kind == "module":
        return f"{target}.".startswith(f"{answer.target}.")
    wanted = f"{answer.target}.{answer.name}" if kind == "member" else answer.target
    return (kind, name) == (answer.kind, answer.name) and _ends_with(target, wanted)


def _ends_with(target: str, key: str) -> bool:
    return f".{target}".endswith(f".{key}")
