"""What the user's own code asks of packages, held against the releases that are stated."""

from __future__ import annotations

import os.path
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from packaging.version import Version

from compatcheck.environment import Environment, Location, Unknown
from compatcheck.interfaces.history import NEEDS, Interfaces, Refusal, is_in
from compatcheck.interfaces.links import holds
from compatcheck.interfaces.signature import parse
from compatcheck.interfaces.summary import Ask
from compatcheck.language import gettext as _
from compatcheck.language import marked
from compatcheck.matrix._traits import Table
from compatcheck.matrix.matching.match import Occurrence, TraitVerdict
from compatcheck.matrix.traits._link_notes import link_note
from compatcheck.packages.versions import final_release, parse_version

MODEL, SCRIPT, SETTINGS = "model.asks", "trainer.asks", "training.asks"
MOVED = "moved"
_WHY = marked("the nearest releases that work with this code")
_MOVED_WHY = marked("the stated release has the name there")
_INSTALL = marked("the package that defines the name")
_SIMILAR = 0.72


class Told(NamedTuple):
    """Something refused, what was asked, and the release that is stated for it; ``is_key`` of a key of a file."""

    refusal: Refusal
    ask: Ask
    release: Version
    location: Location
    is_key: bool = False


class Moved(NamedTuple):
    """The module and name that replace an imported one, and what they do otherwise."""

    module: str
    name: str
    why: str = ""

    def remedy(self, asked: str) -> Mapping[str, Any]:
        code = f"from {self.module} import {self.name}" + (f" as {asked}" if self.name != asked else "")
        return {"code": code, "why": self.why or _(_MOVED_WHY), "first": True}


