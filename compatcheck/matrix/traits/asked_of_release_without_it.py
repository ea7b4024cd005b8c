"""A release asks another for a name or a parameter that the stated release of the other does not have."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import Version

from compatcheck.environment import Environment, Unknown
from compatcheck.inference.report_date import day_of_report
from compatcheck.interfaces.history import Interfaces, is_in
from compatcheck.interfaces.links import Link, broken_links
from compatcheck.matrix._traits import Table
from compatcheck.matrix.matching.match import Occurrence, TraitVerdict
from compatcheck.matrix.traits._link_notes import LinkNote, link_note
from compatcheck.packages.frameworks import framework_of_distribution
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
_OF_IMPORTS = frozenset({"import", "attribute"})


def find(environment: Environment, table: Table) -> TraitVerdict:
    """Certain of what a run surely does; a package that may only be installed, or a part of one, is left open.

    So is one of which a range is asked: a fresh install takes the newest release in it.

    Where the installed files were followed, `import-name-missing` knows what fails while it is imported. A build of a
    vendor and a pre-release are passed over.
    """
    distributions = environment.get("distributions")
    if isinstance(distributions, Unknown) or not distributions:
        return TraitVerdict(None, missing=(_FOLLOWED,))
    releases = {name: release for name, text in distributions.items() if (release := final_release(text))}
    interfaces = Interfaces(table)
    newest = {name: found for name, found in _newest_allowed(environment, interfaces) if name not in releases}
    python = environment.get("python")
    stated = parse_version(python) if isinstance(python, str) else None
    off = {name for name, path in _SWITCHES.items() if environment.get(path) is False}
    is_followed = not isinstance(environment.get(_FOLLOWED), Unknown)
    found = [
        link
        for link in _first_of_each(broken_links(table, {**newest, **releases}, stated))
        if link.package not in off
        and not (is_followed and link.kind in _OF_IMPORTS)
        and not {link.package, link.provider} <= newest.keys()
    ]
    certain = [
        link
        for link in found
        if newest.keys().isdisjoint((link.package, link.provider))
        and (_note(link, table).is_sure or _is_reached(link, environment))
    ]
    occurrences = tuple(
        _occurrence(link, {**newest, **releases}, interfaces, _note(link, table)) for link in certain or found
    )
    if certain:
        return TraitVerdict(True, occurrences)
    return TraitVerdict(False) if is_followed and not found else TraitVerdict(None, occurrences, (_FOLLOWED,))


def _newest_allowed(environment: Environment, interfaces: Interfaces) -> Iterator[tuple[str, Version]]:
    """The newest release of each package of which only a range is asked; none for an environment of the past."""
    if day_of_report(environment) is not None:
        return
    for name, asked in environment.section("distribution_ranges").items():
        try:
            allowed = SpecifierSet(asked)
        except InvalidSpecifier:
            continue
        known = map(Version, reversed(interfaces.releases(name)))
        if found := next((each for each in known if each in allowed), None):
            yield name, found


def _first_of_each(links: Iterable[Link]) -> list[Link]:
    """Of what one package asks another the first that fails: what an import lacks comes before what a call does."""
    ordered = sorted(links, key=lambda link: (link.kind not in _OF_IMPORTS, not link.entry.startswith("import ")))
    return list({(link.package, link.provider, link.entry): link for link in reversed(ordered)}.values())[::-1]


def _is_reached(link: Link, environment: Environment) -> bool:
    """Whether a run surely comes to what fails: the package is used, and used that way."""
    framework = environment.get("training.framework")
    name = link.entry.rpartition(" ")[2]
    part = next((objective for start, objective in _OBJECTIVES.items() if name.startswith(start)), None)
    if part and link.package == "trl":
        return bool(environment.get("training.objective") == part)
    if link.kind.startswith("override"):
        return False
    own = framework_of_distribution(link.package)
    if own and own.program:
        return isinstance(framework, Unknown) or framework == own.name
    return link.package in _ALWAYS_USED or bool(framework == link.package)


def _note(link: Link, table: Table) -> LinkNote:
    return link_note(table, link.package, link.provider, link.name or link.target)


def _occurrence(link: Link, releases: dict[str, Version], interfaces: Interfaces, note: LinkNote) -> Occurrence:
    here, there = releases[link.package], releases[link.provider]
    summary = f"{link.package} {here} {_asks(link)}, which {link.provider} {there} {_refuses(link)} ({link.file})"
    pins = _nearest(interfaces.releases(link.provider), there, lambda other: is_in(other, link.accepts))
    instead = _nearest(interfaces.releases(link.package), here, lambda other: not is_in(other, link.asks))
    return Occurrence(
        summary,
        (link.provider, link.package),
        {link.provider: pins} if pins else {link.package: instead} if instead else {},
        {link.package: instead} if pins and instead else {},
        note=note.text,
        source=note.source,
    )


def _asks(link: Link) -> str:
    target = link.target
    return {
        "import": f"imports {target}",
        "attribute": f"uses {target}",
        "member": f"uses {target}",
        "keyword": f"gives {target} the argument {link.name}",
        "missing": f"calls {target} without {link.name}",
        "positional": f"gives {target} more than {link.name} arguments by place",
        "twice": f"gives {target} {link.name} twice",
        "override-positional": f"overrides {target} with {link.name} parameters",
    }.get(link.kind, f"overrides {target} without {link.name}")


def _refuses(link: Link) -> str:
    if link.kind in ("import", "attribute", "member"):
        return "does not have"
    if link.kind == "missing":
        return "requires"
    if link.kind == "override-positional":
        return "calls with more"
    return "gives it" if link.kind.startswith("override") else "does not take"


def _nearest(releases: Sequence[str], here: Version, is_good: Callable[[Version], bool]) -> str | None:
    """The good release that is fewest releases away from this one, as a range towards it."""
    ordered = list(map(Version, releases))
    newer = [each for each in ordered if each > here]
    older = [each for each in reversed(ordered) if each < here]
    for step in range(max(len(newer), len(older))):
        if step < len(newer) and is_good(newer[step]):
            return f">={newer[step]}"
        if step < len(older) and is_good(older[step]):
            return f"<={older[step]}"
    return None
