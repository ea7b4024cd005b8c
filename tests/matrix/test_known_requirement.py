"""What releases are known to demand of each other, where nobody read the installed metadata."""

from __future__ import annotations

import json
import zipfile
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from packaging.markers import Marker
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from compatcheck import matrix
from compatcheck.environment import Environment
from compatcheck.matrix.compile import read_toml
from compatcheck.matrix.traits import declared_requirement_unmet, known_requirement_unmet
from tools.tables import declared_requirements


def environment(more: dict[str, Any] | None = None, **distributions: str) -> Environment:
    return Environment({"distributions": distributions, **(more or {})})


def test_both_ways_out_are_offered(known: matrix.Matrix) -> None:
    verdict = known_requirement_unmet.find(environment(trl="0.20.0", transformers="4.52.4"), known.table)
    (occurrence,) = verdict.occurrences
    assert occurrence.summary.startswith("trl 0.20.0 requires transformers>=4.53.2, but the environment has 4.52.4")
    assert occurrence.packages == ("transformers", "trl")
    assert (occurrence.pins, occurrence.instead) == ({"transformers": ">=4.53.2"}, {"trl": ">=0.19.0,<=0.19.1"})


def test_what_was_forced_together_is_told_and_not_condemned(known: matrix.Matrix) -> None:
    verdict = known_requirement_unmet.find(environment(vllm="0.19.1", transformers="5.4.0"), known.table)
    assert (verdict.holds, verdict.missing) == (None, ("unmet_requirements",))
    assert [occurrence.packages for occurrence in verdict.occurrences] == [("transformers", "vllm")]


def test_what_the_import_compares_is_told_with_the_unmet_requirement(known: matrix.Matrix) -> None:
    requirement = {"distribution": "transformers", "version": "4.50.0", "requirement": "tokenizers<0.22,>=0.21"}
    stated = Environment({"unmet_requirements": [{**requirement, "installed": "0.20.3"}]})
    (occurrence,) = declared_requirement_unmet.find(stated, known.table).occurrences
    assert occurrence.summary.endswith(
        "but 0.20.3 is installed; the package checks its requirements on import and stops there"
    )


def test_what_an_import_compares_is_certain_and_told_alone(known: matrix.Matrix) -> None:
    forced = environment(transformers="4.42.4", numpy="2.0.0", trl="0.20.0")
    verdict = known_requirement_unmet.find(forced, known.table)
    assert verdict.holds is True
    (occurrence,) = verdict.occurrences
    assert occurrence.packages == ("numpy", "transformers")
    assert occurrence.summary.endswith(
        "but the environment has 2.0.0; the package checks its requirements on import and stops there"
    )


@pytest.mark.parametrize(
    ("distributions", "told"),
    [
        (
            {"transformers": "5.10.0", "huggingface-hub": "2.1.0"},
            "transformers 5.10.0 requires huggingface-hub<2.0,>=1.5.0",
        ),
        ({"transformers": "4.50.0", "safetensors": "0.4.1"}, "transformers 4.50.0 requires safetensors>=0.4.3"),
        ({"pandas": "2.2.3", "numpy": "1.21.6"}, "pandas 2.2.3 requires numpy>=1.22.4"),
    ],
)
def test_start_up_check_that_no_entry_tells_is_certain(
    known: matrix.Matrix, distributions: dict[str, str], told: str
) -> None:
    verdict = known_requirement_unmet.find(environment(**distributions), known.table)
    assert verdict.holds is True
    (occurrence,) = verdict.occurrences
    assert occurrence.summary.startswith(told)


@pytest.mark.parametrize(
    "distributions",
    [
        {"transformers": "4.50.0", "accelerate": "0.20.0"},
        {"transformers": "4.50.0", "tokenizers": "0.20.3"},
        {"llamafactory": "0.9.3", "datasets": "4.0.0"},
        {"pandas": "2.2.3", "numpy": "1.26.4"},
    ],
)
def test_start_up_check_with_a_way_round_is_left_open(known: matrix.Matrix, distributions: dict[str, str]) -> None:
    """An old accelerate is not compared, entries tell tokenizers, and a variable turns LLaMA-Factory's checks off."""
    assert known_requirement_unmet.find(environment(**distributions), known.table).holds is None


@pytest.mark.parametrize(
    ("distributions", "more", "told"),
    [
        ({"trl": "0.20.0", "transformers": "4.53.2"}, {}, 0),
        ({"trl": "0.20.0", "transformers": "4.53.0.dev0"}, {}, 0),
        ({"trl": "0.20.0.dev0", "transformers": "4.52.4"}, {}, 0),
        ({"trl": "0.20.0"}, {}, 0),
        ({"trl": "0.20.0", "transformers": "4.52.4"}, {"unmet_requirements": []}, 0),
        ({"xformers": "0.0.26.post1", "torch": "2.3.1+cu121"}, {}, 1),
        ({"xformers": "0.0.26.post1", "torch": "2.4.1+cu121"}, {}, 0),
        ({"xformers": "0.0.26.post1", "torch": "2.4.0a0+07cecf4168.nv24.05"}, {}, 0),
        ({"xformers": "0.0.34", "torch": "2.11.0"}, {}, 0),
        ({"deepspeed": "0.10.0", "pydantic": "2.5.0"}, {}, 1),
        ({"deepspeed": "0.12.0", "pydantic": "2.5.0"}, {}, 0),
    ],
)
def test_only_released_versions_that_were_looked_up_are_judged(
    known: matrix.Matrix, distributions: dict[str, str], more: dict[str, Any], told: int
) -> None:
    verdict = known_requirement_unmet.find(environment(more, **distributions), known.table)
    assert len(verdict.occurrences) == told


