"""What each release of a compiled package is built for, beside the torch that is there."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from packaging.version import Version

from compatcheck import matrix
from compatcheck.environment import Environment
from compatcheck.matrix.traits import built_for_another_torch
from tools.tables import _metadata, built_for_torch

METADATA = "Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{requires}"


def environment(more: dict[str, Any] | None = None, **distributions: str) -> Environment:
    return Environment({"distributions": distributions, **(more or {})})


@pytest.mark.parametrize(
    ("distributions", "pins", "instead"),
    [
        ({"vllm": "0.3.2", "torch": "2.2.1"}, {"vllm": "==0.4.1"}, {"torch": "==2.1.2"}),
        ({"xformers": "0.0.28.post1", "torch": "2.5.0+cu124"}, {"xformers": "==0.0.28.post2"}, {"torch": "==2.4.1"}),
        (
            {"xformers": "0.0.28.post1", "torch": "2.5.1"},
            {"xformers": ">=0.0.28.post3,<=0.0.29.post1"},
            {"torch": "==2.4.1"},
        ),
        ({"torchcodec": "0.9.1+cu128", "torch": "2.8.0"}, {"torchcodec": "~=0.7.0"}, {"torch": "~=2.9.0"}),
        ({"torchcodec": "0.14.0", "torch": "2.10.0"}, {"torchcodec": "~=0.10.0"}, {"torch": "~=2.11.0"}),
        ({"vllm": "0.19.0", "torch": "1.13.1"}, {"torch": "==2.10.0"}, {}),
    ],
)
def test_either_of_the_two_can_move(
    known: matrix.Matrix, distributions: dict[str, str], pins: dict[str, str], instead: dict[str, str]
) -> None:
    verdict = built_for_another_torch.find(environment(**distributions), known.table)
    (occurrence,) = verdict.occurrences
    assert (verdict.holds, occurrence.pins, occurrence.instead) == (True, pins, instead)


def test_a_finding_offers_both(known: matrix.Matrix) -> None:
    found = matrix.judge(known, environment(xformers="0.0.28.post1", torch="2.5.0")).findings
    (finding,) = (each for each in found if each.id == "CC-2026-0700")
    assert [remedy.pins for remedy in finding.remedies[:2]] == [{"xformers": "==0.0.28.post2"}, {"torch": "==2.4.1"}]
    assert "torch 2.5.0 is installed, which matches xformers 0.0.28.post2" in finding.summary


@pytest.mark.parametrize(
    ("distributions", "more", "holds"),
    [
        ({"vllm": "0.10.0", "torch": "2.7.0"}, {}, False),
        ({"vllm": "0.10.2", "torch": "2.7.1"}, {}, True),
        ({"xformers": "0.0.34", "torch": "2.11.0"}, {}, False),
        ({"xformers": "0.0.34", "torch": "2.9.1"}, {}, True),
        ({"xformers": "0.0.22.post3", "torch": "2.1.0"}, {}, False),
        ({"vllm": "0.6.3+rocm614", "torch": "2.6.0"}, {}, False),
        ({"vllm": "0.6.3+cu118", "torch": "2.6.0"}, {}, True),
        ({"vllm": "0.34.0rc1", "torch": "2.6.0"}, {}, False),
        ({"vllm": "0.6.3", "torch": "2.6.0"}, {"unmet_requirements": []}, False),
        ({"torchcodec": "0.7.0", "torch": "2.6.0"}, {"unmet_requirements": []}, True),
        ({"vllm": "0.6.3", "torch": "2.6.0a0+df5bbc0.nv24.12"}, {}, None),
        ({"vllm": "0.6.3", "torch": "2.6.0.dev20241112+cu121"}, {}, None),
        ({"vllm": "0.6.3"}, {}, None),
    ],
)
def test_only_another_minor_release_of_torch_counts(
    known: matrix.Matrix, distributions: dict[str, str], more: dict[str, Any], holds: bool | None
) -> None:
    assert built_for_another_torch.find(environment(more, **distributions), known.table).holds is holds


def test_runs_of_releases_do_not_overlap(known: matrix.Matrix) -> None:
    for rows in known.table("built-for-torch")["declared"].values():
        bounds = [Version(bound) for first, last, _ in rows for bound in (first, last)]
        assert all(low <= high for low, high in pairwise(bounds))


def test_the_table_is_taken_from_metadata_and_from_reports_of_pip(tmp_path: Path) -> None:
    for version, torch in (("0.0.20", "==2.0.1"), ("0.0.21", "==2.0.1"), ("0.0.35", ">=2.10"), ("0.1rc1", "==9.9")):
        folder = tmp_path / f"xformers-{version}.dist-info"
        folder.mkdir()
        requires = f"Requires-Dist: torch{torch}\nRequires-Dist: pytest ; extra == 'dev'\n"
        (folder / "METADATA").write_text(METADATA.format(name="xFormers", version=version, requires=requires))
    report = {"install": [{"metadata": {"name": "vllm", "version": "0.9.0", "requires_dist": ["torch==2.7.0"]}}]}
    (tmp_path / "vllm.json").write_text(json.dumps(report))
    assert dict(_metadata.read([tmp_path])["xformers"])[Version("0.0.20")] == {"torch": "==2.0.1"}
    table = built_for_torch.render([tmp_path])
    assert 'xformers = [\n    ["0.0.20", "0.0.21", "2.0.1"],\n]\n' in table
    assert 'vllm = [\n    ["0.9.0", "0.9.0", "2.7.0"],\n]\n' in table


@pytest.mark.parametrize(("torch", "holds"), [("2.4.1", None), ("2.5.1", False)])
def test_of_a_package_without_a_version_the_newest_of_the_day_is_compared(
    known: matrix.Matrix, torch: str, holds: bool | None
) -> None:
    stated = environment({"distribution_ranges": {"xformers": ""}, "report": {"date": "2024-11-10"}}, torch=torch)
    verdict = built_for_another_torch.find(stated, known.table)
    assert (verdict.holds, verdict.missing) == (holds, ("distributions.xformers",) if holds is None else ())
    for occurrence in verdict.occurrences:
        assert "the newest release at that time, xformers 0.0.28.post3 is built for torch 2.5.1" in occurrence.summary
        assert occurrence.pins == {"xformers": ">=0.0.28,<=0.0.28.post1"}
