"""Projects whose fault shows only by what follows from their files, and the nearest ones that are well."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import run_command

CUDNN, NPU = "CC-2024-0001", "CC-2025-1653"
A100 = ("--assume", "gpu.compute_capability=8.0")
RECIPE = """\
model_name_or_path: weights
stage: sft
do_train: true
finetuning_type: lora
template: glm4
dataset: alpaca_zh
bf16: true
per_device_train_batch_size: 4
output_dir: out
"""
SCRIPT = """\
import torch
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

model = AutoModelForCausalLM.from_pretrained("weights", torch_dtype=torch.bfloat16{attention})
arguments = TrainingArguments("out", bf16=True, per_device_train_batch_size=4)
trainer = Trainer(model, arguments, train_dataset=[])
trainer.train()
"""


def project(folder: Path, requirements: str, model: dict[str, Any], **files: str) -> Path:
    (folder / "weights").mkdir()
    (folder / "weights" / "config.json").write_text(json.dumps({"torch_dtype": "bfloat16", **model}))
    (folder / "requirements.txt").write_text("\n".join(requirements.split()) + "\n")
    for name, text in files.items():
        (folder / name.replace("_", ".")).write_text(text)
    return folder


def report_of(folder: Path, *options: str) -> dict[str, Any]:
    done = run_command(sys.executable, "check", ".", "--no-probe", "--format", "json", *options, cwd=folder)
    assert done.returncode in (0, 1), done.stderr
    shape: dict[str, Any] = json.loads(done.stdout)
    return shape


def is_affected(report: dict[str, Any], entry: str) -> bool:
    return (entry, "affected") in {(finding["id"], finding["status"]) for finding in report["findings"]}


GLM = {"model_type": "glm", "architectures": ["GlmForCausalLM"]}


@pytest.mark.parametrize(
    ("requirements", "model", "options", "expected"),
    [
        ("torch==2.5.0+cu118 transformers==4.46.1 llamafactory==0.9.1", GLM, A100, True),
        ("torch==2.5.1+cu118 transformers==4.46.1 llamafactory==0.9.1", GLM, A100, False),
        ("torch==2.5.0+cpu transformers==4.46.1 llamafactory==0.9.1", GLM, A100, False),
        ("torch==2.5.0+cu118 transformers==4.46.1 llamafactory==0.9.1", GLM, (), False),
        ("torch==2.5.0+cu118 transformers==4.46.1 llamafactory", GLM, A100, False),
        ("torch==2.5.0+cu118 transformers==4.46.1 llamafactory==0.9.1", {"model_type": "gemma2"}, A100, False),
        ("torch==2.5.0+cu118 transformers==4.46.1 llamafactory==0.9.1", {"model_type": "gpt_neox"}, A100, True),
        ("torch==2.5.0+cu118 transformers==4.46.1 llamafactory==0.9.1", {"model_type": "gpt_neo"}, A100, False),
        (
            "torch==2.5.0+cu118 transformers==4.46.1 llamafactory==0.9.1",
            {**GLM, "attn_implementation": "eager"},
            A100,
            False,
        ),
        (
            "torch==2.5.0+cu118 transformers==4.46.1 llamafactory==0.9.1",
            GLM,
            (*A100, "--assume", "training.attention=eager"),
            False,
        ),
    ],
)
def test_a_recipe_without_an_attention_has_the_default_of_its_model(
    tmp_path: Path, requirements: str, model: dict[str, Any], options: tuple[str, ...], expected: bool
) -> None:
    folder = project(tmp_path, requirements, model, run_yaml=RECIPE)
    assert is_affected(report_of(folder, *options), CUDNN) is expected


@pytest.mark.parametrize(
    ("torch", "attention", "expected"),
    [("2.5.0", "", True), ("2.5.1", "", False), ("2.5.0", ', attn_implementation="eager"', False)],
)
def test_a_script_says_by_its_silence_what_runs(tmp_path: Path, torch: str, attention: str, expected: bool) -> None:
    script = SCRIPT.format(attention=attention)
    launch = "CUDA_VISIBLE_DEVICES=0 python train.py\n"
    folder = project(tmp_path, f"torch=={torch} transformers==4.48.0", GLM, train_py=script, train_sh=launch)
    platform = ("--assume", "platform.system=Linux", "--assume", "platform.machine=x86_64")
    assert is_affected(report_of(folder, *A100, *platform), CUDNN) is expected


def test_what_follows_is_shown_with_its_reason(tmp_path: Path) -> None:
    packages = "torch==2.5.0+cu118 transformers==4.46.1 llamafactory==0.9.1"
    folder = project(tmp_path, packages, GLM, run_yaml=RECIPE)
    done = run_command(sys.executable, "check", ".", "--no-probe", "-v", *A100, cwd=folder)
    shown = " ".join(done.stdout.split())
    assert 'training.attention = "sdpa" (default of this transformers release for this model type)' in shown
    assert 'training.optimizer = "adamw_torch" (default of this transformers release)' in shown


@pytest.mark.parametrize(
    ("packages", "launch", "expected"),
    [
        ("torch==2.2.0 torch-npu==2.2.0 transformers==4.51.3", "llamafactory-cli train run.yaml", True),
        ("torch==2.4.0 torch-npu==2.4.0 transformers==4.51.3", "llamafactory-cli train run.yaml", False),
        ("torch==2.2.0 torch-npu==2.2.0 transformers==4.49.0", "llamafactory-cli train run.yaml", False),
        ("torch==2.2.0 torch-npu==2.2.0 transformers==4.51.3", "accelerate launch src/train.py run.yaml", False),
    ],
)
def test_a_recipe_on_npus_has_no_fsdp_and_no_deepspeed(
    tmp_path: Path, packages: str, launch: str, expected: bool
) -> None:
    devices = f"ASCEND_RT_VISIBLE_DEVICES=0,1,2,3 {launch}\n"
    folder = project(tmp_path, f"{packages} llamafactory==0.9.3", GLM, run_yaml=RECIPE, run_sh=devices)
    report = report_of(folder)
    assert is_affected(report, NPU) is expected
    if launch.startswith("llamafactory"):
        assert report["environment"]["training"]["world_size"] == 4
