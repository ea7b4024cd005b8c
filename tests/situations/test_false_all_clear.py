"""Ordinary projects that once ended with "no known fault" and exit status 0, and whose run dies or trains wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.settings.conftest import Run, installation, project, run
from tests.situations.conftest import Judge

__all__ = ["installation", "project", "run"]

STACK = "torch==2.6.0\ntransformers==4.48.0\naccelerate==1.2.1\npeft==0.14.0\n"
REFUSED, SAVED, ACCUMULATED = "CC-2022-3470", "CC-2024-1429", "CC-2024-0040"

MISMATCH = {
    "requirements.txt": "torch==2.6.0\ntransformers==4.49.0\naccelerate==1.4.0\ndeepspeed==0.16.4\n",
    "conf/zero.json": """{
  "zero_optimization": {"stage": 3},
  "train_batch_size": "auto",
  "train_micro_batch_size_per_gpu": 4,
  "gradient_clipping": "auto",
  "fp16": {"enabled": true}
}
""",
    "pretrain.py": """\
from transformers import HfArgumentParser, Trainer, TrainingArguments

(arguments,) = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()
Trainer(model=model, args=arguments, train_dataset=rows).train()
""",
    "pretrain.sh": (
        "deepspeed --num_gpus 4 pretrain.py --deepspeed conf/zero.json \\\n"
        "  --per_device_train_batch_size 2 \\\n"
        "  --bf16 --output_dir out\n"
    ),
}


def test_deepspeed_file_against_flags(judge: Judge) -> None:
    judged = judge(MISMATCH)
    assert judged.exit_status == 1
    assert judged.affected[REFUSED] == "conf/zero.json:4"


def test_one_of_two_trainings_is_refused(judge: Judge) -> None:
    other = MISMATCH["pretrain.sh"].replace("size 2", "size 4").replace("--bf16", "--fp16")
    assert judge({**MISMATCH, "other.sh": other}).affected[REFUSED] == "conf/zero.json:4"


def test_deepspeed_file_that_agrees(judge: Judge) -> None:
    auto = MISMATCH["conf/zero.json"].replace('_gpu": 4', '_gpu": 2')
    judged = judge({**MISMATCH, "conf/zero.json": auto}, changes={"pretrain.sh": ("--bf16", "--fp16")})
    assert REFUSED not in judged.affected


IN_CODE = {
    "requirements.txt": MISMATCH["requirements.txt"],
    "zero.json": '{"zero_optimization": {"stage": 1},\n "gradient_accumulation_steps": 16}\n',
    "tune.py": """\
from dataclasses import dataclass

from transformers import AutoModelForCausalLM, Trainer, TrainingArguments


@dataclass
class Settings:
    steps: int = 8


settings = Settings()
model = AutoModelForCausalLM.from_pretrained("gpt2")
arguments = TrainingArguments(
    output_dir="out",
    gradient_accumulation_steps=settings.steps,
    deepspeed="zero.json",
)
Trainer(model=model, args=arguments, train_dataset=rows).train()
""",
}


def test_deepspeed_file_against_code(judge: Judge) -> None:
    assert judge(IN_CODE).affected[REFUSED] == "zero.json:2"


@pytest.mark.parametrize("file", ["tune.py", "zero.json"])
def test_deepspeed_file_and_code_agree(judge: Judge, file: str) -> None:
    agreed = {"tune.py": ("steps: int = 8", "steps: int = 16"), "zero.json": ("16", '"auto"')}
    assert REFUSED not in judge(IN_CODE, changes={file: agreed[file]}).affected


SAVING = {
    "requirements.txt": STACK,
    "full.py": """\
import torch
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

model = AutoModelForCausalLM.from_pretrained("./base", torch_dtype=torch.bfloat16)
arguments = TrainingArguments(output_dir="out", save_steps=200, bf16=True)
Trainer(model=model, args=arguments, train_dataset=rows).train()
""",
    "base/config.json": '{"model_type": "mistral", "architectures": ["MistralForCausalLM"]}',
    "base/generation_config.json": '{"bos_token_id": 1, "eos_token_id": 2, "top_p": 0.95, "temperature": 0.2}',
}


def test_model_that_cannot_be_saved(judge: Judge) -> None:
    assert judge(SAVING) == (1, {SAVED: "base/generation_config.json"})


def test_model_that_can_be_saved(judge: Judge) -> None:
    sampling = {"base/generation_config.json": ('"top_p"', '"do_sample": true, "top_p"')}
    assert judge(SAVING, changes=sampling) == (0, {})


def test_adapters_are_saved_without_the_model(judge: Judge) -> None:
    adapters = (
        "from peft import LoraConfig, get_peft_model\n\nmodel = get_peft_model(model, LoraConfig(r=8))\narguments ="
    )
    assert judge(SAVING, changes={"full.py": ("arguments =", adapters)}) == (0, {})


SCRIPT = {
    "requirements.txt": STACK,
    "sft.py": """\
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

STEPS = 4

