"""What a check says of example scripts, compared with what breaks of them in real environments.

    python -m tools.score_examples CORPUS ENVIRONMENTS --truth FILE [--only NAME] [--every N] [--details]

CORPUS holds ``index.json``, a list of scripts with ``project``, ``version`` and ``file``. Each folder of ENVIRONMENTS
is a virtual environment. The imports, attributes and calls of every script are tried in every environment. FILE keeps
what came of that, and an environment that is in FILE is not run again. A script is at its *own tag* in an environment
with the very release of its project, and should have no finding there that is not true.
"""

from __future__ import annotations

import argparse
import functools
import json
import re
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple
from unittest import mock

from compatcheck.files import storage
from tools.example_scripts import truth
from tools.example_scripts.truth import Outcome, Truth
from tools.example_scripts.uses import is_library, read_uses

ENTRIES = ("CC-2026-3125", "CC-2026-3701")
"""The entries that claim what a script takes from a library is not there."""

Verdict = Literal["true", "false", "open"]


class Claim(NamedTuple):
    """A finding that is located in a script."""

    id: str
    line: int
    text: str


class Score(NamedTuple):
    """One script in one environment; of each use that breaks, the first outcome."""

    claims: tuple[tuple[Claim, Verdict], ...]
    told: tuple[Outcome, ...]
    missed: tuple[Outcome, ...]
    inside: tuple[Outcome, ...]


def speaks_of(claim: Claim, outcome: Outcome) -> bool:
    """Whether a claim is about the place and the name of an outcome."""
    name = outcome.name.rpartition(".")[2]
    return outcome.line <= claim.line <= outcome.end and bool(re.search(rf"\b{re.escape(name)}\b", claim.text))


def score(claims: Sequence[Claim], outcomes: Iterable[Outcome], entries: Sequence[str] = ENTRIES) -> Score:
    """Judge the claims of ``entries``; a use that breaks is told where any claim speaks of something in it."""
    known = tuple(outcomes)
    judged = tuple((claim, judge(claim, known)) for claim in claims if claim.id in entries)
    uses: dict[tuple[int, int, str], list[Outcome]] = {}
    for each in known:
        if each.state == "breaks":
            uses.setdefault((each.line, each.end, each.target), []).append(each)
    broken = {use[0]: any(speaks_of(claim, part) for claim in claims for part in use) for use in uses.values()}
    own = {each: told for each, told in broken.items() if each.kind != "inside"}
    return Score(
        judged,
        told=tuple(each for each, told in own.items() if told),
        missed=tuple(each for each, told in own.items() if not told),
        inside=tuple(each for each in broken if each.kind == "inside"),
    )


def judge(claim: Claim, outcomes: Iterable[Outcome]) -> Verdict:
    """True where something of that name breaks there, false where all of that name works, else open."""
    states = {each.state for each in outcomes if speaks_of(claim, each)}
    if "breaks" in states:
        return "true"
    return "false" if states == {"works"} else "open"


def forecast(python: Path, scripts: Iterable[Path]) -> Iterator[tuple[Path, list[Claim] | None]]:
    """What a check of each script says of places in it; None where it does not know the file as a script."""
    import compatcheck
    from compatcheck import matrix
    from compatcheck.installed import collect

    once = functools.lru_cache(maxsize=None)
    with (
        mock.patch.object(collect, "collect", once(collect.collect)),
        mock.patch.object(matrix, "load", once(matrix.load)),
    ):
        for script in scripts:
            try:
                found = compatcheck.check(script, python=python, probe=False).findings
            except compatcheck.CompatcheckError:
                yield script, None
                continue
            yield (
                script,
                [
                    Claim(each.id, each.location.line, f"{each.title} {each.summary}")
                    for each in found
                    if each.status in {"affected", "confirmed"}
                    if each.location is not None and each.location.line and each.location.file == str(script)
                ],
            )


