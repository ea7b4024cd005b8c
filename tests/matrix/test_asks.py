"""Scripts that call what the stated release does not take, through the command."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest
from packaging.version import Version

from compatcheck import check, matrix
from compatcheck.environment import Environment
from compatcheck.files import limits
from compatcheck.interfaces.history import Interfaces
from compatcheck.interfaces.summary import Ask
from compatcheck.project._asks import asks
from compatcheck.project.reading import read_paths

SCRIPT = """\
from trl import SFTTrainer
from peft import LoraConfig
import trl


def main(model):
    trainer = SFTTrainer(
        model,
        {}
    )
    trainer.train()


main("a")
"""


def findings(folder: Path, call: str, requirements: str, name: str = "train.py") -> list[Any]:
    script = folder / name
    code = SCRIPT.format(call)
    cells = [{"cell_type": "code", "source": code.splitlines(keepends=True), "metadata": {}, "outputs": []}]
    notebook = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    script.write_text(json.dumps(notebook, indent=1) if name.endswith(".ipynb") else code, encoding="utf-8")
    (folder / "requirements.txt").write_text(requirements, encoding="utf-8")
    found = check(script, folder / "requirements.txt", probe=False).findings
    return [each for each in found if each.id == "CC-2026-3701"]


def test_keyword_that_is_gone_is_found_at_its_line_with_new_name_and_pin(tmp_path: Path) -> None:
    (found,) = findings(tmp_path, "tokenizer=None", "trl==0.24.0\n")
    assert found.status == "affected"
    assert str(found.location) == f"{tmp_path / 'train.py'}:9"
    assert "SFTTrainer(tokenizer=...) fails: trl 0.24.0 does not take tokenizer." in found.summary
    assert "0.15.2" in found.summary
    assert "The new name is processing_class." in found.summary
    assert found.packages == ("trl",)
    code, pins = found.remedies[:2]
    assert code.code == "SFTTrainer(..., processing_class=...)"
    assert pins.pins == {"trl": ">=0.4.2,<0.16.0"}


@pytest.mark.parametrize(
    ("call", "requirements"),
    [
        ("tokenizer=None", "trl==0.12.2\n"),
        ("processing_class=None", "trl==0.24.0\n"),
        ("**{'tokenizer': None}", "trl==0.24.0\n"),
        ("of_nobody=None", "trl==0.24.0\n"),
        ("tokenizer=None", "peft==0.17.1\n"),
    ],
)
def test_keyword_that_is_taken_or_of_no_release_is_not_reported(tmp_path: Path, call: str, requirements: str) -> None:
    assert not findings(tmp_path, call, requirements)


def test_class_of_a_builtin_dictionary_takes_what_a_dictionary_takes(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        "import trl\nfrom datasets import DatasetDict\nDatasetDict({})\n", encoding="utf-8"
    )
    (tmp_path / "requirements.txt").write_text("datasets==4.3.0\n", encoding="utf-8")
    found = check(tmp_path / "train.py", tmp_path / "requirements.txt", probe=False).findings
    assert not [each for each in found if each.id == "CC-2026-3701"]


def test_notebook_is_read_with_the_lines_of_its_file(tmp_path: Path) -> None:
    (found,) = findings(tmp_path, "tokenizer=None", "trl==0.24.0\n", "train.ipynb")
    text = (tmp_path / "train.ipynb").read_text(encoding="utf-8").splitlines()
    assert "tokenizer=None" in text[found.location.line - 1]


def test_every_keyword_that_is_not_taken_is_reported(tmp_path: Path) -> None:
    found = findings(tmp_path, "tokenizer=None, packing=True, dataset_text_field='a'", "trl==0.24.0\n")
    assert sorted(each.summary.partition("(")[2].partition("=")[0] for each in found) == [
        "dataset_text_field",
        "packing",
        "tokenizer",
    ]


@pytest.mark.parametrize(("asked", "expected"), [("trl>=0.20,<0.24", ["possible"]), ("trl>=0.12,<0.24", [])])
def test_range_that_refuses_throughout_is_possible(
    known: matrix.Matrix, tmp_path: Path, asked: str, expected: list[str]
) -> None:
    script, listed = tmp_path / "train.py", tmp_path / "requirements.txt"
    script.write_text(SCRIPT.format("tokenizer=None"), encoding="utf-8")
    listed.write_text(f"{asked}\n", encoding="utf-8")
    found = matrix.judge(known, read_paths([str(script), str(listed)]).environment).findings
    assert [each.status for each in found if each.id == "CC-2026-3701"] == expected


SETTINGS = """\
output_dir: out
packing: false
per_device_train_batch_size: 2
gradient_accumulation_steps: 4
learning_rate: 2.0e-5
{}: {}
"""


def of_settings(folder: Path, key: str, requirements: str) -> list[Any]:
    (folder / "config.yaml").write_text(SETTINGS.format(key, "epoch"), encoding="utf-8")
    (folder / "requirements.txt").write_text(requirements, encoding="utf-8")
    found = check(folder / "config.yaml", folder / "requirements.txt", probe=False).findings
    return [each for each in found if each.id == "CC-2026-3701"]


@pytest.mark.parametrize(
    ("key", "requirements", "words"),
    [
        ("evaluation_strategy", "transformers==4.57.1\n", "transformers 4.57.1 does not take evaluation_strategy."),
        ("no_cuda", "transformers==5.0.0\n", "transformers 5.0.0 does not take no_cuda."),
        ("max_seq_length", "transformers==4.57.1\ntrl==0.24.0\n", "trl 0.24.0 does not take max_seq_length."),
        ("evaluation_strategy", "transformers==4.40.0\n", ""),
        ("of_my_own", "transformers==4.57.1\n", ""),
    ],
)
def test_key_of_training_arguments_is_found_at_its_line(
    tmp_path: Path, key: str, requirements: str, words: str
) -> None:
    found = of_settings(tmp_path, key, requirements)
    assert [str(each.location) for each in found] == ([f"{tmp_path / 'config.yaml'}:6"] if words else [])
    assert all(words in each.summary and each.status == "possible" for each in found)


@pytest.mark.parametrize(
    ("name", "text", "code"),
    [
        ("config.yaml", "tokenizer: a\n", "processing_class: ..."),
        ("config.json", '{"tokenizer": "a"}', '"processing_class": ...'),
        ("run.sh", "trl sft --tokenizer a\n", "--processing_class ..."),
    ],
)
def test_fix_of_a_key_is_written_as_its_file_writes_it(
    known: matrix.Matrix, tmp_path: Path, name: str, text: str, code: str
) -> None:
    ask = {"kind": "call", "target": "trl.SFTTrainer", "places": -1, "keywords": ["tokenizer"], "line": 1}
    stated = {"distributions": {"trl": "0.24.0"}, "training": {"asks": [{**ask, "file": str(tmp_path / name)}]}}
    (found,) = (each for each in matrix.judge(known, Environment(stated)).findings if each.id == "CC-2026-3701")
    assert found.summary.startswith("`tokenizer` fails: SFTTrainer of trl 0.24.0 does not take tokenizer.")
    assert found.remedies[0].code == code


def test_note_on_a_name_is_shown_for_user_code(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("from transformers import HybridCache\n", encoding="utf-8")
    (tmp_path / "requirements.txt").write_text("transformers==5.0.0\n", encoding="utf-8")
    found = check(tmp_path / "train.py", tmp_path / "requirements.txt", probe=False).findings
    (told,) = (each for each in found if each.id == "CC-2026-3125")
    assert "transformers 5.0.0 no longer has the class" in told.mechanism


def test_positional_argument_that_moved_is_possible(tmp_path: Path) -> None:
    def told(release: str, call: str) -> list[str]:
        (tmp_path / "train.py").write_text(f"from trl import DPOTrainer\n{call}\n", encoding="utf-8")
        (tmp_path / "requirements.txt").write_text(f"trl=={release}\ntransformers==4.38.0\n", encoding="utf-8")
        found = check(tmp_path / "train.py", tmp_path / "requirements.txt", probe=False).findings
        return [f"{each.status} {each.summary}" for each in found if each.id == "CC-2026-3701"]

    (found,) = told("0.8.0", "DPOTrainer(model, ref_model, args)")
    assert found.startswith("possible DPOTrainer(): trl 0.8.0 takes another argument at the position of args. ")
    assert not told("0.16.0", "DPOTrainer(model, ref_model, args)")
    assert not told("0.8.0", "DPOTrainer(model, ref_model, beta)")


def test_positional_argument_with_a_renamed_parameter_is_accepted(tmp_path: Path) -> None:
    text = "from trl import get_peft_config\nget_peft_config(model_args)\n"
    (tmp_path / "train.py").write_text(text, encoding="utf-8")
    (tmp_path / "requirements.txt").write_text("trl==0.9.6\ntransformers==4.42.4\n", encoding="utf-8")
    found = check(tmp_path / "train.py", tmp_path / "requirements.txt", probe=False).findings
    assert "CC-2026-3701" not in {each.id for each in found}


def test_flag_of_a_launch_line_is_found_and_certain_of_a_command_of_trl(tmp_path: Path) -> None:
    def told(line: str) -> list[tuple[str, str, str]]:
        (tmp_path / "run.sh").write_text(f"#!/bin/bash\n{line} \\\n  --no_cuda true\n", encoding="utf-8")
        (tmp_path / "requirements.txt").write_text("transformers==5.0.0\ntrl==0.24.0\n", encoding="utf-8")
        found = check(tmp_path / "run.sh", tmp_path / "requirements.txt", probe=False).findings
        return [(each.status, str(each.location), each.summary) for each in found if each.id == "CC-2026-3701"]

    flags = "--output_dir out --per_device_train_batch_size 2 --learning_rate 1e-5 --max_steps 5"
    ((status, place, words),) = told(f"torchrun run_clm.py {flags}")
    assert (status, place) == ("possible", f"{tmp_path / 'run.sh'}:3")
    assert "transformers 5.0.0 does not take no_cuda." in words
    ((status, place, words),) = told(f"trl sft {flags}")
    assert (status, place) == ("affected", f"{tmp_path / 'run.sh'}:3")


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({"distributions_complete": True}, 1),
        ({}, 0),
        ({"distributions_complete": True, "distributions": {"accelerate": "1.13.0", "deepspeed": "0.17.5"}}, 0),
    ],
)
def test_name_that_needs_an_absent_package_is_reported_for_a_whole_list(
    known: matrix.Matrix, more: dict[str, Any], expected: int
) -> None:
    ask = {"kind": "import", "target": "accelerate.utils", "name": "DummyOptim", "file": "train.py", "line": 3}
    stated = {"distributions": {"accelerate": "1.13.0"}, "trainer": {"asks": [ask]}, **more}
    found = [each for each in matrix.judge(known, Environment(stated)).findings if each.id == "CC-2026-3125"]
    assert len(found) == expected
    for each in found:
        assert "accelerate 1.13.0 has accelerate.utils.DummyOptim only if deepspeed is installed." in each.summary
        assert each.remedies[0].pins == {"deepspeed": ""}


def test_a_call_is_compared_once_however_often_it_is_made() -> None:
    known = matrix.load()
    interfaces, read = Interfaces(known.table), []
    counted = Interfaces(lambda name: read.append(name) or known.table(name))
    ask = Ask("call", "trl.SFTTrainer", "", 0, ("tokenizer",), "", (), 3)
    releases = {"trl": Version("0.24.0")}
    first = counted.refusal(ask, releases)
    times = len(read)
    assert first == interfaces.refusal(ask, releases) and first is not None and first.line == 3
    again = [counted.refusal(ask._replace(line=line), releases) for line in range(100)]
    assert [each.line for each in again if each] == list(range(100)) and len(read) == times


def test_of_a_script_that_asks_without_end_the_start_is_compared() -> None:
    calls = "".join(f"T(a{number}=1)\n" for number in range(limits.ASKS + 50))
    many = ", ".join(f"a{number}=1" for number in range(limits.ASKED_KEYWORDS + 1))
    found = [*asks(ast.parse(f"from trl import SFTTrainer as T\nT({many})\nT(packing=True)\n{calls}"), "train.py")]
    assert len(found) < limits.ASKS + 2 and found[1]["keywords"] == ["packing"]
