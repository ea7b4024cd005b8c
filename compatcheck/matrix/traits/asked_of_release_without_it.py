"""A release asks another for a name or a parameter that the stated release of the other does not have."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, partial

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from compatcheck.environment import Environment, Unknown
from compatcheck.inference.report_date import day_of_report
from compatcheck.interfaces.history import Interfaces, is_in
from compatcheck.interfaces.links import ABSENT, Link, broken_links
from compatcheck.language import gettext as _
from compatcheck.language import marked
from compatcheck.matrix._traits import Table
from compatcheck.matrix.matching.match import Occurrence, TraitVerdict
from compatcheck.matrix.traits._declared import declared
from compatcheck.matrix.traits._link_notes import LinkNote, link_note
from compatcheck.matrix.traits._reached_links import reached_links
from compatcheck.packages.frameworks import framework_of_distribution
from compatcheck.packages.release_rows import rows_of
from compatcheck.packages.versions import final_release, parse_version

_FOLLOWED = "unresolved_imports"
_ALWAYS_USED = frozenset({"accelerate", "datasets", "huggingface-hub", "peft", "tokenizers", "transformers", "trl"})
"""What a training run imports wherever it is installed: Trainer imports peft and datasets as soon as they are there."""
_OBJECTIVES = {
    name: name.lower() for name in ("SFT", "DPO", "GRPO", "Reward", "PPO", "KTO", "ORPO", "RLOO", "CPO", "BCO")
}
"""What the classes of trl begin with that only the runs with one objective use."""
_SWITCHES = {"liger-kernel": "training.use_liger_kernel"}
"""The setting without which nothing imports a package."""
_SECTIONS = {
    "FullyShardedDataParallelPlugin": "training.fsdp",
    "DeepSpeedPlugin": "training.deepspeed",
    "BitsAndBytesConfig": "training.quantization",
    "prepare_model_for_kbit_training": "training.quantization",
}
"""What only a run with settings of a section uses."""
_OF_IMPORTS = frozenset({"import", "attribute", ABSENT})
_STATEMENT = ("import ", "from ")
_SHORT = 20
"""A list of so few packages was written by hand; a lock file of anything that trains holds more."""
_OF_SEVERAL = frozenset({"coqui-tts", "modelscope", "nemo-toolkit", "simpletransformers"})
"""Packages whose parts serve different tasks: a statement that imports one part is not what every user writes."""


def find(environment: Environment, table: Table) -> TraitVerdict:
    """Certain of what a run surely does, and of a failing import of what the user asked for, used or not.

    A package that only others require, or a part of one, is left open. So is one of which a range is asked: a fresh
    install takes the newest release in it.

    Where the installed files were followed, `import-name-missing` knows what fails while it is imported. A build of a
    vendor and a pre-release are passed over.
    """
    if not environment.section("distributions") and not environment.section("distribution_ranges"):
        return TraitVerdict(None, missing=(_FOLLOWED,))
    found, certain = environment.once("links", partial(_links, environment, table))
    occurrences = _occurrences(certain or found, environment, table)
    is_followed = not isinstance(environment.get(_FOLLOWED), Unknown)
    noted = list(reached_links(environment, table, of_packages=True))
    reached = [each for each in noted if _is_new(each.occurrence, occurrences)]
    sure = [each for each in (reached if certain else noted) if each.is_certain]
    if certain or sure:
        told = (*(occurrences if certain else ()), *(each.occurrence for each in sure))
        return TraitVerdict(True, told, facts=_once(path for each in sure for path in each.facts))
    if is_followed and not found and not reached:
        return TraitVerdict(False)
    missing = _once(path for each in reached for path in each.missing)
    told = (*occurrences, *(each.occurrence for each in reached))
    return TraitVerdict(None, told, (*missing, _FOLLOWED) if occurrences or not missing else missing)


def _links(environment: Environment, table: Table) -> tuple[list[Link], list[Link]]:
    """The links that do not hold, and those of them that a run surely gets to."""
    releases, newest = _releases(environment, Interfaces(table))
    off = {name for name, path in _SWITCHES.items() if environment.get(path) is False}
    is_followed = not isinstance(environment.get(_FOLLOWED), Unknown)
    found = [
        link
        for link in environment.once("broken links", partial(_broken_links, environment, table))
        if link.package not in off
        and not _is_of_another_objective(link, environment)
        and not (is_followed and link.kind in _OF_IMPORTS)
        and not {link.package, link.provider} <= newest.keys()
    ]
    asked_for = _requested(environment, releases, table) if any(map(_is_of_import, found)) else ()
    shared = _shared_by_objectives(found) if isinstance(environment.get("training.objective"), Unknown) else ()
    certain = [
        link
        for link in found
        if newest.keys().isdisjoint((link.package, link.provider))
        and (
            _note(link, table).is_sure
            or _is_reached(link, environment)
            or (_what(link) in shared and _objective(link) == "sft")
            or (_is_of_import(link) and link.package in asked_for)
        )
    ]
    return found, certain


def _releases(environment: Environment, interfaces: Interfaces) -> tuple[dict[str, Version], dict[str, Version]]:
    """The releases that are stated, and the newest of what only a range is asked of."""
    stated = environment.section("distributions")
    releases = {name: release for name, text in stated.items() if (release := final_release(text))}
    newest = {name: found for name, found in _newest_allowed(environment, interfaces) if name not in releases}
    return releases, newest


def _broken_links(environment: Environment, table: Table) -> list[Link]:
    releases, newest = _releases(environment, Interfaces(table))
    python = environment.get("python")
    stated = parse_version(python) if isinstance(python, str) else None
    are_all = _are_all(environment, releases, table)
    return _first_of_each(broken_links(table, {**newest, **releases}, stated, are_all=are_all))


def _once(paths: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(paths))


def _is_new(found: Occurrence, others: Iterable[Occurrence]) -> bool:
    """Whether nothing else speaks of the same link: what was read from the sources names the file that asks."""
    return not any(found.note and found.note == other.note for other in others)


def _requested(environment: Environment, releases: Mapping[str, Version], table: Table) -> Collection[str]:
    """What the user asked for: as installers noted, else what no other package of the set declares to require."""
    noted = environment.get("distributions_requested")
    if not isinstance(noted, Unknown):
        return frozenset(noted or ())
    return releases.keys() - _required(environment, releases, table)


def _required(environment: Environment, releases: Mapping[str, Version], table: Table) -> set[str]:
    """What these releases declare to require of others."""
    return {
        other
        for name, release in releases.items()
        for other, _ in rows_of(release, declared(name, environment, table))
        if other != name
    }


def _are_all(environment: Environment, releases: Mapping[str, Version], table: Table) -> bool:
    """Whether nothing else is installed: as it was seen there, or as a list shows that holds all that is required."""
    if environment.facts.get("distributions_complete") is True:
        return True
    stated = environment.section("distributions")
    return len(stated) > _SHORT and _required(environment, releases, table) <= stated.keys()


def _newest_allowed(environment: Environment, interfaces: Interfaces) -> Iterator[tuple[str, Version]]:
    """The newest release of each package of which only a range is asked; none for an environment of the past."""
    if day_of_report(environment) is not None:
        return
    for name, asked in environment.section("distribution_ranges").items():
        try:
            allowed = SpecifierSet(asked)
        except ValueError:
            continue
        known = map(Version, reversed(interfaces.releases(name)))
        if found := next((each for each in known if each in allowed), None):
            yield name, found


def _first_of_each(links: Iterable[Link]) -> list[Link]:
    """Of what one package asks another the first that fails: what an import lacks comes before what a call does."""
    ordered = sorted(links, key=lambda link: (link.kind not in _OF_IMPORTS, not link.entry.startswith("import ")))
    return list({(link.package, link.provider, link.entry): link for link in reversed(ordered)}.values())[::-1]


def _is_of_import(link: Link) -> bool:
    """Whether the statement by which people import the package fails."""
    is_whole = link.entry.startswith("import ") or link.package not in _OF_SEVERAL
    return link.kind in _OF_IMPORTS and link.entry.startswith(_STATEMENT) and is_whole


def _objective(link: Link) -> str | None:
    """The objective without which nothing uses the class of trl that leads to what fails."""
    name = link.entry.rpartition(" ")[2]
    part = next((objective for start, objective in _OBJECTIVES.items() if name.startswith(start)), None)
    return part if link.package == "trl" else None


def _is_of_another_objective(link: Link, environment: Environment) -> bool:
    """Whether only a run with another objective than the known one imports or uses the class that leads there."""
    objective, part = environment.get("training.objective"), _objective(link)
    return part is not None and not isinstance(objective, Unknown) and objective != part


def _what(link: Link) -> tuple[str, ...]:
    return link.package, link.provider, link.kind, link.target, link.name


def _shared_by_objectives(links: Iterable[Link]) -> Collection[tuple[str, ...]]:
    """What supervised fine-tuning asks and another objective too: whatever the objective is, a run meets it."""
    found: dict[tuple[str, ...], set[str | None]] = {}
    for link in links:
        found.setdefault(_what(link), set()).add(_objective(link))
    return frozenset(what for what, by in found.items() if "sft" in by and len(by) > 1)


def _is_reached(link: Link, environment: Environment) -> bool:
    """Whether a run surely comes to what fails: the package is used, and used that way."""
    framework = environment.get("training.framework")
    name = link.entry.rpartition(" ")[2]
    part = _objective(link)
    if part:
        return bool(environment.get("training.objective") == part)
    if link.kind.startswith("override") or (name in _SECTIONS and not environment.section(_SECTIONS[name])):
        return False
    own = framework_of_distribution(link.package)
    if own and own.program:
        return isinstance(framework, Unknown) or framework == own.name
    return link.package in _ALWAYS_USED or bool(framework == link.package)


def _note(link: Link, table: Table) -> LinkNote:
    return link_note(table, link.package, link.provider, link.name or link.target)


_UNDECLARED = marked("{package} imports {target}, which is neither installed nor declared as a requirement ({file})")
_USED = marked("{package} uses {target}, which {provider} does not have ({file})")
_SENTENCES = {
    "import": marked("{package} imports {target}, which {provider} does not have ({file})"),
    "attribute": _USED,
    "member": _USED,
    "keyword": marked("{package} passes {target} the argument {name}, which {provider} does not take ({file})"),
    "missing": marked("{package} calls {target} without {name}, which {provider} requires ({file})"),
    "positional": marked(
        "{package} passes {target} more than {name} positional arguments, which {provider} does not take ({file})"
    ),
    "twice": marked("{package} passes {target} {name} twice, which {provider} does not take ({file})"),
    "override-positional": marked(
        "{package} overrides {target} with {name} parameters, and {provider} calls it with more ({file})"
    ),
    "override": marked("{package} overrides {target} without {name}, and {provider} passes it ({file})"),
}


def _occurrences(links: Sequence[Link], environment: Environment, table: Table) -> list[Occurrence]:
    if not links:
        return []
    interfaces = Interfaces(table)
    releases, newest = _releases(environment, interfaces)
    return [_occurrence(link, {**newest, **releases}, interfaces, _note(link, table)) for link in links]


def _occurrence(link: Link, releases: dict[str, Version], interfaces: Interfaces, note: LinkNote) -> Occurrence:
    here, there = releases[link.package], releases.get(link.provider)
    template = _UNDECLARED if there is None else _SENTENCES.get(link.kind, _SENTENCES["override"])
    summary = _(template).format(
        package=f"{link.package} {here}",
        target=link.target,
        name=link.name,
        provider=f"{link.provider} {there}",
        file=link.file,
    )
    if _is_of_import(link):
        summary = _("`{statement}` fails in this environment: {why}").format(statement=link.entry, why=summary)
    pins = ""
    if there is not None:
        pins = _nearest(interfaces.releases(link.provider), there, link.accepts, is_inside=True) or ""
    instead = _nearest(interfaces.releases(link.package), here, link.asks, is_inside=False)
    return Occurrence(
        summary,
        (link.provider, link.package),
        {link.provider: pins} if pins or there is None else {link.package: instead} if instead else {},
        {link.package: instead} if (pins or there is None) and instead else {},
        note=note.text,
        source=note.source,
        remedies=note.remedies,
    )


@lru_cache(10_000)
def _nearest(releases: Sequence[str], here: Version, runs: Sequence[str], *, is_inside: bool) -> str | None:
    """The release in some runs, or in none, that is fewest releases away from this one, as a range towards it."""

    def is_good(release: Version) -> bool:
        return is_in(release, runs) is is_inside

    ordered = list(map(Version, releases))
    newer = [each for each in ordered if each > here]
    older = [each for each in reversed(ordered) if each < here]
    for step in range(max(len(newer), len(older))):
        if step < len(newer) and is_good(newer[step]):
            return f">={newer[step]}"
        if step < len(older) and is_good(older[step]):
            return f"<={older[step]}"
    return None
