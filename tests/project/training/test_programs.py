"""Programs of one's own among the files of a training: with what starts them, and with what only stands near by."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from compatcheck.cli import cli
from compatcheck.environment import Environment, Unknown
from compatcheck.project.reading import read_paths

PARSED = """\
import sys
from dataclasses import dataclass, field
from transformers import AutoModelForCausalLM, HfArgumentParser, Trainer, TrainingArguments

@dataclass
class ModelArguments:
    attn: str = field(default="eager")

parser = HfArgumentParser((ModelArguments, TrainingArguments))
if len(sys.argv) == 2 and sys.argv[1].endswith(".yaml"):
    model_args, args = parser.parse_yaml_file(yaml_file=sys.argv[1])
else:
    model_args, args = parser.parse_args_into_dataclasses()
model = AutoModelForCausalLM.from_pretrained("acme/seven", attn_implementation=model_args.attn)
Trainer(model=model, args=args).train()
"""
OF_TRL = """\
from trl import ModelConfig, ScriptArguments, SFTConfig, SFTTrainer, TrlParser, get_peft_config
parser = TrlParser((ScriptArguments, SFTConfig, ModelConfig))
script_args, args, model_args = parser.parse_args_and_config()
SFTTrainer(model=model_args.model_name_or_path, args=args, peft_config=get_peft_config(model_args)).train()
"""
PLAIN = """\
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments
model = AutoModelForCausalLM.from_pretrained("acme/seven")
Trainer(model, TrainingArguments("out", bf16=True, gradient_accumulation_steps={steps})).train()
"""
DEMO = """\
training_args:
  output_dir: out
  per_device_train_batch_size: 3
  learning_rate: 5e-4
  max_steps: 10
