from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from compatcheck.environment import Unknown
from compatcheck.project.training.document import Configuration, open_document
from compatcheck.project.training.formats import peft_adapter

NEW = """{
  "alora_invocation_tokens": null,
  "base_model_name_or_path": "google/gemma-7b",
  "bias": "none",
  "fan_in_fan_out": false,
  "inference_mode": true,
  "init_lora_weights": true,
  "lora_alpha": 32,
  "lora_dropout": 0.05,
  "modules_to_save": ["lm_head", "embed_tokens"],
  "peft_type": "LORA",
  "peft_version": "0.18.0",
  "r": 16,
  "rank_pattern": {},
  "target_modules": ["v_proj", "q_proj", "embed_tokens"],
  "task_type": "CAUSAL_LM",
  "use_dora": true,
  "use_rslora": false
}
"""
OLD = """{
  "base_model_name_or_path": "THUDM/chatglm-6b",
  "bias": "none",
  "enable_lora": null,
  "fan_in_fan_out": false,
  "inference_mode": true,
  "lora_alpha": 32.0,
  "lora_dropout": 0.1,
  "merge_weights": false,
  "modules_to_save": null,
  "peft_type": "LORA",
  "r": 8,
  "target_modules": null,
  "task_type": "CAUSAL_LM"
}
"""
PROMPT = json.dumps({"peft_type": "PROMPT_TUNING", "base_model_name_or_path": "a/b", "task_type": "CAUSAL_LM"})
LINEAR = json.dumps({"peft_type": "LORA", "r": 4, "target_modules": "all-linear", "init_lora_weights": "pissa"})
SAMPLES = {"adapter_config.json": NEW, "old_adapter.json": OLD, "prompt.json": PROMPT, "linear.json": LINEAR}


def read(tmp_path: Path, text: str) -> Configuration:
    path = tmp_path / "adapter_config.json"
    path.write_text(text)
    document = open_document(str(path))
    assert peft_adapter.recognises(document)
    return peft_adapter.read(document)


def fact(said: Configuration, path: str) -> Any:
    return said.facts.get(path)


def test_an_adapter_is_read_with_its_lines(tmp_path: Path) -> None:
    said = read(tmp_path, NEW)
    expected = {
        "model.name": ("google/gemma-7b", 3),
        "training.lora.bias": ("none", 4),
        "training.lora.init_lora_weights": (True, 7),
        "training.lora.lora_alpha": (32, 8),
        "training.lora.modules_to_save": (["embed_tokens", "lm_head"], 10),
        "training.lora.r": (16, 13),
        "training.lora.target_modules": (["embed_tokens", "q_proj", "v_proj"], 15),
        "training.method": ("dora", 17),
        "training.lora.use_rslora": (False, 18),
    }
    for path, (value, at) in expected.items():
        assert fact(said, path) == value, path
        assert said.facts.locations[path].line == at, path
    assert said.names["base"] == "google/gemma-7b"


def test_what_an_adapter_does_not_say_is_unknown(tmp_path: Path) -> None:
    said = read(tmp_path, OLD)
    assert isinstance(fact(said, "training.lora.target_modules"), Unknown)
    assert isinstance(fact(said, "training.method"), Unknown)
    assert isinstance(fact(said, "training.lora.autocast_adapter_dtype"), Unknown)
    assert fact(said, "training.lora.modules_to_save") is None


def test_the_order_of_the_modules_does_not_count(tmp_path: Path) -> None:
    shuffled = NEW.replace('["v_proj", "q_proj", "embed_tokens"]', '["embed_tokens", "v_proj", "q_proj"]')
    assert read(tmp_path, NEW).facts.facts == read(tmp_path, shuffled).facts.facts


def test_all_linear_and_regular_expressions_are_told_apart(tmp_path: Path) -> None:
    said = read(tmp_path, LINEAR)
    assert fact(said, "training.lora.target_modules") == ["all-linear"]
    assert fact(said, "training.lora.init_lora_weights") == "pissa"
    said = read(tmp_path, LINEAR.replace("all-linear", r".*\\.q_proj"))
    assert isinstance(fact(said, "training.lora.target_modules"), Unknown)


def test_another_kind_of_adapter_has_its_method_alone(tmp_path: Path) -> None:
    said = read(tmp_path, PROMPT)
    assert said.facts.facts == {"training": {"method": "prompt_tuning"}, "model": {"name": "a/b"}}
