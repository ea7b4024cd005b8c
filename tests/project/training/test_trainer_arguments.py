"""Arguments of the Trainer that exclude each other, held against transformers itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from compatcheck.cli import cli

BOTH, BEST = "CC-2021-3472", "CC-2021-3473"
USUAL = {"per_device_train_batch_size": 2, "gradient_accumulation_steps": 4, "logging_steps": 50, "learning_rate": 2e-5}

CASES: dict[str, tuple[dict[str, Any], str | None]] = {
    "bf16": ({"bf16": True}, None),
    "both": ({"bf16": True, "fp16": True}, BOTH),
    "one of both is off": ({"bf16": True, "fp16": False}, None),
    "fp16 and bf16 for evaluation": ({"fp16": True, "bf16_full_eval": True}, None),
    "best without evaluation": ({"load_best_model_at_end": True}, BEST),
    "best by epochs": ({"load_best_model_at_end": True, "eval_strategy": "epoch", "save_strategy": "epoch"}, None),
    "best by steps and epochs": ({"load_best_model_at_end": True, "eval_strategy": "epoch"}, BEST),
    "best without checkpoints": ({"load_best_model_at_end": True, "save_strategy": "no"}, None),
    "best by steps of logging": ({"load_best_model_at_end": True, "eval_strategy": "steps"}, None),
    "best saves between evaluations": (
        {"load_best_model_at_end": True, "eval_strategy": "steps", "eval_steps": 200},
        BEST,
    ),
    "best saves at every second evaluation": (
        {"load_best_model_at_end": True, "eval_strategy": "steps", "eval_steps": 100, "save_steps": 200},
        None,
    ),
    "saves the best": ({"load_best_model_at_end": True, "eval_strategy": "steps", "save_strategy": "best"}, None),
    "keeps the last": ({"eval_strategy": "epoch"}, None),
}


@pytest.mark.parametrize(("arguments", "refusal"), CASES.values(), ids=CASES)
def test_refused_arguments(tmp_path: Path, arguments: dict[str, Any], refusal: str | None) -> None:
    (tmp_path / "run.yaml").write_text(yaml.safe_dump({"training_args": {**USUAL, **arguments}}))
    (tmp_path / "requirements.txt").write_text("torch==2.4.0\ntransformers==4.48.0\naccelerate==1.2.1\n")
    result = CliRunner().invoke(cli, [str(tmp_path), "--no-probe", "--format", "json"])
    found = [each for each in json.loads(result.output)["findings"] if each["id"] in (BOTH, BEST)]
    assert [(each["id"], each["status"]) for each in found] == ([(refusal, "affected")] if refusal else [])
    assert result.exit_code == bool(refusal)
    for each in found:
        assert each["location"]["file"].endswith("run.yaml") and each["location"]["line"]


@pytest.mark.stack
@pytest.mark.parametrize(("arguments", "refusal"), CASES.values(), ids=CASES)
def test_transformers_refuses_the_same_arguments(
    tmp_path: Path, arguments: dict[str, Any], refusal: str | None
) -> None:
    transformers = pytest.importorskip("transformers")
    try:
        transformers.TrainingArguments(output_dir=str(tmp_path), use_cpu=True, **USUAL, **arguments)
    except ValueError as error:
        assert refusal and ("load_best_model_at_end" in str(error)) == (refusal == BEST)
    else:
        assert refusal is None


QUANTIZED = {
    "load_in_4bit: true": True,
    "load_in_4bit: true\nuse_peft: true\nlora_target_modules: all-linear": False,
    "load_in_4bit: false": False,
}


@pytest.mark.parametrize("settings", QUANTIZED)
def test_quantized_model_without_adapters(tmp_path: Path, settings: str) -> None:
    (tmp_path / "sft.yaml").write_text(f"{yaml.safe_dump({**USUAL, 'packing': False, 'bf16': True})}{settings}\n")
    (tmp_path / "requirements.txt").write_text("torch==2.4.0\ntransformers==4.48.0\ntrl==0.14.0\n")
    result = CliRunner().invoke(cli, [str(tmp_path), "--no-probe", "--format", "json"])
    statuses = {each["id"]: each["status"] for each in json.loads(result.output)["findings"]}
    assert statuses.get("CC-2023-3474") == ("affected" if QUANTIZED[settings] else None)
