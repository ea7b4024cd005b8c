"""Names that releases lack: said by an error, or imported by a model's own code or a script."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from packaging.version import Version

from compatcheck import matrix, symptoms
from compatcheck.bug_report import read_report
from compatcheck.environment import Environment, Location
from compatcheck.interfaces.history import Interfaces, is_in
from compatcheck.matrix.matching.match import TraitVerdict
from compatcheck.matrix.traits import imports_name_of_other_releases, interface_of_other_releases
from compatcheck.packages.versions import contains, parse_range
from compatcheck.project import model_files, scripts

GONE = {"module": "transformers.modeling_utils", "name": "shard_checkpoint"}


def rows(known: matrix.Matrix) -> Iterator[tuple[str, str, str, list[str]]]:
    """Package, module, name and the runs of releases of transformers, trl and peft that have it."""
    for package in ("transformers", "trl", "peft"):
        for key, by_runs in known.table(f"interfaces/{package}").items():
            if key.startswith("module "):
                for runs, names in by_runs.items():
                    yield from ((package, key[7:], name, runs.split()) for name in names.split())


def missing(known: matrix.Matrix, named: dict[str, Any], **distributions: str | None) -> TraitVerdict:
    there = Environment({"distributions": distributions, "missing_names": [named]})
    return interface_of_other_releases.find(there, known.table)


def test_a_release_is_told_where_no_run_holds_it_and_what_it_is_offered_has_the_name(known: matrix.Matrix) -> None:
    for package, module, name, runs in random.Random(0).sample(list(rows(known)), 300):
        for release in {bound.version for run in runs for bound in parse_range(run.lstrip("?"))}:
            has = any(contains(parse_range(run.lstrip("?")), release) for run in runs)
            named = {"module": module, "name": None if name == "." else name}
            verdict = missing(known, named, **{package: str(release)})
            assert bool(verdict.holds) != has, (package, module, name, release)
            for each in verdict.occurrences:
                bounds = [bound.version for bound in parse_range(each.pins[package])]
                assert release not in bounds or not contains(parse_range(each.pins[package]), release)


@pytest.mark.parametrize(
    ("named", "release", "words"),
    [
        (GONE, "4.48.0", "no shard_checkpoint in transformers.modeling_utils; releases >=4.18.0,<4.47.0 have it"),
        ({"module": "transformers", "name": "Qwen3ForCausalLM"}, "4.10.0", ""),
        (GONE, "4.46.3", ""),
        (GONE, "3.0.0", ""),
        ({**GONE, "name": "of_nobody"}, "4.48.0", ""),
        ({"module": "transformers.deepspeed", "name": None}, "5.0.0", "no module transformers.deepspeed"),
        ({"module": "transformers", "name": "Qwen3ForCausalLM"}, "4.50.0", "releases >=4.51.0 have it"),
        ({"module": "my_transformers", "name": "Qwen3ForCausalLM"}, "4.50.0", ""),
    ],
)
def test_only_a_name_that_other_releases_have_is_told(
    known: matrix.Matrix, named: dict[str, Any], release: str, words: str
) -> None:
    found = missing(known, named, transformers=release).occurrences
    assert (words in found[0].summary) if words else not found


def test_without_a_release_it_is_open_and_says_which_fact_would_settle_it(known: matrix.Matrix) -> None:
    verdict = missing(known, GONE)
    assert verdict.holds is None
    assert verdict.missing == ("distributions.transformers",)
    assert verdict.occurrences[0].pins == {"transformers": ">=4.18.0,<4.47.0"}


@pytest.mark.parametrize(
    ("line", "module", "name"),
    [
        ("ImportError: cannot import name 'A' from 'pkg.b' (/opt/pkg/b.py)", "pkg.b", "A"),
        ('[rank1]: ImportError: cannot import name "A" from "pkg"', "pkg", "A"),
        ("RuntimeError: Failed to import x because of: No module named 'pkg.b'", "pkg.b", None),
        ("AttributeError: module 'pkg.b' has no attribute 'A'", "pkg.b", "A"),
        ("AttributeError: module pkg has no attribute A. Did you mean: 'B'?", "pkg", "A"),
    ],
)
def test_an_error_in_a_log_or_a_report_says_what_is_missing(
    tmp_path: Path, line: str, module: str, name: str | None
) -> None:
    log = tmp_path / "log"
    log.write_text(f"starting\n{line}\n{line}\n", encoding="utf-8")
    expected = [{"module": module, "name": name}]
    read = symptoms.read(str(log)).facts
    assert read.facts["missing_names"] == expected
    assert read.locations["missing_names"] == Location(str(log), 2)
    assert read_report(log.read_text(encoding="utf-8"), "report").get("missing_names") == expected


@pytest.mark.parametrize(
    "line",
    [
        "ModuleNotFoundError: No module named 'pkg'",
        "ImportError: cannot import name 'A' from partially initialized module 'pkg' (most likely a circular import)",
        "ModuleNotFoundError: No module named 'pkg.b'; 'pkg' is not a package",
        "AttributeError: partially initialized module 'pkg' has no attribute 'A'",
        "AttributeError: 'Model' object has no attribute 'A'",
    ],
)
def test_an_error_with_another_cause_says_nothing_of_releases(tmp_path: Path, line: str) -> None:
    log = tmp_path / "log"
    log.write_text(f"{line}\n", encoding="utf-8")
    assert "missing_names" not in symptoms.read(str(log)).facts.facts


SCRIPT = """\
from transformers import Trainer, TrainingArguments
{}
Trainer(args=TrainingArguments("out")).train()
"""
IMPORT = "from transformers.modeling_utils import shard_checkpoint"


def imported(known: matrix.Matrix, found: Environment, transformers: str = "4.48.0") -> TraitVerdict:
    there = Environment({"distributions": {"transformers": transformers}, **found.facts})
    return imports_name_of_other_releases.find(there, known.table)


def test_a_script_is_told_of_with_its_line_unless_it_is_prepared(known: matrix.Matrix, tmp_path: Path) -> None:
    plain, tried = tmp_path / "train.py", tmp_path / "tried.py"
    plain.write_text(SCRIPT.format(IMPORT), encoding="utf-8")
    tried.write_text(SCRIPT.format(f"try:\n    {IMPORT}\nexcept ImportError:\n    pass"), encoding="utf-8")
    verdict = imported(known, scripts.read([str(plain)]))
    assert verdict.holds
    assert [each.location for each in verdict.occurrences] == [Location(str(plain), 2)]
    assert imported(known, scripts.read([str(plain)]), "4.46.3").holds is False
    assert imported(known, scripts.read([str(tried)])).holds is False
    both = imported(known, scripts.read([str(plain), str(tried)]))
    assert (both.holds, both.missing) == (None, ("trainer.script",))


def test_name_goes_with_its_module(known: matrix.Matrix, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(SCRIPT.format("from trl.models.auxiliary_modules import aesthetic_scorer"), encoding="utf-8")
    asked = scripts.read([str(script)]).facts

    def told(release: str) -> list[str]:
        there = Environment({"distributions": {"trl": release}, **asked})
        return [each.summary for each in imports_name_of_other_releases.find(there, known.table).occurrences]

    assert told("0.24.0") == [
        "`from trl.models.auxiliary_modules import aesthetic_scorer` fails: trl 0.24.0 has no "
        "trl.models.auxiliary_modules. Versions up to 0.23.1 work."
    ]
    assert told("0.16.1") == []


def test_a_name_in_a_models_own_code_is_found_at_its_line(known: matrix.Matrix, tmp_path: Path) -> None:
    verdict = imported(known, code_of(tmp_path, IMPORT))
    assert verdict.holds
    assert [each.location for each in verdict.occurrences] == [Location(str(tmp_path / "modeling_a.py"), 2)]


def code_of(folder: Path, line: str) -> Environment:
    reference = {"AutoModelForCausalLM": "modeling_a.AForCausalLM"}
    (folder / "config.json").write_text(json.dumps({"model_type": "a", "auto_map": reference}), encoding="utf-8")
    (folder / "modeling_a.py").write_text(f"import torch\n{line}\nclass AForCausalLM: ...\n", encoding="utf-8")
    return model_files.read(str(folder))


def findings(known: matrix.Matrix, read: Environment, release: str) -> dict[str, Location | None]:
    facts = {"distributions": {"transformers": release}, **read.facts}
    found = matrix.judge(known, Environment(facts, locations=read.locations)).findings
    return {each.id: each.location for each in found if each.location and each.location.line}


def import_entries(known: matrix.Matrix) -> dict[str, tuple[str, list[str]]]:
    """The entry of each trait of the table and the releases of transformers that it is about."""
    traits = known.table("imported-names")["traits"]
    by_trait: dict[str, tuple[str, list[str]]] = {}
    for entry in matrix.all_entries(known):
        for table in entry["affected"]:
            for trait in set(table.get("traits", ())) & set(traits):
                about = by_trait.setdefault(trait, (entry["id"], []))
                assert about[0] == entry["id"]
                about[1].append(table["distributions.transformers"])
    return by_trait


def test_entries_on_imports_agree_with_the_table_of_names(known: matrix.Matrix) -> None:
    releases = list(map(Version, known.table("release-history")["releases"]["transformers"]))
    traits, entries = known.table("imported-names")["traits"], import_entries(known)
    assert set(traits) == set(entries)
    for trait, paths in traits.items():
        ranges = [parse_range(each) for each in entries[trait][1]]
        for path in paths:
            runs = Interfaces(known.table).runs_with(path)
            assert runs
            first = next(each for each in releases if is_in(each, runs))
            for release in (each for each in releases if each > first):
                assert is_in(release, runs) is not any(contains(each, release) for each in ranges), (path, release)


def test_an_import_is_reported_once_by_its_own_entry(known: matrix.Matrix, tmp_path: Path) -> None:
    entries = import_entries(known)
    for trait, paths in known.table("imported-names")["traits"].items():
        entry, ranges = entries[trait]
        release = str(parse_range(ranges[-1])[0].version)
        for path in paths:
            module, _, name = path.rpartition(".")
            line = f"from {module} import {name}"
            found = findings(known, code_of(tmp_path, line), release)
            assert found == {entry: Location(str(tmp_path / "modeling_a.py"), 2)}, path
            guarded = f"try:\n    {line}\nexcept ImportError: ..."
            assert not findings(known, code_of(tmp_path, guarded), release), path


@pytest.mark.parametrize(
    ("line", "release"),
    [
        ("from transformers.utils import LossKwargs", "4.46.3"),
        ("from transformers.modeling_utils import find_pruneable_heads_and_indices", "4.57.6"),
        ("from transformers.models.falcon.modeling_falcon import _expand_mask", "4.40.0"),
    ],
)
def test_an_import_that_no_entry_speaks_of_is_reported_by_the_table(
    known: matrix.Matrix, tmp_path: Path, line: str, release: str
) -> None:
    assert findings(known, code_of(tmp_path, line), release) == {
        "CC-2026-3125": Location(str(tmp_path / "modeling_a.py"), 2)
    }