def outcomes(environments: Iterable[Path], scripts: Mapping[str, str], kept: Path | None) -> dict[str, Any]:
    """What breaks in each environment, with its versions: as recorded, and else by running it."""
    recorded: dict[str, Any] = json.loads(kept.read_text()) if kept is not None and kept.exists() else {}
    uses: dict[str, list[Any]] = {}
    for environment in environments:
        if environment.name in recorded and recorded[environment.name]["scripts"].keys() >= scripts.keys():
            continue
        uses = uses or {
            file: [use for use in read_uses(text) if is_library(use.reference.module)] for file, text in scripts.items()
        }
        started, python = time.monotonic(), environment / "bin" / "python"
        found = truth.dump(truth.run(python, uses))
        recorded[environment.name] = {"versions": truth.versions(python), "scripts": found}
        print(f"{environment.name}: run in {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)
        if kept is not None:
            storage.write(str(kept), json.dumps(recorded))
    return recorded


class Tally:
    """Sums over scripts and environments, for scripts at their own tag and for others."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.kinds: Counter[tuple[str, str]] = Counter()

    def add(self, result: Score) -> None:
        self.counts["scripts"] += 1
        self.counts["with a claim"] += bool(result.claims)
        self.counts.update(verdict for _, verdict in result.claims)
        self.counts.update({"told": len(result.told), "missed": len(result.missed), "inside": len(result.inside)})
        self.kinds.update(("told", each.kind) for each in result.told)
        self.kinds.update(("missed", each.kind) for each in result.missed)

    def lines(self) -> Iterator[str]:
        told = share(self.counts["told"], self.counts["missed"])
        right = share(self.counts["true"], self.counts["false"])
        yield "{scripts} scripts, {with a claim} with a claim, {refused} not known as scripts".format_map(self.counts)
        yield "claims: {true} true, {false} false, {open} open; ".format_map(self.counts) + f"{right} true"
        yield (
            "breaks: {told} told, {missed} missed, {inside} inside packages; ".format_map(self.counts) + f"{told} told"
        )
        for kind in sorted({kind for _, kind in self.kinds}):
            yield f"  {kind}: {self.kinds['told', kind]} told, {self.kinds['missed', kind]} missed"


def share(part: int, rest: int) -> str:
    return f"{part / (part + rest):.1%}" if part + rest else "-"


def details(environment: str, file: str, own: bool, result: Score) -> Iterator[str]:
    """A line for everything that is not as it should be."""
    where = f"{environment} {'own' if own else 'other'} {file}"
    for claim, verdict in result.claims:
        if verdict != "true" or own:
            yield f"{verdict.upper()}\t{where}:{claim.line}\t{claim.id}\t{claim.text}"
    for each in result.missed:
        yield f"MISSED\t{where}:{each.line}\t{each.kind}\t{each.target} {each.name}: {each.text}"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("corpus", type=Path)
    parser.add_argument("environments", type=Path)
    parser.add_argument("--truth", type=Path, help="file that keeps what was run")
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="score this environment only")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="score each Nth script only")
    parser.add_argument("--details", action="store_true", help="list false and open claims, and missed breaks")
    options = parser.parse_args()
    index = json.loads((options.corpus / "index.json").read_text())
    scripts = {row["file"]: (options.corpus / row["file"]).read_text() for row in index}
    folders = sorted(each for each in options.environments.iterdir() if (each / "bin" / "python").exists())
    folders = [each for each in folders if not options.only or each.name in options.only]
    recorded = outcomes(folders, scripts, options.truth)
    own, others = Tally(), Tally()
    for folder in folders:
        there = recorded[folder.name]
        real: Truth = truth.load(there["scripts"])
        rows = {str(options.corpus / row["file"]): row for row in index[:: options.every]}
        for script, claims in forecast(folder / "bin" / "python", map(Path, rows)):
            row = rows[str(script)]
            is_own = there["versions"].get(row["project"]) == row["version"]
            result = score(claims or [], real[row["file"]])
            (own if is_own else others).add(result)
            (own if is_own else others).counts["refused"] += claims is None
            if options.details:
                for line in details(folder.name, row["file"], is_own, result):
                    print(line)
        print(f"{folder.name}: done", file=sys.stderr, flush=True)
    for name, tally in (("own tag", own), ("other releases", others)):
        print(name, *tally.lines(), sep="\n  ")
    return 0


if __name__ == "__main__":
    sys.exit(main())
