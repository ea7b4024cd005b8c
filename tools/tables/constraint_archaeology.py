"""What maintainers learnt about earlier releases: caps, excludes and floors that come and go in a package's history.

    python tools/tables/constraint_archaeology.py REPOSITORY --package trl [--drafts DIR] [--of transformers,torch]

REPOSITORY is a git directory with the release tags. A cap or an exclude that appears in a release speaks of the
releases before it, which do not declare it; a floor that code requires speaks of those from then on. Of a comparison
only the code tells what follows. What breaks, and whether it does, has to be read in the commit: drafts are to be
finished by hand.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parents[2]))

from tools.tables import _history
from tools.tables._history import Commit, Constraint

CAPS = ("<", "<=", "!=")
FLOORS = (">", ">=", "~=")


class Life(NamedTuple):
    """A constraint from the first release that states it to the first that no longer does (None: the newest has it)."""

    constraint: Constraint
    path: str
    before: str
    since: str
    until: str | None
    commit: Commit | None


def lives(repository: Path, names: Sequence[str] = ()) -> Iterator[Life]:
    """Every cap, exclude or floor that appears after the first release, in the order of appearance."""
    tags = list(_history.release_tags(repository))
    stated = {tag: _history.constraints(repository, tag) for tag in tags}
    for before, since in zip(tags, tags[1:]):
        for constraint, path in stated[since].items():
            if constraint in stated[before] or (names and constraint.name not in names):
                continue
            later = tags[tags.index(since) :]
            until = next((tag for tag in later if constraint not in stated[tag]), None)
            commit = _history.introducing(repository, constraint, path, (before, since))
            yield Life(constraint, path, before, since, until, commit)


def concerned(life: Life) -> tuple[str, str] | None:
    """The range of the package and the one of the other that do not go together, None where nothing follows."""
    operator, bound = _parts(life.constraint.clause)
    if life.constraint.kind == "compares":
        return None
    if operator in CAPS and not bound.endswith(".*"):
        package = f"<{_version(life.until or life.since)}"
        return package, {"<": f">={bound}", "<=": f">{bound}", "!=": f"=={bound}"}[operator]
    if operator in FLOORS and life.constraint.kind == "requires":
        package = f">={_version(life.since)}" + (f",<{_version(life.until)}" if life.until else "")
        return package, f"<{bound}" if operator != ">" else f"<={bound}"
    return None


def told(life: Life) -> str:
    """One line about a life."""
    end = f", gone in {life.until}" if life.until else ""
    commit = f"; {life.commit.hash[:10]} {life.commit.date} {life.commit.subject}" if life.commit else ""
    name, clause, kind = life.constraint
    return f"{life.since} {kind} {name}{clause} in {life.path}{end}{commit}"


def draft(package: str, life: Life, ranges: tuple[str, str], address: str) -> str:
    """A proposed entry: its ranges and its evidence; what is seen, why, and the bounds are to be found out."""
    name = life.constraint.name
    where = f"{address}/commit/{life.commit.hash}" if life.commit else f"{address}/blob/{life.since}/{life.path}"
    date = life.commit.date if life.commit else ""
    return (
        f'id = "CC-0000-0000"\ntitle = {json.dumps(f"{package} {ranges[0]} with {name} {ranges[1]}")}\n'
        f'confidence = "reported"\npackages = {json.dumps([package, name])}\npublished = {date}\n\n'
        f"[[affected]]\ndistributions.{package} = {json.dumps(ranges[0])}\n"
        f"distributions.{name} = {json.dumps(ranges[1])}\n\n"
        f'[[evidence]]\nurl = {json.dumps(where)}\nkind = "maintainer"\nsupports = ["affected"]\n'
        f"note = {json.dumps(told(life))}\n"
    )


def _parts(clause: str) -> tuple[str, str]:
    match = re.match(r"([<>=!~]+)(.+)", clause)
    return (match[1], match[2]) if match else ("", clause)


def _version(tag: str) -> str:
    return tag.lstrip("v")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("repository", type=Path)
    parser.add_argument("--package", required=True, help="the name of the distribution")
    parser.add_argument("--address", default="", help="where the repository can be read, for the evidence")
    parser.add_argument("--of", default="", help="only constraints on these packages")
    parser.add_argument("--drafts", type=Path, help="write a draft entry for each that speaks of other releases")
    arguments = parser.parse_args()
    names = [name for name in arguments.of.split(",") if name]
    for number, life in enumerate(lives(arguments.repository, names)):
        print(told(life))
        ranges = concerned(life)
        if arguments.drafts and ranges:
            arguments.drafts.mkdir(parents=True, exist_ok=True)
            text = draft(arguments.package, life, ranges, arguments.address or str(arguments.repository))
            (arguments.drafts / f"{number:03}-{life.constraint.name}.toml").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
