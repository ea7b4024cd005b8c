from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from compatcheck.environment import Unknown
from compatcheck.project.training.document import Configuration, open_document
from compatcheck.project.training.formats import nemo

LORA = """\
name: megatron_gpt_peft_${model.peft.peft_scheme}_tuning
trainer:
  devices: 8
  num_nodes: 2
  precision: bf16
  max_steps: 2000
  gradient_clip_val: 1.0
model:
  tensor_model_parallel_size: 4
  pipeline_model_parallel_size: 1
  global_batch_size: 64
  micro_batch_size: 2
  restore_from_path: /data/llama.nemo
  megatron_amp_O2: True
  activations_checkpoint_granularity: selective
  peft:
    peft_scheme: "lora"
    lora_tuning:
      adapter_dim: 32
  data:
    train_ds:
      micro_batch_size: ${model.micro_batch_size}
      max_seq_length: 2048
  optim:
    name: fused_adam
    lr: 1e-4
"""
PRETRAIN = """\
defaults:
  - _self_
trainer:
  devices: 1
  precision: 16
  max_steps: 100000
model:
  micro_batch_size: 4
  global_batch_size: 8
  tensor_model_parallel_size: 1
  encoder_seq_length: 512
  activations_checkpoint_granularity: null
  restore_from_path: ???
"""
NEW = PRETRAIN.replace("precision: 16", "precision: bf16-true").replace("devices: 1", "devices: auto")
SAMPLES = {"lora.yaml": LORA, "pretrain.yaml": PRETRAIN, "new.yaml": NEW}


def read(tmp_path: Path, text: str) -> Configuration:
    path = tmp_path / "nemo.yaml"
    path.write_text(text)
    document = open_document(str(path))
    assert nemo.recognises(document)
    return nemo.read(document)


def fact(said: Configuration, path: str) -> Any:
    return said.facts.get(path)


def test_a_lora_tuning_is_read_with_its_lines(tmp_path: Path) -> None:
    said = read(tmp_path, LORA)
    expected = {
        "training.world_size": (16, 3),
        "training.dtype": ("bfloat16", 5),
        "training.max_steps": (2000, 6),
        "training.gradient_accumulation_steps": (8, 11),
        "training.per_device_train_batch_size": (2, 12),
        "training.gradient_checkpointing": (True, 15),
        "training.method": ("lora", 17),
        "training.lora.r": (32, 19),
        "training.max_length": (2048, 23),
        "training.optimizer": ("fused_adam", 25),
        "training.learning_rate": (1e-4, 26),
    }
    for path, (value, at) in expected.items():
        assert fact(said, path) == value, path
        assert said.facts.locations[path].line == at, path
    assert said.names == {"model": "/data/llama.nemo"}


@pytest.mark.parametrize(
    ("precision", "dtype", "mixed"),
    [
        ("16", "float16", "fp16"),
        ("'16-mixed'", "float16", "fp16"),
        ("bf16-mixed", "bfloat16", "bf16"),
        ("bf16-true", "bfloat16", "no"),
        ("32", "float32", "no"),
    ],
)
def test_precisions_have_the_meaning_of_lightning(tmp_path: Path, precision: str, dtype: str, mixed: str) -> None:
    said = read(tmp_path, PRETRAIN.replace("precision: 16", f"precision: {precision}"))
    assert fact(said, "training.dtype") == dtype
    assert fact(said, "training.mixed_precision") == mixed


def test_what_is_not_given_is_unknown(tmp_path: Path) -> None:
    said = read(tmp_path, NEW)
    assert isinstance(fact(said, "training.world_size"), Unknown)
    assert isinstance(fact(said, "training.gradient_accumulation_steps"), Unknown)
    assert fact(said, "training.gradient_checkpointing") is False
    assert said.names == {}
