"""Traits in words: each that a rule or a table decides has a clause, and reports say the clause."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from compatcheck import matrix
from compatcheck.matrix._traits import computed_traits
from compatcheck.packages.shipped_tables import shipped_table
from compatcheck.project import trait_names
from tests.conftest import run_command

CLAUSES = shipped_table("traits")["traits"]


def asked() -> set[str]:
    """The traits that entries ask for."""
    entries = matrix.all_entries(matrix.load())
    return {trait for entry in entries for table in entry["affected"] for trait in table.get("traits", ())}


def test_every_trait_has_a_clause_and_every_clause_a_trait() -> None:
    of_code = trait_names.from_code() | trait_names.from_files() | trait_names.from_trainers()
    decided = computed_traits() | of_code | set(shipped_table("imported-names")["traits"])
    assert decided | asked() == set(CLAUSES)


def test_clauses_are_short_and_no_names() -> None:
    assert all(" " in clause and len(clause) <= 84 and not clause.endswith(".") for clause in CLAUSES.values())


def test_reports_in_both_languages_say_the_clause(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("transformers==4.47.1\ntorch==2.6.0\n")
    (tmp_path / "generation_config.json").write_text(json.dumps({"do_sample": False, "temperature": 0.7}))
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "qwen2", "architectures": ["Qwen2ForCausalLM"]}))
    for language, said in (
        ("en", "generation_config.json contradicts itself"),
        ("zh", "generation_config.json 自相矛盾"),
    ):
        for command in (("check", ".", "--no-probe"), ("explain", "CC-2024-1429"), ("model", ".")):
            out = run_command(sys.executable, *command, cwd=tmp_path, COMPATCHECK_LANG=language).stdout
            assert said in " ".join(out.split()), (command, out)
            assert "generation-settings-contradict" not in out