class Stated:
    """The releases that an environment states, and how the user's asks fare with them."""

    def __init__(self, environment: Environment, table: Table) -> None:
        self.interfaces = Interfaces(table)
        self._table = table
        self._environment = environment
        stated = environment.section("distributions").items()
        self.releases = {name: release for name, text in stated if (release := final_release(text))}
        self._python = parse_version(str(environment.get("python")))

    def suppose(self, package: str, release: Version) -> None:
        """Judge as if this release were stated."""
        self.releases[package] = release

    def requested(self) -> Iterator[tuple[str, list[Version]]]:
        """The packages of which only a range is stated, each with its releases in it, the newest first."""
        for package, text in self._environment.section("distribution_ranges").items():
            listed = self.interfaces.releases(package) if text and package not in self.releases else ()
            inside = [each for each in map(Version, reversed(listed)) if is_in(each, (str(text),))]
            if inside:
                yield package, inside

    def refused(self, asks: Sequence[Mapping[str, Any]], are_keys: bool = False) -> Iterator[Told]:
        """Each thing that the stated releases refuse; a name that no import gets is told where it is imported."""
        missing: set[str] = set()
        for fact in asks:
            ask, lines = _ask(fact), _lines(fact)
            if not all(holds(each, self.releases, self._python) for each in ask.conditions):
                continue
            for refusal in self._all_of(ask) or self._moved(ask, fact.get("given") or ()):
                if refusal.kind == "import":
                    missing.add(refusal.target)
                elif refusal.kind == "attribute" and refusal.target in missing:
                    continue
                at = Location(fact["file"], lines.get(refusal.name, ask.line))
                yield Told(refusal, ask, self.releases[refusal.package], at, are_keys)

    def _all_of(self, ask: Ask) -> list[Refusal]:
        """Why an ask fails: every keyword that is not taken, or the first other reason that releases differ in."""
        refusal = self.interfaces.refusal(ask, self.releases)
        first, found = refusal, []
        while refusal is not None and refusal.kind == "keyword":
            if self.taking(refusal):
                found.append(refusal)
            ask = ask._replace(keywords=tuple(each for each in ask.keywords if each != refusal.name))
            refusal = self.interfaces.refusal(ask, self.releases)
        if refusal is not None and refusal is first and (refusal.accepts or self._is_absent(refusal)):
            found.append(refusal)
        return found

    def _is_absent(self, refusal: Refusal) -> bool:
        """Whether what a name needs is known not to be installed, by a complete list."""
        return refusal.kind == NEEDS and self._environment.get(f"distributions.{refusal.name}") is None

    def _moved(self, ask: Ask, given: Sequence[str]) -> Iterator[Refusal]:
        """Each argument with the name of a parameter that other releases have at its place, and this one elsewhere.

        A parameter that only got another name is in its place still.
        """
        found = self.interfaces.callable_named(ask.target) if ask.kind == "call" and any(given) else None
        release = self.releases.get(found[0]) if found else None
        taken = self.interfaces.taken_at(*found, release, self.releases) if found and release else None
        if found is None or not taken:
            return
        now, names = parse(taken), _own_names(taken)
        for place, name in enumerate(given[: len(now.positional)]):
            if not name or now.positional[place] == name:
                continue
            runs = [
                run
                for signature, listed in self.interfaces.signatures(*found).items()
                if parse(signature).positional[place : place + 1] == (name,)
                and (name in names or now.positional[place] in _own_names(signature))
                for run in listed
            ]
            if runs:
                yield Refusal(found[0], MOVED, ask.target, name, tuple(runs), line=ask.line)

    def taking(self, refusal: Refusal) -> tuple[str, ...]:
        """The runs of releases that take what is refused, whatever else is asked with it."""
        found = self.interfaces.callable_named(refusal.base or refusal.target) if refusal.kind == "keyword" else None
        if found is None:
            return refusal.accepts
        return tuple(self.interfaces.accepting(*found, -1, (refusal.name,), self.releases))

    def occurrence(self, told: Told) -> Occurrence:
        refusal, release = told.refusal, told.release
        runs = self.taking(refusal)
        nearest = self._nearest(refusal.package, refusal.accepts or runs, release)
        new = refusal.instead or self._similar(refusal, release)
        sentences = [_sentence(told), self._when(refusal.package, runs, release)]
        moved = self._moved_to(told)
        if moved:
            sentences.append(_("{name} of {module} replaces it.").format_map(moved._asdict()))
        if new:
            words = _("The new name is {name}.") if refusal.instead else _("The new name may be {name}.")
            sentences.append(words.format(name=new))
        pins = {refusal.package: nearest} if nearest else {}
        if refusal.kind == NEEDS:
            pins = {refusal.name: ""}
        note = link_note(self._table, "", refusal.package, refusal.name)
        return Occurrence(
            " ".join(filter(None, sentences)),
            (refusal.package,),
            pins,
            why=_INSTALL if refusal.kind == NEEDS else _WHY,
            location=told.location,
            code=_rewritten(told) if refusal.instead else "",
            note=note.text,
            source=note.source,
            remedies=(moved.remedy(told.ask.name),) if moved else (),
        )

    def _moved_to(self, told: Told) -> Moved | None:
        """Where an imported name is in the stated releases; None where no place is known."""
        if told.refusal.kind != "import" or not told.ask.name:
            return None
        known = self._table("moved-names")["names"].get(f"{told.ask.target}.{told.ask.name}")
        if known:
            module, _dot, name = known["now"].rpartition(".")
            ask = Ask("import", module, name, -1, (), "", (), told.ask.line)
            moved = Moved(module, name, known.get("note", ""))
            return None if self.interfaces.refusal(ask, self.releases) else moved
        module = self.interfaces.module_now(told.refusal.package, told.ask.name, told.release)
        return Moved(module, told.ask.name) if module else None

    def _nearest(self, package: str, runs: Sequence[str], release: Version) -> str:
        """The first run of releases newer than this one, else the last of older ones."""
        listed = list(self._segments(package, runs))
        newer = (run for run, first, _last in listed if first > release)
        return next(newer, listed[-1][0] if listed else "")

    def _segments(self, package: str, runs: Sequence[str]) -> Iterator[tuple[str, Version, Version]]:
        """The releases in the runs as few ranges, each with its first and last release."""
        releases = [Version(each) for each in self.interfaces.releases(package)]
        held = [is_in(each, runs) for each in releases]
        start = None
        for at, has in enumerate([*held, False]):
            if has and start is None:
                start = at
            elif not has and start is not None:
                low = [f">={releases[start]}"] if start else []
                high = [f"<{releases[at]}"] if at < len(releases) else []
                yield ",".join([*low, *high]), releases[start], releases[at - 1]
                start = None

    def _when(self, package: str, runs: Sequence[str], release: Version) -> str:
        listed = list(self._segments(package, runs))
        older = [last for _run, _first, last in listed if last < release]
        newer = [first for _run, first, _last in listed if first > release]
        known = {"old": older[-1] if older else "", "new": newer[0] if newer else ""}
        if older and newer:
            return _("Versions up to {old} work, and so do {new} and later.").format_map(known)
        if older:
            return _("Versions up to {old} work.").format_map(known)
        return _("Version {new} and later work.").format_map(known) if newer else ""

    def _similar(self, refusal: Refusal, release: Version) -> str:
        """A parameter of this release that came after the one that is gone, with nearly its name."""
        found = self.interfaces.callable_named(refusal.base or refusal.target) if refusal.kind == "keyword" else None
        if found is None:
            return ""
        now = self.interfaces.parameters(*found, release, self.releases)
        from difflib import get_close_matches

        since = next(iter(self._segments(refusal.package, self.taking(refusal))), None)
        before = self.interfaces.parameters(*found, since[1], self.releases) if since else now
        return next(iter(get_close_matches(refusal.name, [*(set(now) - set(before))], 1, _SIMILAR)), "")


