"""What an error line is told of the releases of a package, from the shipped tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from packaging.version import Version

from compatcheck import matrix
from compatcheck.environment import Environment
from compatcheck.matrix.matching.match import TraitVerdict
from compatcheck.matrix.traits import interface_of_other_releases
from compatcheck.matrix.traits._answered import by_distance
from compatcheck.packages.interface_failures import read_failure, to_fact
from compatcheck.pipelines.diagnose import Given, diagnose

TOKENIZER = "TypeError: SFTTrainer.__init__() got an unexpected keyword argument 'tokenizer'"


def judged(known: matrix.Matrix, *lines: str, **distributions: str) -> TraitVerdict:
    failure = read_failure(lines)
    assert failure is not None
    names = {name.replace("_", "-"): version for name, version in distributions.items()}
    facts: dict[str, Any] = {"distributions": names, "interface_errors": [to_fact(failure)]}
    return interface_of_other_releases.find(Environment(facts), known.table)


def test_a_parameter_is_certain_by_release_and_open_without(known: matrix.Matrix) -> None:
    verdict = judged(known, TOKENIZER, trl="0.24.0")
    (found,) = verdict.occurrences
    assert verdict.holds and found.packages == ("trl",) and found.pins == {"trl": ">=0.4.2,<0.16.0"}
    assert found.summary.startswith("trl 0.24.0 has no parameter tokenizer of SFTTrainer()")
    assert judged(known, TOKENIZER, trl="0.12.0").holds is False
    verdict = judged(known, TOKENIZER)
    assert verdict.holds is None and verdict.missing == ("distributions.trl",) and verdict.occurrences


def test_the_nearest_run_of_releases_comes_first() -> None:
    releases = ("1.0", "1.1", "1.2", "2.0", "2.1", "3.0")
    assert by_distance(("<1.1", ">=3.0"), Version("1.2"), releases) == ["<1.1", ">=3.0"]
    assert by_distance(("<1.1", ">=3.0"), Version("2.1"), releases) == [">=3.0", "<1.1"]
    assert by_distance(("<1.2", ">=3.0"), None, releases) == ["<1.2", ">=3.0"]


def answered(folder: Path, text: str) -> Any:
    path = folder / "report.md"
    path.write_text(text, encoding="utf-8")
    return diagnose(Given((str(path),)), matrix.load()).explanations[0].finding


@pytest.mark.parametrize(
    ("text", "package", "pin"),
    [
        (f"{TOKENIZER}\n\ntrl 0.24.0, transformers 4.57.1\n", "trl", ">=0.4.2,<0.16.0"),
        (f"trl stops with {TOKENIZER[11:]} again\n", "trl", ">=0.4.2,<0.16.0"),
        ("'PPOTrainer' object has no attribute 'step', trl is 0.16.0\n", "trl", "<0.14.0"),
    ],
)
def test_diagnose_answers_what_no_entry_knows(tmp_path: Path, text: str, package: str, pin: str) -> None:
    finding = answered(tmp_path, text)
    assert finding.packages == (package,)
    assert any(remedy.pins.get(package) == pin for remedy in finding.remedies)


FRAME = '  File "/env/lib/python3.10/site-packages/sentence_transformers/SentenceTransformer.py", line 12, in <module>'
CODE = "    from huggingface_hub import HfApi, HfFolder, Repository, hf_hub_url, cached_download"
IMPORT = "ImportError: cannot import name 'cached_download' from 'huggingface_hub' (/env/__init__.py)"


def test_the_package_that_asks_gets_the_releases_that_do_not(known: matrix.Matrix) -> None:
    verdict = judged(known, FRAME, CODE, IMPORT, huggingface_hub="0.26.1", sentence_transformers="2.2.2")
    (found,) = verdict.occurrences
    assert verdict.holds and found.packages == ("huggingface-hub", "sentence-transformers")
    assert found.pins == {"huggingface-hub": "<0.26.0"} and found.instead == {"sentence-transformers": ">=2.3.0"}
    assert "sentence-transformers 2.2.2 requires it" in found.summary
    assert judged(known, IMPORT, huggingface_hub="0.26.1").occurrences[0].packages == ("huggingface-hub",)


def test_a_package_that_the_text_names_is_taken_for_the_one_that_asks(tmp_path: Path) -> None:
    def packages(text: str) -> Any:
        path = tmp_path / "report.md"
        path.write_text(text, encoding="utf-8")
        found = diagnose(Given((str(path),)), matrix.load()).explanations
        return next(each.finding.packages for each in found if each.finding.id == "CC-2026-3124")

    named = packages(f"import sentence_transformers ends with\n{IMPORT}\nfresh venv\n")
    assert named == ("huggingface-hub", "sentence-transformers")
    assert packages(f"my import ends with\n{IMPORT}\n") == ("huggingface-hub",)
