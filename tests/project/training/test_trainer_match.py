"""What a DeepSpeed JSON gives otherwise than the Trainer's arguments, held against transformers itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from compatcheck.cli import cli
from compatcheck.project.reading import read_paths

SECTIONED = {
    "per_device_train_batch_size": 2,
    "gradient_accumulation_steps": 4,
    "deepspeed": "zero.json",
    "logging_steps": 10,
    "save_steps": 100,
}
"""Arguments of a run that is otherwise left to the defaults."""

CASES: dict[str, tuple[dict[str, Any], dict[str, Any], list[str]]] = {
    "nothing of both": ({}, {}, []),
    "auto": ({}, {"gradient_accumulation_steps": "auto", "train_batch_size": "auto", "gradient_clipping": "auto"}, []),
    "same": ({"bf16": True}, {"gradient_accumulation_steps": 4, "bf16": {"enabled": True}}, []),
    "accumulation": ({}, {"gradient_accumulation_steps": 8}, ["gradient_accumulation_steps"]),
    "accumulation in quotes": ({}, {"gradient_accumulation_steps": "4"}, ["gradient_accumulation_steps"]),
    "micro batch": ({}, {"train_micro_batch_size_per_gpu": 1}, ["train_micro_batch_size_per_gpu"]),
    "micro batch is found": ({"auto_find_batch_size": True}, {"train_micro_batch_size_per_gpu": 1}, []),
    "whole batch": ({}, {"train_batch_size": 8}, []),
    "clipping": ({}, {"gradient_clipping": 0.3}, ["gradient_clipping"]),
    "clipping as a whole number": ({"max_grad_norm": 1.0}, {"gradient_clipping": 1}, []),
    "clipping is given": ({"max_grad_norm": 0.3}, {"gradient_clipping": 0.3}, []),
    "bf16 is not given": ({}, {"bf16": {"enabled": True}}, ["bf16.enabled"]),
    "bf16 is off": ({"bf16": True}, {"bf16": {"enabled": False}}, ["bf16.enabled"]),
    "bf16 for evaluation": ({"bf16_full_eval": True}, {"bf16": {"enabled": True}}, []),
    "fp16 beside bf16": ({"bf16": True}, {"fp16": {"enabled": True}}, ["fp16.enabled"]),
    "empty precision": ({"bf16": True}, {"bf16": {}}, []),
    "learning rate": (
        {"learning_rate": 2e-5},
        {"optimizer": {"type": "AdamW", "params": {"lr": 1e-5}}},
        ["optimizer.params.lr"],
    ),
    "optimizer agrees": (
        {"learning_rate": 2e-5, "weight_decay": 0.1},
        {
            "optimizer": {
                "type": "AdamW",
                "params": {"lr": 2e-5, "betas": [0.9, 0.999], "eps": 1e-8, "weight_decay": 0.1},
            }
        },
        [],
    ),
    "optimizer differs": (
        {"learning_rate": 2e-5},
        {"optimizer": {"params": {"lr": "auto", "betas": [0.9, 0.95], "eps": 1e-6, "weight_decay": 0.1}}},
        ["optimizer.params.betas", "optimizer.params.eps", "optimizer.params.weight_decay"],
    ),
    "warmup": (
        {"warmup_steps": 10, "max_steps": 200, "learning_rate": 2e-5},
        {"scheduler": {"params": {"warmup_num_steps": 20, "total_num_steps": 100, "warmup_max_lr": 1e-3}}},
        ["scheduler.params.total_num_steps", "scheduler.params.warmup_max_lr", "scheduler.params.warmup_num_steps"],
    ),
    "warmup agrees": (
        {"warmup_steps": 10, "max_steps": 200, "learning_rate": 2e-5},
        {"scheduler": {"params": {"warmup_num_steps": 10, "total_num_steps": 200, "warmup_min_lr": 3e-6}}},
        [],
    ),
    "stage and buckets": ({}, {"zero_optimization": {"stage": 3, "reduce_bucket_size": 1e8}, "steps_per_print": 7}, []),
}


def project(folder: Path, arguments: dict[str, Any], configuration: dict[str, Any]) -> Path:
    zero = {"zero_optimization": {"stage": 2}, **configuration}
    (folder / "zero.json").write_text(json.dumps(zero, indent=1))
    (folder / "run.yaml").write_text(yaml.safe_dump({"training_args": {**SECTIONED, **arguments}}))
    (folder / "requirements.txt").write_text("torch==2.4.0\ntransformers==4.48.0\ndeepspeed==0.15.4\n")
    return folder


@pytest.mark.parametrize(("arguments", "configuration", "refused"), CASES.values(), ids=CASES)
def test_refused_keys(
    tmp_path: Path, arguments: dict[str, Any], configuration: dict[str, Any], refused: list[str]
) -> None:
    environment = read_paths([str(project(tmp_path, arguments, configuration))]).environment
    found = environment.section("training").get("contradictions", [])
    assert sorted(each["setting"] for each in found) == sorted(refused)


@pytest.mark.stack
@pytest.mark.parametrize(("arguments", "configuration", "refused"), CASES.values(), ids=CASES)
def test_transformers_refuses_the_same_keys(
    tmp_path: Path, arguments: dict[str, Any], configuration: dict[str, Any], refused: list[str]
) -> None:
    pytest.importorskip("deepspeed")
    deepspeed = pytest.importorskip("transformers.integrations.deepspeed")
    from transformers import PretrainedConfig, TrainingArguments

    class Model:
        config = PretrainedConfig(hidden_size=8)

    given = {**SECTIONED, **arguments}
    del given["deepspeed"]
    trainer = TrainingArguments(output_dir=str(tmp_path), use_cpu=True, **given)
    config = deepspeed.HfTrainerDeepSpeedConfig({"zero_optimization": {"stage": 2}, **configuration})
    config.trainer_config_process(trainer, auto_find_batch_size=trainer.auto_find_batch_size)
    try:
        config.trainer_config_finalize(trainer, Model(), trainer.max_steps if trainer.max_steps > 0 else 10)
    except ValueError as error:
        named = [
            line.split("=")[0].removeprefix("- ds ") for line in str(error).splitlines() if line.startswith("- ds")
        ]
        assert sorted(named) == sorted(refused)
    else:
        assert not refused


def test_refusal_is_a_finding_at_the_line_of_the_json(tmp_path: Path) -> None:
    folder = project(tmp_path, {"bf16": True}, {"bf16": {"enabled": True}, "gradient_clipping": 0.5})
    result = CliRunner().invoke(cli, [str(folder), "--no-probe", "--format", "json"])
    assert result.exit_code == 1
    (finding,) = (each for each in json.loads(result.output)["findings"] if each["id"] == "CC-2022-3470")
    assert finding["status"] == "affected"
    assert finding["location"]["file"].endswith("zero.json") and finding["location"]["line"] == 8
    assert (
        "gradient_clipping is 0.5" in finding["summary"] and "max_grad_norm is 1.0 (its default)" in finding["summary"]
    )
    assert finding["remedies"][0]["config"] == {"training.deepspeed.gradient_clipping": "auto"}
    (folder / "zero.json").write_text((folder / "zero.json").read_text().replace("0.5", '"auto"'))
    healed = CliRunner().invoke(cli, [str(folder), "--no-probe", "--format", "json"])
    assert "CC-2022-3470" not in healed.output


LAUNCHES = {
    "--gradient_accumulation_steps 4": ["gradient_accumulation_steps"],
    "--gradient_accumulation_steps 8": [],
    "--gradient_accumulation_steps 8 --fp16": ["bf16.enabled"],
    "": [],
}
"""Flags of a script that is not at hand: what they leave out, its code may give."""


@pytest.mark.parametrize("flags", LAUNCHES)
def test_flags_of_an_unread_script(tmp_path: Path, flags: str) -> None:
    zero = {"zero_optimization": {"stage": 2}, "gradient_accumulation_steps": 8, "bf16": {"enabled": True}}
    (tmp_path / "zero.json").write_text(json.dumps(zero))
    (tmp_path / "go.sh").write_text(
        f"deepspeed tune.py --deepspeed zero.json --learning_rate 1e-4 --output_dir o {flags}\n"
    )
    found = read_paths([str(tmp_path)]).environment.section("training").get("contradictions", [])
    assert [each["setting"] for each in found] == LAUNCHES[flags]


def test_accelerate_steps_contradict_the_trainer(tmp_path: Path) -> None:
    accelerate = {
        "compute_environment": "LOCAL_MACHINE",
        "distributed_type": "DEEPSPEED",
        "deepspeed_config": {"zero_stage": 2, "gradient_accumulation_steps": 4},
        "num_processes": 2,
    }
    (tmp_path / "two.yaml").write_text(yaml.safe_dump(accelerate))
    (tmp_path / "go.sh").write_text(
        "accelerate launch --config_file two.yaml tune.py --per_device_train_batch_size 1 --output_dir o "
        "--gradient_accumulation_steps 2\n"
    )
    (found,) = read_paths([str(tmp_path)]).environment.section("training")["contradictions"]
    assert (found["setting"], found["value"], found["other_value"]) == ("gradient_accumulation_steps", "4", "2")
    assert found["file"].endswith("two.yaml") and found["line"] == 3


REPEATED = {
    "gradient_accumulation_steps: 4": ["gradient_accumulation_steps"],
    "zero_stage: 2, offload_optimizer_device: none": ["zero_stage", "offload_optimizer_device"],
    "zero3_init_flag: true": [],
}


@pytest.mark.parametrize("settings", REPEATED)
def test_accelerate_settings_beside_a_deepspeed_file(tmp_path: Path, settings: str) -> None:
    (tmp_path / "zero.json").write_text('{"zero_optimization": {"stage": 2}}')
    (tmp_path / "two.yaml").write_text(
        "compute_environment: LOCAL_MACHINE\ndistributed_type: DEEPSPEED\nnum_processes: 2\n"
        f"deepspeed_config: {{deepspeed_config_file: zero.json, {settings}}}\n"
    )
    (tmp_path / "requirements.txt").write_text("torch==2.4.0\naccelerate==1.2.1\ndeepspeed==0.15.4\n")
    result = CliRunner().invoke(cli, [str(tmp_path), "--no-probe", "--format", "json"])
    found = [each for each in json.loads(result.output)["findings"] if each["id"] == "CC-2023-3471"]
    assert len(found) == bool(REPEATED[settings])
    for each in found:
        assert (each["status"], each["location"]["line"], result.exit_code) == ("affected", 4, 1)
        assert all(name in each["summary"] for name in REPEATED[settings])
