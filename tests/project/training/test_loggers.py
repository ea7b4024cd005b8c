"""The loggers of a run, as scripts, flags and the files of several frameworks give them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from compatcheck import matrix
from compatcheck.bug_report import read_report
from compatcheck.environment import Environment, Unknown
from compatcheck.project.reading import read_paths

SCRIPT = "from transformers import Trainer, TrainingArguments\n\nTrainer(args=TrainingArguments('out'{0})).train()\n"
SHELL = "torchrun run_clm.py --output_dir out --per_device_train_batch_size 4 --learning_rate 1e-5 --bf16{0}\n"
SWIFT = "swift sft --model Qwen/Qwen2.5-7B --train_type lora --dataset x --per_device_train_batch_size 1{0}\n"
FACTORY = "model_name_or_path: a/b\nstage: sft\nfinetuning_type: lora\ntemplate: llama2\ndo_train: true\n{0}"
AXOLOTL = "base_model: a/b\nmicro_batch_size: 1\nsequence_len: 512\n{0}"
TRL = "dataset_text_field: text\nper_device_train_batch_size: 1\nlearning_rate: 1e-5\noutput_dir: o\n{0}"


def loggers(tmp_path: Path, name: str, text: str) -> Any:
    path = tmp_path / name
    path.write_text(text)
    return read_paths([str(path)]).environment.get("training.report_to")


@pytest.mark.parametrize(
    ("name", "text", "given", "expected"),
    [
        ("train.py", SCRIPT, ", report_to='none'", ["none"]),
        ("train.py", SCRIPT, ", report_to=[]", ["none"]),
        ("train.py", SCRIPT, ", report_to='wandb'", ["wandb"]),
        ("train.py", SCRIPT, ", report_to=['wandb', 'tensorboard']", ["wandb", "tensorboard"]),
        ("train.py", SCRIPT, ", report_to=None", Unknown()),
        ("train.py", SCRIPT, "", Unknown()),
        ("run.sh", SHELL, " --report_to none", ["none"]),
        ("run.sh", SHELL, " --report_to wandb tensorboard", ["wandb", "tensorboard"]),
        ("run.sh", SWIFT, "", ["tensorboard"]),
        ("run.sh", SWIFT, " --report_to swanlab", ["swanlab"]),
        ("sft.yaml", TRL, "report_to:\n- wandb\n", ["wandb"]),
        ("lora.yaml", FACTORY, "report_to: none\n", ["none"]),
        ("lora.yaml", FACTORY, "report_to: wandb\n", ["wandb"]),
        ("axolotl.yml", AXOLOTL, "wandb_project:\n", ["none"]),
        ("axolotl.yml", AXOLOTL, "wandb_project: mine\nuse_tensorboard: true\n", ["wandb", "tensorboard"]),
        ("axolotl.yml", AXOLOTL, "use_wandb: false\nmlflow_experiment_name: a\n", ["mlflow"]),
        ("axolotl.yml", AXOLOTL, "wandb_project: ${PROJECT}\n", Unknown()),
    ],
)
def test_files_give_the_loggers(tmp_path: Path, name: str, text: str, given: str, expected: object) -> None:
    found = loggers(tmp_path, name, text.format(given))
    assert isinstance(found, Unknown) if isinstance(expected, Unknown) else found == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ('report_to="none"', ["none"]),
        ("report_to=[]", ["none"]),
        ("report_to=['wandb']", ["wandb"]),
        ("--report_to tensorboard", ["tensorboard"]),
        ("report_to=None", None),
    ],
)
def test_bug_reports_give_the_loggers(given: str, expected: object) -> None:
    text = f"```python\nargs = TrainingArguments('out', {given})\n```\n"
    found = read_report(text, "report").get("training.report_to")
    assert found == expected or (expected is None and isinstance(found, Unknown))


@pytest.mark.parametrize(("release", "expected"), [("2025.12.5", ["all"]), ("2025.12.6", ["none"])])
def test_unsloth_turns_loggers_off(release: str, expected: list[str]) -> None:
    training = {"framework": "unsloth", "unsloth": True, "calls": {"trl.SFTConfig": ["output_dir"]}}
    packages = {"unsloth": release, "trl": "0.24.0", "transformers": "4.57.1"}
    view = matrix.infer(matrix.load(), Environment({"distributions": packages, "training": training})).view
    assert view.get("training.report_to") == expected


def test_unknown_unsloth_leaves_loggers_open() -> None:
    training = {"framework": "unsloth", "unsloth": True, "calls": {"trl.SFTConfig": ["output_dir"]}}
    packages = {"trl": "0.24.0", "transformers": "4.57.1"}
    view = matrix.infer(matrix.load(), Environment({"distributions": packages, "training": training})).view
    assert isinstance(view.get("training.report_to"), Unknown)