def test_an_environment_without_distributions_demands_nothing(known: matrix.Matrix) -> None:
    assert known_requirement_unmet.find(Environment({"distributions_complete": True}), known.table).holds is None


def test_runs_of_releases_are_in_order_and_demand_something(known: matrix.Matrix) -> None:
    table = known.table("declared-requirements")
    packages = [rows for name, rows in table.items() if name not in ("reviewed", "sources", "at_start", "where")]
    for rows in (*packages, *table["at_start"].values()):
        for runs in rows.values():
            bounds = [Version(bound) for first, last, _ in runs for bound in (first, last)]
            assert all(low <= high for low, high in pairwise(bounds))
            assert all(SpecifierSet(specifier) for _, _, specifier in runs)
    marked = [run for rows in table["where"].values() for runs in rows.values() for run in runs]
    assert marked
    assert all(Version(first) <= Version(last) and Marker(marker) for first, last, _, marker in marked)


@pytest.mark.parametrize(
    ("platform", "told"),
    [
        ({"system": "Linux", "machine": "x86_64"}, 1),
        ({"system": "Darwin", "machine": "arm64"}, 0),
        ({"system": "Linux"}, 0),
        ({}, 0),
    ],
)
def test_marked_requirement_counts_on_its_platform(known: matrix.Matrix, platform: dict[str, str], told: int) -> None:
    stated = environment({"platform": platform}, **{"unsloth-zoo": "2026.10.8", "torch": "2.15.0"})
    assert len(known_requirement_unmet.find(stated, known.table).occurrences) == told


def test_the_table_keeps_markers_apart_and_leaves_out_extras(tmp_path: Path) -> None:
    required = {
        "0.24.0": ["transformers>=4.56.1", "numpy<2; python_version < '3.9'", "peft>=0.8.0; extra == 'peft'"],
        "0.26.2": ["transformers>=4.56.1", "accelerate"],
        "0.27.0": ["transformers!=4.57.0", "transformers>=4.56.2"],
    }
    for version, lines in required.items():
        folder = tmp_path / f"trl-{version}.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(metadata("trl", version, lines))
    assert rows_of_table(tmp_path, declared_requirements.render([tmp_path])) == {
        "trl": {
            "python": [["0.24.0", "0.27.0", ">=3.9"]],
            "transformers": [["0.24.0", "0.26.2", ">=4.56.1"], ["0.27.0", "0.27.0", "!=4.57.0,>=4.56.2"]],
        },
        "where": {"trl": {"numpy": [["0.24.0", "0.24.0", "<2", 'python_version < "3.9"']]}},
    }


def test_an_archive_of_sources_may_leave_its_requirements_open(tmp_path: Path) -> None:
    archives = {"0.16.0": [], "0.16.5": ["torch"], "0.16.7": ["pydantic>=2.0.0"]}
    for version, lines in archives.items():
        place = tmp_path / "deepspeed" / f"{version}.zip"
        place.parent.mkdir(exist_ok=True)
        with zipfile.ZipFile(place, "w") as archive:
            archive.writestr("sdist.dist-info/METADATA", metadata("deepspeed", version, lines))
    kept = {"deepspeed": {"pydantic": [["0.15.0", "0.16.0", ">=2.0.0"]]}}
    table = rows_of_table(tmp_path, declared_requirements.render([tmp_path], kept))
    assert table["deepspeed"] == {
        "pydantic": [["0.15.0", "0.16.0", ">=2.0.0"], ["0.16.7", "0.16.7", ">=2.0.0"]],
        "python": [["0.16.0", "0.16.7", ">=3.9"]],
    }


def metadata(name: str, version: str, required: list[str]) -> str:
    lines = "".join(f"Requires-Dist: {line}\n" for line in required)
    return f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\nRequires-Python: >=3.9\n{lines}"


def rows_of_table(folder: Path, text: str) -> dict[str, Any]:
    (folder / "table.toml").write_text(text)
    return {name: rows for name, rows in read_toml(folder / "table.toml").items() if isinstance(rows, dict)}


def test_what_a_table_holds_stays_and_nothing_between_is_guessed(tmp_path: Path) -> None:
    kept = {"trl": {"transformers": [["0.8.2", "0.8.6", ">=4.31.0"]]}}
    for version, required in {"0.9.2": ["transformers>=4.31.0"], "0.9.4": ["transformers>=4.31.0"]}.items():
        told = {"name": "trl", "version": version, "requires_dist": required}
        (tmp_path / f"{version}.json").write_text(json.dumps({"install": [{"metadata": told}]}))
    (tmp_path / "table.toml").write_text(declared_requirements.render([tmp_path], kept))
    runs = read_toml(tmp_path / "table.toml")["trl"]["transformers"]
    assert runs == [["0.8.2", "0.9.2", ">=4.31.0"], ["0.9.4", "0.9.4", ">=4.31.0"]]
