"""Run an entry's probe on both sides of each bound, in environments that are really installed.

    python -m tools.bounds CC-2024-1316 CC-2024-2226

For entries on failures of import or installation that say how to reproduce them. Each environment is the bad one of
`[reproduce]` with one release exchanged: the last inside a bound must fail, the first outside must pass. What came of
it is added to matrix/records/bounds.json; the exit status is 1 where a bound is not borne out.
"""

from __future__ import annotations

import json
import sys
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, NamedTuple

import click
from packaging.version import Version

from compatcheck import matrix
from compatcheck.errors import CompatcheckError
from compatcheck.packages.versions import contains, is_range, parse_range, pinned
from tools.matrix.reproduce import build_and_probe, reproducible

RECORD = Path(__file__).parents[1] / "matrix" / "records" / "bounds.json"
_FAILS_AT_START = ("import-fail", "install-fail")


class Trial(NamedTuple):
    """A release of a package in place of the one in the bad environment, and what the probe must say there."""

    package: str
    version: str
    bound: str
    expected: str


def trials(entry: Mapping[str, Any], releases: Mapping[str, Sequence[str]]) -> list[Trial]:
    """The neighbours of each bound that the bad environment lies within, without those that are the same twice."""
    held = _versions(entry)
    within = [table for table in entry["affected"] if _is_met(table, held)]
    found: dict[tuple[str, str], Trial] = {}
    for table in within:
        for package, bound, version in _neighbours(table, held, releases):
            is_bad = any(_is_met(each, {**held, package: version}) for each in entry["affected"])
            found.setdefault((package, version), Trial(package, version, bound, "fail" if is_bad else "pass"))
    return list(found.values())


def _versions(entry: Mapping[str, Any]) -> dict[str, str]:
    """The releases that the bad environment states; what is installed afterwards counts."""
    recipe = entry["reproduce"]
    stated = (text.partition("==") for text in (*recipe["bad"], *recipe.get("bad_afterwards", ())) if pinned_of(text))
    return {name: version for name, _, version in stated}


def pinned_of(requirement: str) -> str | None:
    """The one release that a requirement such as `numpy==2.0.2` names."""
    name, sign, version = requirement.partition("==")
    return pinned(f"{sign}{version}") if sign and name.replace("-", "").isalnum() else None


def _is_met(table: Mapping[str, Any], held: Mapping[str, str]) -> bool:
    """Whether the conditions on versions hold; other packages and settings are not part of such an environment."""
    ranges = {path: text for path, text in table.items() if path.startswith("distributions.") and is_range(text)}
    named = {path.removeprefix("distributions."): parse_range(text) for path, text in ranges.items()}
    return all(name in held and contains(text, Version(held[name])) for name, text in named.items())


def _neighbours(
    table: Mapping[str, Any], held: Mapping[str, str], releases: Mapping[str, Sequence[str]]
) -> Iterator[tuple[str, str, str]]:
    """Each bounded package with the bound, and the release before it, at it or after it."""
    for package in held:
        text = table.get(f"distributions.{package}", "")
        known = list(map(Version, releases.get(package, ())))
        for operator, bound in parse_range(text) if is_range(text) else ():
            at = bisect_left(known, bound) + (operator in ("<=", ">") and bound in known)
            for place in (at - 1, at):
                if 0 <= place < len(known):
                    yield package, f"{operator}{bound}", str(known[place])


def requirements_with(entry: Mapping[str, Any], trial: Trial) -> tuple[list[str], list[str]]:
    """The bad environment's requirements, and what goes over them, with the release exchanged."""

    def exchanged(texts: Sequence[str]) -> list[str]:
        own = f"{trial.package}=="
        return [f"{own}{trial.version}" if text.startswith(own) else text for text in texts]

    recipe = entry["reproduce"]
    return exchanged(recipe["bad"]), exchanged(recipe.get("bad_afterwards", ()))


def run(entry: Mapping[str, Any], trial: Trial) -> dict[str, Any]:
    """What the probe says with that release; "not built" where no such environment can be installed."""
    shape: dict[str, Any] = {**trial._asdict(), "date": datetime.now(timezone.utc).date().isoformat()}
    requirements, afterwards = requirements_with(entry, trial)
    try:
        side = build_and_probe(entry, requirements, afterwards)
    except CompatcheckError as error:
        return {**shape, "outcome": "not built", "why": str(error)[:300]}
    return {**shape, "installed": side.distributions, "outcome": side.result.outcome, "why": side.result.why[:300]}


@click.command()
@click.argument("ids", nargs=-1, metavar="[ID]...")
@click.option("--list", "only_list", is_flag=True, help="Print the environments and build none.")
def command(ids: tuple[str, ...], only_list: bool) -> None:
    """Run both neighbours of each bound of the entries ID. Default: every entry that can be run."""
    known = matrix.load()
    entries = [matrix.find_entry(known, each) for each in ids] if ids else matrix.all_entries(known)
    releases = known.table("release-history")["releases"]
    record = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.is_file() else {}
    is_borne_out = True
    for entry in entries:
        if not reproducible(entry) or entry["impact"] not in _FAILS_AT_START:
            continue
        for trial in trials(entry, releases):
            if only_list:
                click.echo(f"{entry['id']} {trial.package}=={trial.version} {trial.bound} {trial.expected}")
                continue
            done = run(entry, trial)
            click.echo(f"{entry['id']} {trial.package}=={trial.version} {trial.expected}: {done['outcome']}")
            is_borne_out &= done["outcome"] in (trial.expected, "not built")
            others = [each for each in record.get(entry["id"], ()) if _same(each) != _same(done)]
            record[entry["id"]] = [*others, done]
            RECORD.write_text(json.dumps(dict(sorted(record.items())), indent=1) + "\n", encoding="utf-8")
    sys.exit(not is_borne_out)


def _same(done: Mapping[str, Any]) -> tuple[str, str]:
    return done["package"], done["version"]


if __name__ == "__main__":
    command()