def verdict(environment: Environment, table: Table, kinds: frozenset[str], passed: Any = None) -> TraitVerdict:
    """Certain of the model's code, of a single script and of settings that go to a class as they are.

    Of several scripts it is open which one is run; an argument at another place may be meant so.
    """
    looked = {path: environment.get(path) for path in (MODEL, SCRIPT, SETTINGS)}
    asks = {path: listed or () for path, listed in looked.items() if not isinstance(listed, Unknown)}
    if not asks:
        return TraitVerdict(None, missing=(MODEL,))
    stated = Stated(environment, table)
    is_sure = {
        MODEL: True,
        SCRIPT: len({each["file"] for each in asks.get(SCRIPT, ())}) == 1,
        SETTINGS: not any(each.get("is_possible") for each in asks.get(SETTINGS, ())),
    }
    certain: list[Occurrence] = []
    possible: list[Occurrence] = []
    seen: set[tuple[str, str, Location]] = set()
    for path, listed in asks.items():
        for told in stated.refused(listed, path == SETTINGS):
            key = (told.refusal.package, told.refusal.name, told.location)
            if told.refusal.kind not in kinds or key in seen or (passed and passed(path, told)):
                continue
            if path == SETTINGS:
                seen.add(key)
            (certain if is_sure[path] and told.refusal.kind != MOVED else possible).append(stated.occurrence(told))
    if certain:
        return TraitVerdict(True, tuple(certain))
    if possible:
        return TraitVerdict(None, tuple(possible), ("trainer.script",))
    for package, releases in stated.requested():
        refused = [
            told
            for path, listed in asks.items()
            for told in _throughout(stated, path, listed, package, releases, kinds)
            if not (passed and passed(path, told))
        ]
        if refused:
            return TraitVerdict(None, tuple(map(stated.occurrence, refused)), (f"distributions.{package}",))
    return TraitVerdict(False)


def _throughout(
    stated: Stated,
    path: str,
    asks: Sequence[Mapping[str, Any]],
    package: str,
    releases: Sequence[Version],
    kinds: frozenset[str],
) -> list[Told]:
    """What each of these releases refuses, as the newest says it."""
    first: list[Told] = []
    about = [each for each in asks if stated.interfaces.package_of(each["target"]) == package]
    for at, release in enumerate(releases):
        stated.suppose(package, release)
        refused = [each for each in stated.refused(about, path == SETTINGS) if each.refusal.kind in kinds]
        keys = {(each.location, each.refusal.name) for each in refused}
        first = refused if at == 0 else [each for each in first if (each.location, each.refusal.name) in keys]
        if not first:
            break
    del stated.releases[package]
    return first


def _ask(fact: Mapping[str, Any]) -> Ask:
    names = (tuple(fact.get(key) or ()) for key in ("keywords", "conditions"))
    keywords, conditions = names
    return Ask(
        fact["kind"],
        fact["target"],
        fact.get("name") or "",
        fact.get("places") or 0,
        keywords,
        "",
        conditions,
        fact["line"],
    )


def _lines(fact: Mapping[str, Any]) -> dict[str, int]:
    return dict(zip(fact.get("keywords") or (), fact.get("lines") or ()))


def _rewritten(told: Told) -> str:
    """The parameter with its new name, as the place where it is given writes it."""
    new = told.refusal.instead
    if not told.is_key:
        return f"{_callable(told.refusal.target)}(..., {new}=...)"
    return _KEYS.get(os.path.splitext(told.location.file)[1], "--{} ...").format(new)


def _sentence(told: Told) -> str:
    refusal, ask = told.refusal, told.ask
    known = {
        "who": f"{refusal.package} {told.release}",
        "what": f"from {ask.target} import {ask.name}" if ask.name else f"import {ask.target}",
        "call": _callable(refusal.target),
        "name": refusal.name,
        "target": refusal.target,
        "given": ask.places,
    }
    return _(_OF_KEY if told.is_key and refusal.kind == "keyword" else _SENTENCES[refusal.kind]).format_map(known)


def _own_names(signature: str) -> frozenset[str]:
    """The parameters of a signature, without the older names that a decorator still accepts."""
    return frozenset(word.removesuffix("=") for word in signature.split() if not word.startswith(("*", "+")))


def _callable(dotted: str) -> str:
    """A class with its method, or a function, as its import names it."""
    *modules, last = dotted.split(".")
    return f"{modules[-1]}.{last}" if modules and modules[-1][:1].isupper() else last


_KEYS = {".json": '"{}": ...', ".yaml": "{}: ...", ".yml": "{}: ...", ".toml": "{} = ..."}
"""How a file with this ending writes a key; a launch line gives a flag."""
_OF_KEY = marked("`{name}` fails: {call} of {who} does not take {name}.")
_SENTENCES = {
    "import": marked("`{what}` fails: {who} has no {target}."),
    "attribute": marked("{who} has no {target}."),
    "member": marked("{who} has no {target}."),
    NEEDS: marked("`{what}` fails: {who} has {target} only if {name} is installed."),
    "keyword": marked("{call}({name}=...) fails: {who} does not take {name}."),
    "positional": marked("{call}() fails: {who} takes {name} positional arguments, but {given} are passed."),
    "missing": marked("{call}() fails: {who} requires {name}, which is not given."),
    MOVED: marked("{call}(): {who} takes another argument at the position of {name}."),
    "twice": marked("{call}() fails: {who} takes {name} by position, but it is also passed by name."),
}
