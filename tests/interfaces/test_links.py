"""What installed releases ask of each other, by the tables that are shipped and by small ones."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from packaging.version import Version

from compatcheck import matrix
from compatcheck.environment import Environment
from compatcheck.interfaces.history import Interfaces, is_in
from compatcheck.interfaces.links import broken_links
from compatcheck.matrix.traits import asked_of_release_without_it


def small(name: str) -> Mapping[str, Any]:
    rows = [
        ["import", "b.gone", "gone", "a/x.py", "import a", "", ">=1.0", "<2.0", ""],
        ["import", "b.new", "new", "a/y.py", "import a", "+c", ">=1.0", ">=2.0", ""],
        ["keyword", "b.f", "old", "a/z.py", "run", "b>=3.0", ">=1.0", "<4.0", ">=4.0,<5.0"],
    ]
    read = {"a": "1.0 1.1", "b": "1.0 2.0 3.0 4.0 5.0", "c": "1"}
    tables = {"interfaces/index": {"releases": read}, "links/a": {"b": rows}}
    return tables.get(name, {})


@pytest.mark.parametrize(
    ("releases", "names"),
    [
        ({"a": "1.0", "b": "1.0"}, []),
        ({"a": "1.0", "b": "2.0"}, ["gone"]),
        ({"a": "1.0", "b": "1.0", "c": "1"}, ["new"]),
        ({"a": "1.0", "b": "4.0"}, ["gone", "old"]),
        ({"a": "1.0", "b": "5.0"}, ["gone"]),
        ({"a": "0.9", "b": "2.0"}, []),
        ({"a": "1.0", "b": "1.5"}, []),
        ({"a": "1.0", "b": "3.5"}, ["gone"]),
        ({"a": "1.0.5", "b": "9.0"}, ["gone"]),
        ({"a": "1.0", "b": "0.9", "c": "1"}, []),
        ({"a": "1.0"}, []),
    ],
)
def test_a_link_breaks_within_its_runs_and_under_its_conditions(releases: dict[str, str], names: list[str]) -> None:
    stated = {name: Version(text) for name, text in releases.items()}
    assert [link.name for link in broken_links(small, stated)] == names


def rows(known: matrix.Matrix) -> Iterator[tuple[str, str, list[str]]]:
    for package in sorted(known.table("interfaces/index")["releases"]):
        for provider, listed in known.table(f"links/{package}").items():
            yield from ((package, provider, row) for row in listed)


def test_every_sampled_row_is_told_in_its_runs_and_not_outside_of_them(known: matrix.Matrix) -> None:
    interfaces = Interfaces(known.table)
    sample = random.Random(7).sample(list(rows(known)), 300)
    told = 0
    for package, provider, row in sample:
        asking = [each for each in interfaces.releases(package) if is_in(Version(each), row[6].split())]
        lacking = [each for each in interfaces.releases(provider) if not is_in(Version(each), row[7].split())]
        having = [each for each in interfaces.releases(provider) if is_in(Version(each), row[7].split())]
        if not (asking and lacking and having) or row[5]:
            continue
        here = Version(asking[-1])
        bad = list(broken_links(known.table, {package: here, provider: Version(lacking[-1])}))
        good = list(broken_links(known.table, {package: here, provider: Version(having[-1])}))
        assert row[8] or (row[1], row[2]) in {(link.target, link.name) for link in bad}
        assert (row[1], row[2], row[0]) not in {(link.target, link.name, link.kind) for link in good}
        told += 1
    assert told > 150


def verdict(known: matrix.Matrix, more: dict[str, Any] | None = None, **distributions: str) -> Any:
    stated = {name.replace("_", "-"): version for name, version in distributions.items()}
    return asked_of_release_without_it.find(Environment({"distributions": stated, **(more or {})}), known.table)


def test_what_is_offered_links(known: matrix.Matrix) -> None:
    for stated in (
        {"peft": "0.12.0", "accelerate": "0.20.3"},
        {"trl": "0.11.4", "transformers": "5.0.0"},
        {"sentence_transformers": "2.2.2", "huggingface_hub": "0.26.0"},
    ):
        for occurrence in verdict(known, **stated).occurrences:
            for pins in (occurrence.pins, occurrence.instead):
                moved = {name.replace("-", "_"): text.lstrip("<>=") for name, text in pins.items()}
                still = {each.summary.partition(" ")[2] for each in verdict(known, **{**stated, **moved}).occurrences}
                assert occurrence.summary.partition(" ")[2].partition(",")[0] not in still, (stated, moved)


def test_what_a_run_may_not_reach_is_left_open(known: matrix.Matrix) -> None:
    stated = {"sentence_transformers": "2.2.2", "huggingface_hub": "0.26.0"}
    assert verdict(known, {"distributions_requested": ["bertopic"]}, **stated).holds is None
    used = {"training": {"framework": "sentence-transformers"}, "distributions_requested": ["bertopic"]}
    assert verdict(known, used, **stated).holds is True


def test_what_every_objective_asks_is_certain_and_told_once(known: matrix.Matrix) -> None:
    stated = {"trl": "0.12.2", "transformers": "4.45.2"}
    found = verdict(known, **stated)
    assert found.holds is True
    assert [each.summary.partition(" (")[0] for each in found.occurrences] == [
        "trl 0.12.2 passes transformers.Trainer.__init__ the argument processing_class, "
        "which transformers 4.45.2 does not take"
    ]
    assert verdict(known, {"training": {"objective": "kto"}}, **stated).holds is None


def test_a_class_of_another_objective_than_the_known_one_is_not_used(known: matrix.Matrix) -> None:
    stated = {"trl": "0.12.0", "transformers": "5.0.0"}
    other = verdict(known, {"training": {"objective": "sft"}}, **stated)
    assert other.holds is not True
    assert not any("dpo_trainer" in each.summary for each in other.occurrences)
    assert verdict(known, {"training": {"objective": "dpo"}}, **stated).holds


def test_a_plugin_is_reached_with_its_settings_alone(known: matrix.Matrix) -> None:
    stated = {"accelerate": "0.12.0", "torch": "2.4.1"}
    assert verdict(known, **stated).holds is None
    assert verdict(known, {"training": {"fsdp": {"sharding_strategy": "FULL_SHARD"}}}, **stated).holds is True


def test_import_of_a_package_that_no_other_requires_is_certain(known: matrix.Matrix) -> None:
    stated = {"sentence_transformers": "2.2.2", "huggingface_hub": "0.26.0"}
    (found,) = verdict(known, **stated).occurrences
    assert found.summary.startswith(
        "`import sentence_transformers` fails in this environment: sentence-transformers 2.2.2"
    )
    assert verdict(known, **stated).holds is True
    assert verdict(known, setfit="0.7.0", **stated).holds is None


def test_where_the_files_were_followed_imports_are_left_to_that(known: matrix.Matrix) -> None:
    assert verdict(known, peft="0.12.0", accelerate="0.20.3").holds is True
    assert verdict(known, {"unresolved_imports": []}, peft="0.12.0", accelerate="0.20.3").holds is False


def test_without_tables_nothing_is_told() -> None:
    there = Environment({"distributions": {"peft": "0.12.0", "accelerate": "0.20.3"}})
    assert asked_of_release_without_it.find(there, lambda name: {}).occurrences == ()


_LOCK = {f"package-{number}": "1.0" for number in range(25)}


@pytest.mark.parametrize(
    ("more", "holds"),
    [
        ({"distributions_complete": True}, True),
        ({}, None),
        ({"distributions_complete": True, "distributions": {"bitsandbytes": "0.43.0", "torch": "2.2.2"}}, None),
    ],
)
def test_undeclared_package_that_is_not_installed(
    known: matrix.Matrix, more: dict[str, Any], holds: bool | None
) -> None:
    stated = {"distributions": {"bitsandbytes": "0.41.3.post2", "torch": "2.2.2"}, **more}
    found = asked_of_release_without_it.find(Environment(stated), known.table)
    assert found.holds is holds
    if holds:
        (told,) = found.occurrences
        assert "imports scipy, which is neither installed nor declared" in told.summary and told.pins == {"scipy": ""}


def test_a_list_with_all_that_is_required_tells_what_is_not_installed(known: matrix.Matrix) -> None:
    lock = {**_LOCK, "bitsandbytes": "0.41.3.post2"}
    (told,) = asked_of_release_without_it.find(Environment({"distributions": lock}), known.table).occurrences
    assert "scipy" in told.summary
    for other in ({**lock, "scipy": "1.13.0"}, {**lock, "peft": "0.12.0"}):
        assert asked_of_release_without_it.find(Environment({"distributions": other}), known.table).occurrences == ()
