from __future__ import annotations

from pathlib import Path

import pytest

from compatcheck.environment import Target
from compatcheck.installed import distributions
from tests.installed.conftest import Install


def names(target: Target) -> dict[str, str]:
    found: dict[str, str] = distributions.collect(target).facts["distributions"]
    return found


def problems(target: Target) -> list[dict[str, str]]:
    found: list[dict[str, str]] = distributions.collect(target).facts.get("distribution_problems", [])
    return found


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ("torch-2.5.0+cu118.dist-info", {"torch": "2.5.0+cu118"}),
        ("flash_attn-2.7.4.post1.dist-info", {"flash-attn": "2.7.4.post1"}),
        ("ruamel.yaml-0.18.6.dist-info", {"ruamel-yaml": "0.18.6"}),
        ("torch-2.5.0a0+872d972e41.nv24.08.dist-info", {"torch": "2.5.0a0+872d972e41.nv24.08"}),
        ("PyYAML-6.0-py3.11.egg-info", {"pyyaml": "6.0"}),
        ("apex-0.1-py3.10-linux_x86_64.egg-info", {"apex": "0.1"}),
        ("setuptools-65.5.0.egg-info", {"setuptools": "65.5.0"}),
    ],
)
def test_the_folder_name_is_enough(site: Path, target: Target, entry: str, expected: dict[str, str]) -> None:
    (site / entry).mkdir()
    assert names(target) == expected
    assert distributions.collect(target).facts["distributions_complete"] is True


def test_the_metadata_counts_where_the_name_states_no_version(site: Path, target: Target) -> None:
    (site / "legacy.egg-info").mkdir()
    (site / "legacy.egg-info" / "PKG-INFO").write_text("Name: legacy\nVersion: 1.4\n\n")
    (site / "single-1.0_1.egg-info").write_text("Name: single\nVersion: 1.0-1\n")
    assert names(target) == {"legacy": "1.4", "single": "1.0-1"}


def test_metadata_in_latin_1_is_read(site: Path, target: Target) -> None:
    (site / "old.egg-info").write_bytes(b"Name: old\nAuthor: Ren\xe9\nVersion: 0.3\n")
    assert names(target) == {"old": "0.3"}


def test_a_version_nobody_states_is_unknown_and_not_absent(site: Path, target: Target) -> None:
    (site / "nameless.egg-info").mkdir()
    facts = distributions.collect(target)
    assert facts.facts["distributions"] == {}
    assert facts.facts["distributions_complete"] is False
    assert "has no version" in facts.reasons["distributions.nameless"]
    assert "has no version" in facts.facts["distribution_problems"][0]["problem"]


def test_the_first_on_the_path_wins_and_the_other_is_reported(
    tmp_path: Path, site: Path, target: Target, install: Install
) -> None:
    later = tmp_path / "later"
    install("torch-2.5.0")
    install("numpy-1.26.0")
    install("torch-2.4.0", into=later)
    install("numpy-1.26.0", into=later)
    both = target._replace(search_path=(str(site), str(later)))
    assert names(both) == {"numpy": "1.26.0", "torch": "2.5.0"}
    assert problems(both) == [
        {"path": str(later / "torch-2.4.0.dist-info"), "problem": f"shadowed by version 2.5.0 in {site}"}
    ]


def test_of_two_in_one_folder_the_one_with_metadata_wins(site: Path, target: Target, install: Install) -> None:
    (site / "torch-2.4.0.dist-info").mkdir()
    install("torch-2.5.0")
    assert names(target) == {"torch": "2.5.0"}
    (problem,) = problems(target)
    assert problem["path"] == "torch-2.4.0.dist-info"
    assert "installed twice" in problem["problem"]


def test_a_half_removed_distribution_is_a_problem_and_no_distribution(site: Path, target: Target) -> None:
    (site / "~orch-2.5.0.dist-info").mkdir()
    (site / "-ip-23.0.dist-info").mkdir()
    assert names(target) == {}
    assert [problem["path"] for problem in problems(target)] == [
        "-ip-23.0.dist-info",
        "~orch-2.5.0.dist-info",
    ]
    assert problems(target)[1]["problem"] == "left over from an interrupted uninstall"


def test_a_legacy_editable_install_is_found_through_its_link(
    tmp_path: Path, site: Path, target: Target, install: Install
) -> None:
    source = tmp_path / "source"
    install("mine-0.5", into=source, suffix=".egg-info")
    (source / "mine-0.5.egg-info").rename(source / "mine.egg-info")
    (site / "mine.egg-link").write_text(f"{source}\n.\n")
    reached = target._replace(search_path=(str(site), str(source)))
    assert names(reached) == {"mine": "0.5"}
    assert problems(reached) == []


@pytest.mark.parametrize("path", ["missing", "a-file"])
def test_a_search_path_that_is_no_folder_is_harmless(tmp_path: Path, target: Target, path: str) -> None:
    (tmp_path / "a-file").write_text("")
    found = distributions.scan(target._replace(search_path=(str(tmp_path / path),)))
    assert found.installed == ()
