"""`--fix` on entries' own examples, each written out as the requirements of a project."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from compatcheck.environment.paths import flatten
from compatcheck.matrix.compile import read_entries
from tests.conftest import ROOT, SOURCES

pytestmark = [pytest.mark.slow, pytest.mark.skipif(os.name == "nt", reason="the commands run in forks")]

TRIED, LEAST_FIXED = 110, 50
_ASSUMABLE = ("training", "cuda", "gpu", "python", "platform")


class Project(NamedTuple):
    entry: str
    requirements: str
    assumed: tuple[str, ...]


def _projects() -> Iterator[Project]:
    """Affected examples that are packages and facts, of entries that a release repairs."""
    for entry in read_entries(SOURCES).values():
        example = entry.examples[0] if entry.examples else None
        if example is None or example.expect != "affected" or not entry.remedies[0].pins:
            continue
        facts: dict[str, Any] = dict(example.environment)
        packages = facts.pop("distributions", {})
        if not packages or not all(isinstance(each, str) for each in packages.values()):
            continue
        if set(entry.remedies[0].pins) <= packages.keys() and facts.keys() <= set(_ASSUMABLE):
            pins = "".join(f"{name}=={version}\n" for name, version in sorted(packages.items()))
            stated = (f"{path}={json.dumps(value)}" for path, value in flatten(facts))
            yield Project(entry.id, pins, tuple(stated))


def _run(projects: list[Project], folders: list[Path], *options: str) -> list[tuple[int, str, str]]:
    cases = []
    for project, folder in zip(projects, folders):
        assumed = [word for fact in project.assumed for word in ("--assume", fact)]
        argv = ["check", ".", "--no-probe", "--isolated", *options, *assumed]
        cases.append({"argv": argv, "cwd": str(folder)})
    done = subprocess.run(
        [sys.executable, "-m", "tests.language.forked"],
        input=json.dumps(cases),
        capture_output=True,
        encoding="utf-8",
        cwd=ROOT,
        env={**os.environ, "NO_COLOR": "1", "COMPATCHECK_LANG": "en"},
        check=True,
    )
    return [tuple(each) for each in json.loads(done.stdout)]


def test_most_examples_that_a_release_repairs_are_fixed(tmp_path: Path) -> None:
    every = random.Random(0).sample(sorted(_projects()), TRIED)
    folders = [tmp_path / project.entry for project in every]
    for project, folder in zip(every, folders):
        folder.mkdir()
        (folder / "requirements.txt").write_text(project.requirements, encoding="utf-8")
    judged = zip(every, folders, _run(every, folders, "--format", "json"))
    broken = [(project, folder, _affected(out)) for project, folder, (_, out, _) in judged]
    broken = [each for each in broken if each[0].entry in each[2]]
    projects, folders = [each[0] for each in broken], [each[1] for each in broken]
    said = [error.strip() for _, _, error in _run(projects, folders, "--fix", "--write", "--unsafe-fixes", "-q")]
    after = [_affected(out) for _, out, _ in _run(projects, folders, "--format", "json")]
    left = {project.entry: why for project, why, found in zip(projects, said, after) if project.entry in found}
    assert len(projects) - len(left) >= LEAST_FIXED, f"{len(left)} of {len(projects)}: {json.dumps(left, indent=1)}"
    assert all(left.values()), left
    assert all(found <= before for (_, _, before), found in zip(broken, after))


def _affected(out: str) -> set[str]:
    return {finding["id"] for finding in json.loads(out)["findings"] if finding["status"] == "affected"}