model = AutoModelForCausalLM.from_pretrained("weights")
arguments = TrainingArguments(
    output_dir="out",
    gradient_accumulation_steps=2 * STEPS,
    bf16=True,
)
Trainer(model=model, args=arguments, train_dataset=rows).train()
""",
    "weights/config.json": '{"model_type": "llama", "architectures": ["LlamaForCausalLM"]}',
    "go.sh": "torchrun --nproc_per_node 2 sft.py\n",
}


def test_script_that_accumulates(judge: Judge) -> None:
    assert judge(SCRIPT) == (1, {ACCUMULATED: "sft.py:8"})


@pytest.mark.parametrize(
    ("file", "change"),
    [("sft.py", ("2 * STEPS", "STEPS // 4")), ("requirements.txt", ("4.48.0", "4.48.3"))],
)
def test_script_that_accumulates_rightly(judge: Judge, file: str, change: tuple[str, str]) -> None:
    assert judge(SCRIPT, changes={file: change}) == (0, {})


def test_notebook_that_accumulates(judge: Judge) -> None:
    import json

    lines = SCRIPT["sft.py"].splitlines(keepends=True)
    cells = [{"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None, "source": lines}]
    notebook = json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})
    files = {"requirements.txt": STACK, "weights/config.json": SCRIPT["weights/config.json"], "sft.ipynb": notebook}
    judged = judge(files, "--assume", "training.deepspeed=absent")
    assert judged.exit_status == 1
    assert judged.affected[ACCUMULATED].startswith("sft.ipynb")


def test_one_of_two_projects(judge: Judge) -> None:
    """Each is judged with its own requirements; the good one hides nothing."""
    files = {f"first/{name}": text for name, text in SCRIPT.items()}
    files |= {f"second/{name}": text for name, text in SCRIPT.items()}
    files["second/requirements.txt"] = STACK.replace("4.48.0", "4.48.3")
    judged = judge(files)
    assert judged.exit_status == 1
    assert judged.affected == {ACCUMULATED: "first/sft.py:8"}


BOTH_PRECISIONS = """\
from transformers import Trainer, TrainingArguments

arguments = TrainingArguments(output_dir="out", fp16=True, bf16=True)
Trainer(model=model, args=arguments, train_dataset=rows).train()
"""
EXCLUSIVE = "CC-2021-3472"


@pytest.fixture
def alone(tmp_path: Path) -> Path:
    """An empty folder."""
    (tmp_path / "alone").mkdir()
    return tmp_path / "alone"


def notebook_with_output(size: int) -> str:
    picture = {"output_type": "display_data", "metadata": {}, "data": {"image/png": "A" * size}}
    cell = {"cell_type": "code", "metadata": {}, "outputs": [picture], "source": BOTH_PRECISIONS.splitlines(True)}
    return json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}, indent=1)


def test_notebook_with_much_output_is_read_where_it_is_found(judge: Judge) -> None:
    files = {"requirements.txt": STACK, "tune.ipynb": notebook_with_output(20 << 20)}
    assert judge(files).affected.keys() == {EXCLUSIVE}


@pytest.mark.parametrize(
    ("script", "seen"),
    [
        (f"{BOTH_PRECISIONS}{'# generated' * 100_000}\n".encode(), "tune.py: the file is larger than 1 MiB"),
        (f"# gr\u00f6\u00dfe\n{BOTH_PRECISIONS}".encode("latin-1"), "tune.py: byte 4 is not UTF-8"),
    ],
    ids=["generated", "not UTF-8"],
)
def test_script_that_cannot_be_read_is_told(run: Run, alone: Path, script: bytes, seen: str) -> None:
    (alone / "tune.py").write_bytes(script)
    (alone / "requirements.txt").write_text(STACK)
    done = run("check", ".", cwd=alone)
    assert f"settings     not judged: {seen}" in done.stdout


def test_arguments_that_exclude_each_other_without_a_version(run: Run, alone: Path) -> None:
    (alone / "tune.py").write_text(BOTH_PRECISIONS)
    done = run("check", "tune.py", cwd=alone)
    possible = done.stdout.partition("possible  ")[2]
    assert EXCLUSIVE in possible and "arguments.fp16 true (tune.py:3)" in possible


def test_reason_is_told_where_the_only_list_is_broken(run: Run, alone: Path) -> None:
    (alone / "requirements.txt").write_text("torch==2.5.0\n-r requirements.txt\n")
    done = run("check", ".", cwd=alone)
    assert done.returncode == 3 and len(done.stderr.splitlines()) == 1
    assert "requirements.txt: the includes form a cycle" in done.stderr


OWN_LOOP = {
    "requirements.txt": "torch==2.1.2\ntransformers==4.36.2\ndeepspeed==0.12.6\nnumpy==1.26.4\n",
    "engine.json": """{
  "train_micro_batch_size_per_gpu": 4,
  "fp16": {"enabled": true},
  "bf16": {"enabled": true},
  "zero_optimization": {"stage": 3}
}
""",
    "main.py": """\
import deepspeed

engine, *_ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config="engine.json")
engine.backward(loss)
""",
}
TWO_TYPES = "CC-2021-3475"


def test_engine_with_two_types_of_weights(judge: Judge) -> None:
    assert judge(OWN_LOOP) == (1, {TWO_TYPES: "engine.json:3"})


@pytest.mark.parametrize("kept", ["fp16", "bf16"])
def test_engine_with_one_type_of_weights(judge: Judge, kept: str) -> None:
    on, off = f'"{kept}": {{"enabled": true}}', f'"{kept}": {{"enabled": false}}'
    assert judge(OWN_LOOP, changes={"engine.json": (on, off)}) == (0, {})


def test_setting_that_is_off_unless_asked_for_is_not_waited_for(run: Run, alone: Path) -> None:
    (alone / "requirements.txt").write_text(STACK)
    (alone / "tune.py").write_text(SAVING["full.py"].replace("bf16=True", "fp16=True").replace("./base", "gpt2"))
    done = run("check", ".", cwd=alone)
    assert "CC-2024-2303" in done.stdout.partition("possible  ")[2]
