"""What requirements ask for, line by line, and the facts they come to together."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple
from urllib.parse import unquote

from compatcheck.environment import Environment, Location
from compatcheck.files.secrets import masked
from compatcheck.packages.names import normalised
from compatcheck.packages.versions import pinned
from compatcheck.project.requirements._markers import Place, applies

_NAMED_URL = re.compile(r"[/\\#&]egg=([A-Za-z0-9._-]+)")
_PYTORCH_INDEX = re.compile(r"://download(?:-r2)?\.pytorch\.org/whl/(cu\d{2,3}|cpu|rocm[\d.]+|xpu)/?$")
_PUBLIC_INDEX = re.compile(r"https?://pypi(?:\.python)?\.org/")
_ENDLESS = re.compile(r"\d{300}")
_LABELLED = frozenset(("torch", "torchvision", "torchaudio"))


class Asked(NamedTuple):
    """One requirement: the specifier, or None where it is installed from ``source``, and where it stands.

    ``marker`` is what it depends on where nobody knows whether that holds. ``elsewhere`` tells that the public package
    index alone does not decide which releases there are: it is a file, or another index is named too.
    """

    name: str
    specifier: str | None
    at: Location
    source: str = ""
    marker: str = ""
    elsewhere: bool = False


def parse(line: str, at: Location, place: Place) -> Asked | None:
    """A PEP 508 requirement, or a location to install from; None where its marker does not hold or it has no name.

    Raises `ValueError` where it is none.
    """
    if line.startswith(("-e", "--editable")) or _is_location(line):
        named = _NAMED_URL.search(line)
        located = line.removeprefix("--editable").removeprefix("-e").lstrip("= ")
        wheel = wheel_at(located.partition(";")[0].partition("#")[0].strip())
        if wheel:
            return Asked(wheel[0], f"=={wheel[1]}", at, elsewhere=True)
        return Asked(normalised(named[1]), None, at, "a location") if named else None
    return _requirement(line, at, place)


def _requirement(line: str, at: Location, place: Place) -> Asked | None:
    from packaging.requirements import Requirement

    if _ENDLESS.search(line):
        raise ValueError("the line contains a number with hundreds of digits")
    try:
        requirement = Requirement(line)
    except ValueError:
        raise ValueError(f"{masked(line)!r:.80} is not a requirement") from None
    marker = str(requirement.marker) if requirement.marker is not None else ""
    holds = applies(marker, place)
    if holds is False:
        return None
    open_marker = marker if holds is None else ""
    name = normalised(requirement.name)
    if not requirement.url:
        return Asked(name, str(requirement.specifier), at, marker=open_marker)
    wheel = wheel_at(requirement.url.partition("#")[0])
    if wheel and wheel[0] == name:
        return Asked(name, f"=={wheel[1]}", at, marker=open_marker, elsewhere=True)
    return Asked(name, None, at, requirement.url, open_marker)


def wheel_at(location: str) -> tuple[str, str] | None:
    """Name and version of a wheel, which its file name states."""
    from packaging.utils import InvalidWheelFilename, parse_wheel_filename

    if not location.endswith(".whl"):
        return None
    try:
        name, version, _, _ = parse_wheel_filename(unquote(re.split(r"[/\\]", location)[-1]))
    except InvalidWheelFilename:
        return None
    return str(name), str(version)


def _is_location(line: str) -> bool:
    """A path, an archive or a URL without a name in front."""
    if " @ " in line:
        return False
    bare = line.partition(";")[0].strip()
    return "://" in bare or bare.startswith((".", "/")) or bare.endswith((".whl", ".tar.gz", ".zip"))


def label_of_index(url: str) -> str | None:
    """The local label of what PyTorch's own index at a URL holds, as ``cu118``."""
    found = _PYTORCH_INDEX.search(url.strip())
    return found[1] if found else None


def with_label(asked: Asked, label: str | None) -> Asked:
    """The pin of a release of torch as that index has it; a range is left as it is."""
    version = pinned(asked.specifier or "")
    if not label or asked.name not in _LABELLED or version is None or "+" in version:
        return asked
    return asked._replace(specifier=f"=={version}+{label}")


def is_public_index(url: str) -> bool:
    """Whether it is the package index that installers ask where none is named."""
    return _PUBLIC_INDEX.match(url.strip()) is not None


def requests(
    command: str, asked: Iterable[Asked], constraints: Iterable[Asked] = (), *, resolved_together: bool = True
) -> list[dict[str, object]]:
    """The fact ``requirements``: what one ``command`` is told to install, each requirement with its line.

    Where its requirements are not ``resolved_together``, as with ``--no-deps``, each is a command of its own. What is
    installed from a location, or depends on what nobody knows, is left out.
    """
    listed = [(each, False) for each in asked] + [(each, True) for each in constraints]
    return [
        {
            "name": each.name,
            "specifier": each.specifier,
            "command": command if resolved_together else f"{command} {number}",
            "file": each.at.file,
            "line": each.at.line,
            **({"constraint": True} if constraint else {}),
            **({"elsewhere": True} if each.elsewhere else {}),
        }
        for number, (each, constraint) in enumerate(listed)
        if each.specifier is not None and not each.marker
    ]


def facts_of(asked: Iterable[Asked], constraints: Iterable[Asked] = ()) -> Environment:
    """Versions where a requirement or a constraint pins one, else the range asked for, with the reason.

    The first pin of a name counts. A constraint narrows what is asked for and asks for nothing itself.
    """
    limits: dict[str, list[Asked]] = {}
    for each in constraints:
        if each.specifier and not each.marker:
            limits.setdefault(each.name, []).append(each)
    lines: dict[str, list[Asked]] = {}
    for each in asked:
        lines.setdefault(each.name, []).append(each)
    versions: dict[str, str] = {}
    ranges: dict[str, str] = {}
    reasons: dict[str, str] = {}
    locations: dict[str, Location] = {}
    for name, wanted in lines.items():
        sure = [each for each in wanted if not each.marker]
        bounds = [*sure, *limits.get(name, ())]
        pin = next((each for each in bounds if each.specifier and pinned(each.specifier)), None)
        locations[f"distributions.{name}"] = (pin or (sure or wanted)[0]).at
        if sure and pin is not None:
            versions[name] = pinned(pin.specifier or "") or ""
            continue
        if sure:
            ranges[name] = _join(each.specifier for each in bounds)
        reasons[f"distributions.{name}"] = _why(sure, wanted, ranges.get(name, ""))
    known = {"distributions": versions, "distributions_complete": False}
    return Environment({**known, **({"distribution_ranges": ranges} if ranges else {})}, reasons, locations)


def _join(specifiers: Iterable[str | None]) -> str:
    """The specifiers together, each clause once and in the order they were given."""
    clauses = [clause.strip() for specifier in specifiers if specifier for clause in specifier.split(",")]
    return ",".join(sorted(dict.fromkeys(clauses), key=lambda clause: (clause[:1] not in ">=~", clause[:1] == "!")))


def _why(sure: Sequence[Asked], wanted: Sequence[Asked], joined: str) -> str:
    first = (sure or wanted)[0]
    file = os.path.basename(first.at.file)
    if not sure:
        choices = "; ".join(f"{each.specifier or each.source or 'any version'} where {each.marker}" for each in wanted)
        return f"{file} requires {choices}; it is unknown which of these applies"
    located = next((each.source for each in sure if each.specifier is None), None)
    if located is not None:
        return f"{file} installs the package from {located}"
    return f"{file} requires {joined}, which is not one version" if joined else f"{file} has no version"