peft_config: {peft_type: LORA, r: 4}
"""
LOOP = """\
import torch
from accelerate import Accelerator
accelerator = Accelerator()
model, optimizer = accelerator.prepare(torch.nn.Linear(2, 2), None)
accelerator.backward(model(None))
"""
ENGINE = """\
import argparse, deepspeed, torch
parser = deepspeed.add_config_arguments(argparse.ArgumentParser())
deepspeed.initialize(args=parser.parse_args(), model=torch.nn.Linear(2, 2))
"""
USE = "from transformers import AutoModelForCausalLM\nAutoModelForCausalLM.from_pretrained('a/b').generate()\n"


def said(folder: Path, files: dict[str, str], *named: str) -> Environment:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return read_paths([str(folder / name) for name in named] or [str(folder)]).environment


@pytest.mark.parametrize(
    ("files", "facts"),
    [
        (
            {"train.py": PARSED, "run.sh": "torchrun --nproc_per_node 4 train.py --attn sdpa --fp16 --output_dir o\n"},
            {"attention": "sdpa", "dtype": "float16", "world_size": 4, "deepspeed": None, "fsdp": None},
        ),
        (
            {
                "train.py": PARSED,
                "run.sh": "python train.py conf.yaml\n",
                "conf.yaml": "attn: sdpa\nbf16: true\noutput_dir: o\n",
            },
            {"attention": "sdpa", "dtype": "bfloat16", "world_size": 1},
        ),
        (
            {
                "sft.py": OF_TRL,
                "run.sh": "accelerate launch --num_processes 2 sft.py --config c.yaml --lora_alpha 7\n",
                "c.yaml": "model_name_or_path: a/b\nuse_peft: true\nlora_r: 4\nbf16: true\noutput_dir: o\n",
            },
            {"objective": "sft", "lora.r": 4, "lora.lora_alpha": 7, "world_size": 2, "method": "lora"},
        ),
        (
            {"train.py": PLAIN.format(steps=2), "go.sh": "#!/bin/bash\npython train.py\n"},
            {"gradient_accumulation_steps": 2, "world_size": 1, "deepspeed": None},
        ),
        (
            {"loop.py": LOOP, "run.sh": "torchrun --nproc_per_node 2 loop.py\n"},
            {"framework": "accelerate", "gradient_accumulation_steps": 1, "mixed_precision": "no", "deepspeed": None},
        ),
        (
            {"loop.py": LOOP, "run.sh": "accelerate launch --use_deepspeed --zero_stage 3 --num_processes 4 loop.py\n"},
            {"framework": "accelerate", "deepspeed.zero_stage": 3, "world_size": 4},
        ),
        (
            {
                "engine.py": ENGINE,
                "run.sh": "deepspeed --num_gpus 4 engine.py --deepspeed --deepspeed_config ds.json\n",
                "ds.json": '{"zero_optimization": {"stage": 2}, "bf16": {"enabled": true}}\n',
            },
            {"framework": "deepspeed", "deepspeed.zero_stage": 2, "dtype": "bfloat16"},
        ),
        (
            {"train.py": PLAIN.format(steps=2), "configs/lora.yaml": DEMO},
            {"gradient_accumulation_steps": 2, "per_device_train_batch_size": 8, "lora": None},
        ),
        (
            {"a.py": PLAIN.format(steps=2), "b.py": PLAIN.format(steps=4), "run.sh": "python b.py\n", "use.py": USE},
            {"gradient_accumulation_steps": 4},
        ),
        (
            {"a.py": PLAIN.format(steps=2), "tests/test_a.py": PLAIN.format(steps=1)},
            {"gradient_accumulation_steps": 2},
        ),
        (
            {"a.py": PLAIN.format(steps=2), "use.py": USE, "broken.py": "from transformers import Trainer\nTrainer(\n"},
            {"gradient_accumulation_steps": 2},
        ),
    ],
)
def test_a_program_is_read_as_it_is_started(tmp_path: Path, files: dict[str, str], facts: dict[str, Any]) -> None:
    environment = said(tmp_path, files)
    assert {path: environment.get(f"training.{path}") for path in facts} == facts


def test_a_file_of_the_same_name_in_the_home_folder_is_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "b.py").write_text(PLAIN.format(steps=8), encoding="utf-8")
    files = {"a.py": PLAIN.format(steps=2), "b.py": PLAIN.format(steps=4), "run.sh": "python b.py\n"}
    (tmp_path / "tune").mkdir()
    assert said(tmp_path / "tune", files).get("training.gradient_accumulation_steps") == 4


def test_configuration_of_the_launch_line_is_all_that_its_parser_is_given(tmp_path: Path) -> None:
    environment = said(
        tmp_path,
        {
            "scripts/sft.py": OF_TRL,
            "run.sh": "python scripts/sft.py --config configs/c.yaml\n",
            "configs/c.yaml": "model_name_or_path: a/b\nbf16: true\noutput_dir: o\n",
        },
    )
    assert environment.get("training.dtype") == "bfloat16"
    assert environment.get("training.deepspeed") is None


def test_several_programs_decide_what_they_agree_on(tmp_path: Path) -> None:
    environment = said(tmp_path, {"a.py": PLAIN.format(steps=2), "b.py": PLAIN.format(steps=4)})
    assert environment.get("training.dtype") == "bfloat16"
    differs = environment.get("training.gradient_accumulation_steps")
    assert isinstance(differs, Unknown) and "a.py" in str(differs.reason) and "b.py" in str(differs.reason)


def test_flags_count_where_the_script_itself_is_not_here(tmp_path: Path) -> None:
    line = "torchrun --nproc_per_node 2 gone.py --bf16 True --output_dir o --learning_rate 1e-4\n"
    assert said(tmp_path, {"run.sh": line}).get("training.dtype") == "bfloat16"


def test_a_command_gives_the_model_folder_that_the_script_takes_otherwise(tmp_path: Path) -> None:
    code = "import sys\nfrom transformers import AutoModelForCausalLM, Trainer, TrainingArguments\n"
    code += (
        "model = AutoModelForCausalLM.from_pretrained(sys.argv[1])\nTrainer(model, TrainingArguments('o')).train()\n"
    )
    files = {
        "train.py": code,
        "run.sh": "python train.py data/rows seven\n",
        "seven/config.json": '{"model_type": "llama"}',
    }
    assert said(tmp_path, files).get("model.type") == "llama"


def test_a_named_script_that_is_broken_costs_itself_alone(tmp_path: Path) -> None:
    files = {"train.py": "from transformers import Trainer\nTrainer(\n", "requirements.txt": "torch==2.5.0\n"}
    environment = said(tmp_path, files, "train.py", "requirements.txt")
    assert environment.get("distributions.torch") == "2.5.0"
    assert "line 2" in environment.reasons["training"]


def test_the_command_prints_facts_of_a_script_with_its_lines(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(PLAIN.format(steps=3), encoding="utf-8")
    done = CliRunner().invoke(cli, ["env", str(tmp_path / "train.py")])
    stated = json.loads(done.stdout)
    assert stated["training"]["gradient_accumulation_steps"] == 3
    assert stated["locations"]["training.gradient_accumulation_steps"]["line"] == 3


def notebook(*cells: str, output: str = "") -> str:
    printed = [{"output_type": "stream", "name": "stdout", "text": [output]}]
    made = [
        {"cell_type": "code", "source": cell.splitlines(True), "outputs": printed, "metadata": {}, "execution_count": 1}
        for cell in cells
    ]
    return json.dumps({"cells": made, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}, indent=1)


def test_a_notebook_is_a_program_whatever_it_printed(tmp_path: Path) -> None:
    imports, rest = PLAIN.format(steps=2).split("\n", 1)
    files = {"train.ipynb": notebook(f"!pip install trl\n{imports}", rest, output="x" * 3_000_000)}
    environment = said(tmp_path, files)
    assert environment.get("training.gradient_accumulation_steps") == 2
    line = environment.locations["training.gradient_accumulation_steps"].line
    assert line and "gradient_accumulation_steps" in files["train.ipynb"].splitlines()[line - 1]


def test_a_script_out_of_all_proportion_is_one_line(tmp_path: Path) -> None:
    files = {"gen.py": PLAIN.format(steps=2) + "x = 1\n" * 200_000, "requirements.txt": "torch==2.5.0\n"}
    environment = said(tmp_path, files, "gen.py", "requirements.txt")
    assert environment.get("distributions.torch") == "2.5.0"
    assert "larger than 1 MiB" in environment.reasons["training"]
