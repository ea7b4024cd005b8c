"""Imports that are known to fail between two releases, where nobody followed the installed files."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from compatcheck import matrix
from compatcheck.environment import Environment
from compatcheck.matrix._traits import trait_finder
from compatcheck.matrix.matching.match import match_table
from compatcheck.matrix.traits import known_import_missing


def environment(more: dict[str, Any] | None = None, **distributions: str) -> Environment:
    stated = {name.replace("_", "-"): version for name, version in distributions.items()}
    return Environment({"distributions": stated, **(more or {})})


def rows(known: matrix.Matrix) -> Iterator[tuple[str, str, list[str]]]:
    table = known.table("import-failures")
    for package in sorted(set(table) - {"reviewed", "sources", "releases"}):
        for provider, of_provider in table[package].items():
            yield from ((package, provider, row) for row in of_provider)


def untold(known: matrix.Matrix) -> list[tuple[str, str, list[str]]]:
    return [each for each in rows(known) if len(each[2]) == 5]


def test_every_bound_of_every_row_is_told_and_what_it_offers_is_clear(known: matrix.Matrix) -> None:
    for package, provider, row in untold(known):
        ends = {bound.lstrip("<>=") for bound in row[2].split(",")}
        for release, other in ((release, other) for release in row[:2] for other in ends):
            there = Environment({"distributions": {package: release, provider: other}})
            verdict = known_import_missing.find(there, known.table)
            (occurrence,) = verdict.occurrences
            assert row[3] in occurrence.summary
            for pins in (occurrence.pins, occurrence.instead):
                for name, specifier in pins.items():
                    moved = {package: release, provider: other, name: specifier.lstrip("<>=")}
                    assert not known_import_missing.find(Environment({"distributions": moved}), known.table).occurrences


def test_nothing_is_told_of_releases_just_outside_a_row(known: matrix.Matrix) -> None:
    releases = {name: text.split() for name, text in known.table("import-failures")["releases"].items()}
    every = untold(known)
    for package, provider, row in rows(known):
        low, high = (bound.lstrip("<>=") for bound in (row[2].split(",")[0], row[2].split(",")[-1]))
        beside = [(row[0], each) for each in around(releases[provider], low, high)]
        beside += [(each, low) for each in around(releases[package], row[0], row[1])]
        for release, other in beside:
            names = [
                each[3]
                for of, takes_from, each in every
                if (of, takes_from) == (package, provider)
                and Version(each[0]) <= Version(release) <= Version(each[1])
                and other in SpecifierSet(each[2])
            ]
            there = Environment({"distributions": {package: release, provider: other}})
            told = [each.summary for each in known_import_missing.find(there, known.table).occurrences]
            assert len(names) == len(told) <= 1
            assert all(f"imports {name}, which {provider} {other} does not have" in told[0] for name in names)


def around(releases: list[str], first: str, last: str) -> list[str]:
    """The release before the one, and the one after the other."""
    return [*releases[: releases.index(first)][-1:], *releases[releases.index(last) + 1 :][:1]]


def test_rows_are_within_the_releases_that_were_followed(known: matrix.Matrix) -> None:
    releases = known.table("import-failures")["releases"]
    for text in releases.values():
        ordered = list(map(Version, text.split()))
        assert all(low < high for low, high in pairwise(ordered))
        assert not any(each.is_prerelease for each in ordered)
    for package, provider, row in rows(known):
        bounds = [bound.lstrip("<>=") for bound in row[2].split(",")]
        assert set(row[:2]) <= set(releases[package].split())
        assert set(bounds) <= set(releases[provider].split())
        assert row[3].startswith(f"{row[3].partition('.')[0]}.")


def test_what_an_entry_tells_is_left_to_it(known: matrix.Matrix) -> None:
    """Where this fails, run the script that writes the table: it marks what entries tell."""
    entries = {each["id"]: each for each in known.read(None)}
    by_pair: dict[frozenset[str], list[dict[str, Any]]] = {}
    for entry in entries.values():
        tells = entry["impact"] == "import-fail" and "withdrawn" not in entry
        for conditions in entry["affected"] if tells else ():
            ranges = {path[14:]: each for path, each in conditions.items() if path.startswith("distributions.")}
            if set(conditions) <= {f"distributions.{name}" for name in ranges} | {"training.framework"}:
                by_pair.setdefault(frozenset(ranges), []).append(conditions)
    finder = trait_finder(known.table)
    for package, provider, row in rows(known):
        corners = [
            Environment({"distributions": {package: release, provider: bound.lstrip("<>=")}})
            for release in row[:2]
            for bound in row[2].split(",")
        ]
        if len(row) == 6:
            assert "withdrawn" not in entries[row[5]]
            assert not any(known_import_missing.find(corner, known.table).occurrences for corner in corners)
            continue
        for conditions in by_pair.get(frozenset({package, provider}), ()):
            assert any(match_table(conditions, corner, finder).holds is False for corner in corners), row


def test_statements_that_part_of_the_users_run_are_certain_for_those_alone(known: matrix.Matrix) -> None:
    partly = [each for each in untold(known) if each[2][4].endswith("Trainer")]
    assert partly
    for package, provider, row in partly:
        own = row[4][-10:-7].lower()
        versions = {package: row[0], provider: row[2].split(",")[0].lstrip("<>=")}
        for objective, holds in ((own, True), ("grpo", None), (None, None)):
            training = {"training": {"objective": objective}} if objective else {}
            there = Environment({"distributions": versions, **training})
            assert known_import_missing.find(there, known.table).holds is holds


@pytest.mark.parametrize(
    ("training", "holds", "told"),
    [({}, None, 1), ({"use_liger_kernel": True}, None, 1), ({"use_liger_kernel": False}, None, 0)],
)
def test_what_is_known_to_stay_off_is_not_imported(
    known: matrix.Matrix, training: dict[str, Any], holds: bool | None, told: int
) -> None:
    there = environment({"training": training}, liger_kernel="0.5.0", transformers="4.40.2")
    verdict = known_import_missing.find(there, known.table)
    assert (verdict.holds, len(verdict.occurrences)) == (holds, told)


@pytest.mark.parametrize(
    ("distributions", "more", "holds", "told"),
    [
        ({"peft": "0.12.0", "accelerate": "0.20.3"}, {}, True, 1),
        ({"peft": "0.12.0", "accelerate": "0.21.0"}, {}, None, 0),
        ({"peft": "0.12.0", "accelerate": "0.20.3"}, {"unresolved_imports": []}, False, 0),
        ({"peft": "0.12.0", "accelerate": "0.21.0.dev0"}, {}, None, 0),
        ({"peft": "0.12.0.dev0", "accelerate": "0.20.3"}, {}, None, 0),
        ({"peft": "0.12.0+local", "accelerate": "0.20.3"}, {}, True, 1),
        ({"axolotl": "0.12.0", "accelerate": "1.9.0"}, {}, True, 1),
        ({"axolotl": "0.12.0", "accelerate": "1.9.0"}, {"training": {"framework": "axolotl"}}, True, 1),
        ({"axolotl": "0.12.0", "accelerate": "1.9.0"}, {"training": {"framework": "trl"}}, None, 1),
        ({"autoawq": "0.2.6", "transformers": "4.40.2"}, {}, None, 1),
        ({"sentence-transformers": "5.4.0", "transformers": "4.38.2"}, {}, None, 1),
        (
            {"sentence-transformers": "5.4.0", "transformers": "4.38.2"},
            {"training": {"framework": "sentence-transformers"}},
            True,
            1,
        ),
        ({"peft": "0.15.0", "accelerate": "0.20.3"}, {}, None, 0),
    ],
)
def test_certain_is_what_is_surely_used(
    known: matrix.Matrix, distributions: dict[str, str], more: dict[str, Any], holds: bool | None, told: int
) -> None:
    verdict = known_import_missing.find(environment(more, **distributions), known.table)
    assert (verdict.holds, len(verdict.occurrences)) == (holds, told)


def test_both_ways_out_are_offered(known: matrix.Matrix) -> None:
    verdict = known_import_missing.find(environment(peft="0.12.0", accelerate="0.20.3"), known.table)
    (occurrence,) = verdict.occurrences
    assert occurrence.summary.startswith("`import peft` fails: peft 0.12.0 imports accelerate.utils.is_npu_available, ")
    assert occurrence.packages == ("accelerate", "peft")
    assert (occurrence.pins, occurrence.instead) == ({"accelerate": ">=0.21.0"}, {"peft": "<=0.4.0"})


def test_an_environment_without_distributions_imports_nothing(known: matrix.Matrix) -> None:
    assert known_import_missing.find(Environment({"distributions_complete": True}), known.table).holds is None
