"""Which environments stand on both sides of each bound."""

from __future__ import annotations

from typing import Any

from compatcheck import matrix
from tools.bounds import Trial, requirements_with, trials


def entry(known: matrix.Matrix, name: str) -> dict[str, Any]:
    return dict(matrix.find_entry(known, name))


def test_both_sides_of_each_bound_are_tried(known: matrix.Matrix) -> None:
    releases = known.table("release-history")["releases"]
    assert trials(entry(known, "CC-2024-1316"), releases) == [
        Trial("gensim", "4.3.2", "<4.3.3", "fail"),
        Trial("gensim", "4.3.3", "<4.3.3", "pass"),
        Trial("scipy", "1.12.0", ">=1.13.0", "pass"),
        Trial("scipy", "1.13.0", ">=1.13.0", "fail"),
    ]


def test_release_past_a_closed_bound_is_tried(known: matrix.Matrix) -> None:
    releases = known.table("release-history")["releases"]
    tried = {(each.version, each.expected) for each in trials(entry(known, "CC-2024-0219"), releases)}
    assert {("4.44.2", "fail"), ("4.45.0", "pass"), ("4.39.3", "pass"), ("4.40.0", "fail")} <= tried


def test_neighbour_in_another_table_must_fail_too(known: matrix.Matrix) -> None:
    text = {"distributions.torch": ">=2.5.0,<2.6.0"}
    other = {"distributions.torch": ">=2.6.0,<2.7.0"}
    made = {"affected": [text, other], "reproduce": {"bad": ["torch==2.5.1"]}}
    releases = {"torch": ["2.4.1", "2.5.0", "2.5.1", "2.6.0"]}
    assert [(each.version, each.expected) for each in trials(made, releases)] == [
        ("2.4.1", "pass"),
        ("2.5.0", "fail"),
        ("2.5.1", "fail"),
        ("2.6.0", "fail"),
    ]


def test_release_is_exchanged_where_it_is_installed(known: matrix.Matrix) -> None:
    trial = Trial("tokenizers", "0.19.1", ">=0.20.0", "pass")
    requirements, afterwards = requirements_with(entry(known, "CC-2024-0219"), trial)
    assert "transformers==4.44.2" in requirements and afterwards == ["tokenizers==0.19.1"]
