"""What the Pythons that releases take say about an environment, a list, and a report without a Python."""

from __future__ import annotations

from typing import Any

import pytest
from packaging.version import Version

from compatcheck import matrix
from compatcheck.environment import Environment
from compatcheck.inference.infer import infer
from compatcheck.matrix.traits import python_not_accepted, required_release_lacks_files
from compatcheck.packages.required_python import takes_python


@pytest.mark.parametrize(
    ("accepted", "python", "takes"),
    [
        (">=3.8.1", "3.8", True),
        (">=3.8.1", "3.8.0", False),
        ("<3.11,>=3.8", "3.11.4", False),
        ("<3.11,>=3.8", "3.10.14", True),
        ("!=3.9.7,>=3.9", "3.9.7", False),
    ],
)
def test_minor_version_stands_for_its_patches(accepted: str, python: str, takes: bool) -> None:
    assert takes_python(accepted, python) is takes


@pytest.mark.parametrize(
    ("python", "version", "holds", "told"),
    [("3.9.18", "5.0.0", True, 1), ("3.10.2", "5.0.0", False, 0), ("3.9.18", "5.0.0.dev0", False, 0)],
)
def test_release_above_its_lowest_python_only(
    known: matrix.Matrix, python: str, version: str, holds: bool, told: int
) -> None:
    stated = Environment({"python": python, "distributions": {"transformers": version}})
    verdict = python_not_accepted.find(stated, known.table)
    assert (verdict.holds, len(verdict.occurrences)) == (holds, told)


def test_newer_python_than_accepted_stays_open(known: matrix.Matrix) -> None:
    verdict = python_not_accepted.find(
        Environment({"python": "3.12.4", "distributions": {"xtuner": "0.1.23"}}), known.table
    )
    assert verdict.holds is None
    assert verdict.occurrences[0].summary == "xtuner 0.1.23 requires Python <3.11,>=3.8, but the environment has 3.12.4"


def test_pin_outside_its_pythons_is_refused(known: matrix.Matrix) -> None:
    verdict = required_release_lacks_files.find(listed("3.12.4", "xtuner", "==0.1.23"), known.table)
    (occurrence,) = verdict.occurrences
    assert (occurrence.summary, occurrence.pins) == (
        "xtuner 0.1.23 requires Python <3.11,>=3.8, but the environment has 3.12.4",
        {"xtuner": "==0.2.0"},
    )
    assert not required_release_lacks_files.find(listed("3.10.4", "xtuner", "==0.1.23"), known.table).occurrences


def test_newest_release_for_the_python_is_offered(known: matrix.Matrix) -> None:
    """numpy 1.22.1 to 1.25.2 set no upper bound and have no wheels for Python 3.12."""
    (occurrence,) = required_release_lacks_files.find(listed("3.12", "numpy", "==1.21.6"), known.table).occurrences
    assert Version(occurrence.pins["numpy"].removeprefix("==")) >= Version("2.0")


def test_stated_releases_bound_an_unknown_python(known: matrix.Matrix) -> None:
    stated = Environment({"distributions": {"transformers": "5.0.0", "torch": "2.4.0", "peft": "0.10.0"}})
    assert infer(stated, known.table, ()).inferred.python_range == ">=3.10.0,<3.13"


def listed(python: str, name: str, specifier: str) -> Environment:
    required: list[dict[str, Any]] = [
        {"name": name, "specifier": specifier, "command": "requirements.txt", "file": "requirements.txt", "line": 1}
    ]
    return Environment({"python": python, "requirements": required})
