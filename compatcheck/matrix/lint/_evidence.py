"""Evidence: whether it bears what the entry claims, and comes from runs that its conditions reach."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from compatcheck.environment import Environment
from compatcheck.matrix.entry import Case, Entry
from compatcheck.packages.frameworks import foundations, framework_of, frameworks

_SUPPORTED_PARTS = ("affected", "impact", "mechanism", "misleading", "probe", "remedies", "summary", "symptoms")


_REPOSITORY = re.compile(r"https://github\.com/([\w.-]+/[\w.-]+)")


_MET_BY_USERS = ("maintainer", "report", "upstream-fix")


_SEEN_BY_USERS = {"affected", "impact", "summary", "symptoms"}


def unsupported(entry: Entry) -> Iterator[str]:
    """Evidence must name parts that exist, bear the range, and be worth the confidence claimed."""
    parts = [part for evidence in entry.evidence for part in evidence.supports]
    for part in parts:
        name, _, number = part.partition(".")
        items = getattr(entry, name, ()) if name in ("affected", "remedies") else ()
        if name not in _SUPPORTED_PARTS or (number and not 1 <= int(number) <= len(items)):
            yield f"evidence supports {part!r}, which the entry does not have"
    if not any(part.partition(".")[0] == "affected" for part in parts):
        yield "no evidence supports the affected range"
    kinds = [evidence.kind for evidence in entry.evidence]
    if entry.confidence == "upstream-fixed" and not {"upstream-fix", "source", "documentation"} & set(kinds):
        yield "confidence upstream-fixed needs evidence of an upstream fix"
    if entry.confidence == "reproduced" and "reproduction" not in kinds:
        yield "confidence reproduced needs a reproduction as evidence"
    if entry.confidence == "corroborated" and len(set(kinds)) < 2:
        yield "confidence corroborated needs evidence of two kinds"


def unknown_frameworks(entry: Entry) -> Iterator[str]:
    """A value that no framework has can never hold."""
    for conditions in entry.affected:
        for path in ("training.framework", "training.runs_on"):
            for value in _allowed(conditions, path):
                known = framework_of(value)
                if known is None or (path == "training.runs_on" and known.name != value):
                    yield f"{path} is {value!r}, for which there is no file in frameworks/"


def unreached_evidence(entry: Entry) -> Iterator[str]:
    """The users of a framework that met the fault must be reached, or those of one that runs on it.

    A framework that only explains the fault, and does not have it, says so in an unaffected example.
    """
    if not all({"training.framework", "training.runs_on"} & conditions.keys() for conditions in entry.affected):
        return
    spared = {Environment(each.environment).get("training.framework") for each in _unaffected(entry)}
    for evidence in entry.evidence:
        framework = _framework_of_repository(evidence.url)
        if not framework or evidence.kind not in _MET_BY_USERS:
            continue
        seen = not _SEEN_BY_USERS.isdisjoint(part.partition(".")[0] for part in evidence.supports)
        if any(_reaches(conditions, framework) for conditions in entry.affected) or (framework in spared and not seen):
            continue
        yield f"{evidence.url} reports the fault with {framework}, but no table of conditions covers its users"


def _unaffected(entry: Entry) -> list[Case]:
    return [case for case in entry.cases if case.expect == "unaffected"]


def _reaches(conditions: Mapping[str, object], framework: str) -> bool:
    named, below = _allowed(conditions, "training.framework"), _allowed(conditions, "training.runs_on")
    return (
        framework in named
        or bool({framework, *foundations(framework)}.intersection(below))
        or any(framework in foundations(each) for each in (*named, *below))
    )


def _allowed(conditions: Mapping[str, Any], path: str) -> list[str]:
    condition = conditions.get(path, [])
    if condition in ("present", "absent"):
        return []
    return condition if isinstance(condition, list) else [condition]


@cache
def _framework_of_repository(url: str) -> str | None:
    place = _REPOSITORY.match(url)
    wanted = place[1].lower() if place else ""
    own = (each for each in frameworks().values() if not each.library)
    return next((each.name for each in own if wanted in map(str.lower, each.repositories)), None)


def records_that_bear_nothing(path: Path, entry: Entry) -> Iterator[str]:
    """A record must be there and, where it is that of one entry's reproduction, have seen the fault."""
    for evidence in (each for each in entry.evidence if each.url.startswith("records/")):
        try:
            record = json.loads((path.parent.parent / evidence.url).read_text(encoding="utf-8"))
        except FileNotFoundError:
            yield f"there is no record {evidence.url}"
            continue
        except (OSError, ValueError) as error:
            yield f"record {evidence.url} cannot be read: {error}"
            continue
        verdict = record.get("verdict", "reproduced") if isinstance(record, dict) else "no record"
        if verdict != "reproduced":
            yield f"record {evidence.url} says {verdict!r}, which is not evidence"
