"""The pieces of a report that belong to one run: a command, and the files it names, pasted beside it."""

from __future__ import annotations

from typing import Any

import pytest

from compatcheck.bug_report import read_report
from compatcheck.environment import Unknown

YAML = """model_name_or_path: acme/bar-7b
stage: sft
do_train: true
finetuning_type: full
template: bar
deepspeed: ds.json
bf16: true
"""
ZERO = '{"zero_optimization": {"stage": 2, "overlap_comm": true}, "train_micro_batch_size_per_gpu": "auto"}'
PROGRAM = """import sys
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

model = AutoModelForCausalLM.from_pretrained("acme/bar-7b", attn_implementation="eager")
args = TrainingArguments("out", per_device_train_batch_size=3, bf16=True)
Trainer(model=model, args=args).train()
"""
ACCELERATE = """compute_environment: LOCAL_MACHINE
distributed_type: FSDP
num_processes: 4
mixed_precision: bf16
fsdp_config:
  fsdp_offload_params: true
"""
FIRST_HALF, SECOND_HALF = PROGRAM.split("args =")


def fenced(text: str, language: str = "") -> str:
    return f"```{language}\n{text.rstrip()}\n```\n"


RUNS: list[tuple[str, str, dict[str, Any]]] = [
    (
        "a YAML of LLaMA-Factory, by its command and under another name",
        f"Ascend 910B\nASCEND_RT_VISIBLE_DEVICES=0,1,2,3 llamafactory-cli train my.yaml\n{fenced(YAML, 'yaml')}",
        {
            "training.framework": "llama-factory",
            "training.world_size": 4,
            "training.method": "full",
            "training.template": "bar",
            "training.deepspeed_file": "ds.json",
            "model.name": "acme/bar-7b",
        },
    ),
    (
        "a YAML outside of any fence, with the JSON that it names in one line",
        f"llamafactory-cli train my.yaml\nwith this:\n\n{YAML}\nand ds.json is {ZERO}\n",
        {
            "training.method": "full",
            "training.deepspeed.zero_stage": 2,
            "training.deepspeed.overlap_comm": True,
            "training.deepspeed_file": Unknown(),
        },
    ),
    (
        "of two YAMLs the one that stands below its name",
        "llamafactory-cli train b.yaml\n\na.yaml:\n"
        + fenced(YAML.replace("template: bar", "template: foo"))
        + "b.yaml:\n"
        + fenced(YAML),
        {"training.template": "bar", "training.method": "full"},
    ),
    (
        "a part of a YAML says no more than it says",
        "model_name_or_path: acme/bar-7b\nstage: dpo\nfinetuning_type: lora\nbf16: true\n",
        {
            "training.framework": "llama-factory",
            "training.objective": "dpo",
            "training.method": "lora",
            "training.dtype": "bfloat16",
            "training.per_device_train_batch_size": Unknown(),
            "training.deepspeed": Unknown(),
        },
    ),
    (
        "a script with its launcher",
        f"torchrun --nproc_per_node 2 train.py\n{fenced(PROGRAM, 'python')}",
        {
            "training.world_size": 2,
            "training.framework": "transformers",
            "training.per_device_train_batch_size": 3,
            "training.attention": "eager",
            "training.deepspeed": None,
        },
    ),
    ("a script in a fence without language", fenced(PROGRAM), {"training.per_device_train_batch_size": 3}),
    (
        "a script in no fence, and words behind it",
        f"My script is:\n\n{PROGRAM}\nIt dies at once.\n",
        {"training.per_device_train_batch_size": 3, "training.attention": "eager"},
    ),
    (
        "an accelerate config that the command names",
        f"accelerate launch --config_file fsdp.yaml train.py\n{fenced(ACCELERATE)}{fenced(PROGRAM, 'py')}",
        {"training.world_size": 4, "training.fsdp.offload": True, "training.per_device_train_batch_size": 3},
    ),
    (
        "a part of an accelerate config",
        fenced("distributed_type: MULTI_GPU\nmixed_precision: fp16\nnum_machines: 2\nnum_processes: 2", "yaml"),
        {"training.world_size": 2, "training.dtype": "float16", "training.framework": Unknown()},
    ),
    (
        "flags of accelerate before a script that nobody shows",
        fenced("accelerate launch \\\n  --use_fsdp \\\n  --num_processes=8 \\\n  -m mypackage.tune --lr 1e-4"),
        {"training.fsdp": {}, "training.world_size": 8, "training.framework": Unknown()},
    ),
    (
        "a command in a sentence",
        "I start it by `deepspeed --num_gpus 4 own.py --deepspeed conf/zero3.json`, which hangs",
        {"training.world_size": 4, "training.launcher": "deepspeed", "training.deepspeed_file": "conf/zero3.json"},
    ),
    (
        "a command in a Chinese sentence",
        "我用swift sft --model acme/bar-7b --train_type lora，损失是 0",
        {"training.framework": "ms-swift", "training.method": "lora", "model.name": "acme/bar-7b"},
    ),
    (
        "a command whose end is left out with dots",
        "trl sft --model acme/bar-7b --bf16 ...",
        {"training.dtype": "bfloat16", "training.framework": "trl", "training.per_device_train_batch_size": Unknown()},
    ),
    (
        "the package of a training program, and a training",
        "llamafactory 0.9.2, torch 2.5.1, LoRA fine-tuning in bf16: the loss is 0",
        {"training.framework": "llama-factory"},
    ),
    (
        "the package of a training program, and a chat",
        "llamafactory 0.9.2: chat fails",
        {"training.framework": Unknown()},
    ),
    (
        "the packages of two training programs",
        "- llamafactory version: 0.9.2\n- ms-swift version: 3.1.0\n\nLoRA fine-tuning: the loss is 0",
        {"training.framework": Unknown()},
    ),
    (
        "words that only begin as a command does",
        "deepspeed is slow, accelerate launch hangs and python train takes long",
        {"training.launcher": Unknown(), "training.world_size": Unknown()},
    ),
]


@pytest.mark.parametrize(("text", "facts"), [run[1:] for run in RUNS], ids=[run[0] for run in RUNS])
def test_the_pieces_of_a_run_are_read_together(text: str, facts: dict[str, Any]) -> None:
    found = read_report(text, "report")
    assert {path: found.get(path) for path in facts} == facts


def test_every_value_keeps_the_line_of_its_piece() -> None:
    text = f"It fails.\nllamafactory-cli train my.yaml\n{fenced(YAML, 'yaml')}"
    locations = {path: at.line for path, at in read_report(text, "report").locations.items()}
    assert locations["training.launcher"] == 2
    assert locations["training.method"] == 7 and locations["training.template"] == 8


def test_no_file_of_this_machine_is_read(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my.yaml").write_text(YAML)
    (tmp_path / "train.py").write_text(PROGRAM)
    monkeypatch.chdir(tmp_path)
    for command in (f"llamafactory-cli train {tmp_path}/my.yaml", "torchrun --nproc_per_node 2 train.py --bf16 --fp16"):
        found = read_report(command, "report")
        assert found.get("training.method") == Unknown() and found.get("model.name") == Unknown()
