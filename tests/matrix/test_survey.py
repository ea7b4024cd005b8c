"""What is surveyed is what `match` says of each environment."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from compatcheck import matrix
from compatcheck.environment import Environment
from compatcheck.report.pages.site import MAPPED
from compatcheck.report.pages.site._scenarios import GPUS, SETUPS, UNSTATED, models


@pytest.mark.slow
def test_a_survey_tells_of_every_combination_what_match_tells_of_it() -> None:
    random = Random(20)
    known = matrix.load()
    versions = {name: random.sample(list(known.table("release-history")["releases"][name]), 8) for name in MAPPED}
    versions["torch"] = [f"{each}+cu{random.choice((118, 124, 130))}" for each in versions["torch"]]
    torch, *others = [[{"distributions": {name: each}} for each in versions[name]] for name in MAPPED]
    built = {"platform": {"system": "Linux", "machine": "x86_64"}}
    scenarios = (GPUS, SETUPS, models(matrix.all_entries(known)))
    shared = [
        [{**built, **each} for each in torch],
        *([each.facts for each in (UNSTATED, *some)] for some in scenarios),
    ]

    told = 0
    for added, found in zip(others, matrix.survey(known, shared, others)):
        for _ in range(25):
            place = [random.randrange(len(choices)) for choices in (*shared, added)]
            parts = [choices[at] for choices, at in zip((*shared, added), place)]
            findings = matrix.judge(known, Environment(joined(parts))).findings
            matched = {finding.id: finding.status for finding in findings}
            surveyed = {each.id: each.statuses.get(tuple(place[at] for at in each.dimensions)) for each in found}
            assert {name: status for name, status in surveyed.items() if status} == matched, parts
            told += len(matched)
    assert told > 80


def joined(parts: list[dict[str, Any]]) -> dict[str, Any]:
    facts = {name: value for part in parts for name, value in part.items()}
    named = {name: version for part in parts for name, version in part.get("distributions", {}).items()}
    return {**facts, "distributions": named}
