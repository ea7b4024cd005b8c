"""The pasted text of a report against its snapshot: the facts and the findings that both can hold."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from compatcheck import matrix
from compatcheck.bug_report import read_report
from compatcheck.environment import Environment
from compatcheck.results.findings import Finding
from tools.labelled.findings import findings_of
from tools.labelled.snapshot import snapshot


class Difference(NamedTuple):
    """One fact or finding that the pasted text and the snapshot of a case do not share."""

    id: str
    what: str
    pasted: str
    given: str
    explained: str


def compared(known: matrix.Matrix, case: Mapping[str, Any]) -> tuple[list[Difference], bool]:
    """How the pasted text differs from the snapshot on the facts that both can hold, and whether findings agree."""
    given = snapshot(case)
    pasted = read_report(case["env_block"], "env_block")
    differences = list(_facts_compared(case, given, pasted))
    training = Environment({key: given.facts[key] for key in ("training", "model") if key in given.facts})
    shared = _restricted(given, pasted)
    ours = _statuses(findings_of(known, pasted.overlay(training)))
    theirs = _statuses(findings_of(known, shared.overlay(training)))
    for found in sorted(ours.keys() | theirs.keys()):
        if ours.get(found) != theirs.get(found):
            differences.append(Difference(case["id"], found, ours.get(found, "-"), theirs.get(found, "-"), "finding"))
    return differences, ours == theirs


def _statuses(found: tuple[Finding, ...]) -> dict[str, str]:
    return {finding.id: finding.status for finding in found}


def _facts_compared(case: Mapping[str, Any], given: Environment, pasted: Environment) -> Iterator[Difference]:
    for path, value in _flat({key: each for key, each in given.facts.items() if key not in ("training", "model")}):
        ours = pasted.get(path) if path != "gpus" else pasted.facts.get("gpus")
        if path == "gpus":
            names = [each.get("name", "").lower() for each in ours or ()]
            if not names and not any(
                word in case["env_block"].lower() for word in value[0]["name"].lower().split()[-2:]
            ):
                continue
            if not names or not _alike(names[0], value[0]["name"].lower()):
                yield Difference(case["id"], path, str(names), str(value), pasted.reasons.get(path, ""))
            continue
        if isinstance(ours, (str, int)) and _same_version(str(ours), str(value)):
            continue
        if not isinstance(ours, (str, int)):
            if not _stands_in(str(value), case["env_block"]):
                continue
            yield Difference(case["id"], path, "unknown", str(value), pasted.reasons.get(path, ""))
        else:
            yield Difference(case["id"], path, str(ours), str(value), "")


def _alike(one: str, other: str) -> bool:
    words = [
        set(re.findall(r"[a-z]+\d+[a-z]*|\d+|[a-z]+", each)) - {"nvidia", "geforce", "tesla"} for each in (one, other)
    ]
    return words[0] <= words[1] or words[1] <= words[0]


def _same_version(one: str, other: str) -> bool:
    bare = [each.partition("+")[0].lower() for each in (one, other)]
    return bare[0] == bare[1] or bare[0].startswith(f"{bare[1]}.") or bare[1].startswith(f"{bare[0]}.")


def _stands_in(value: str, text: str) -> bool:
    return re.search(rf"(?<![\w.-]){re.escape(value.partition('+')[0])}(?![\w]*\.?\d)", text, re.I) is not None


def _flat(known: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in known.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{above}{key}.")
        else:
            yield f"{above}{key}", value


def _restricted(given: Environment, pasted: Environment) -> Environment:
    """The snapshot on the facts that the pasted text holds, which may be more exact, with what only the text holds."""
    kept: dict[str, Any] = {}
    for section, value in pasted.facts.items():
        theirs = given.facts.get(section)
        if isinstance(value, Mapping) and isinstance(theirs, Mapping):
            kept[section] = {key: theirs.get(key, each) for key, each in value.items()}
            kept[section] |= {key: each for key, each in value.items() if _more_exact(each, theirs.get(key))}
        elif section == "python":
            kept[section] = value if _more_exact(value, theirs) else theirs or value
        elif section == "gpus" and theirs and _alike(value[0]["name"].lower(), theirs[0]["name"].lower()):
            kept[section] = value
        else:
            kept[section] = theirs or value
    return Environment(kept, given.reasons)


def _more_exact(ours: Any, theirs: Any) -> bool:
    return isinstance(ours, str) and isinstance(theirs, str) and _same_version(ours, theirs)
