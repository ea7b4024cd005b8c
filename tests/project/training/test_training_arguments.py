from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from compatcheck.environment import Environment, Unknown
from compatcheck.project.training import reader_of
from compatcheck.project.training.document import Configuration, open_document
from compatcheck.project.training.formats import training_arguments

RECIPE = """\
# Model arguments
model_name_or_path: acme/seven-b
torch_dtype: bfloat16
attn_implementation: flash_attention_2
load_in_4bit: true
use_peft: true
lora_r: 32
lora_alpha: 64
lora_target_modules:
- q_proj
- embed_tokens
bf16: true
gradient_accumulation_steps: 3
gradient_checkpointing: true
gradient_checkpointing_kwargs:
  use_reentrant: false
learning_rate: 3e-4
max_seq_length: 1024
max_steps: -1
output_dir: out
packing: true
per_device_train_batch_size: 6
report_to: [none]
"""
GLM_4 = """\
data_config:
  train_file: train.jsonl
max_input_length: 256
training_args:
  output_dir: ./out
  max_steps: 100
  learning_rate: 5e-4
  per_device_train_batch_size: 3
  save_strategy: steps
  save_steps: 50
  deepspeed: configs/ds_zero_2.json
peft_config:
  peft_type: LORA
  r: 4
  lora_alpha: 8
  target_modules: ["query_key_value"]
"""


def said(tmp_path: Path, text: Any, name: str = "config.yaml") -> Configuration:
    path = tmp_path / name
    path.write_text(text if isinstance(text, str) else json.dumps(text, indent=1))
    document = open_document(str(path))
    assert reader_of(document) == "training_arguments"
    return training_arguments.read(document)


def fact(said: Configuration, path: str) -> Any:
    return Environment(said.facts.facts, said.facts.reasons).get(f"training.{path}")


def test_a_recipe_of_trl_with_the_line_of_each_fact(tmp_path: Path) -> None:
    recipe = said(tmp_path, RECIPE)
    expected = {
        "framework": ("trl", None),
        "dtype": ("bfloat16", 12),
        "mixed_precision": ("bf16", 12),
        "load_dtype": ("bfloat16", 3),
        "attention": ("flash_attention_2", 4),
        "method": ("qlora", 6),
        "quantization.bits": (4, 5),
        "quantization.method": ("bitsandbytes", 5),
        "quantization.compute_dtype": ("bfloat16", 3),
        "lora.r": (32, 7),
        "lora.target_modules": (["q_proj", "embed_tokens"], 9),
        "lora.modules_to_save": (None, None),
        "gradient_accumulation_steps": (3, 13),
        "gradient_checkpointing": (True, 14),
        "gradient_checkpointing_kwargs.use_reentrant": (False, 16),
        "learning_rate": (3e-4, 17),
        "max_length": (1024, 18),
        "packing": (True, 21),
        "per_device_train_batch_size": (6, 22),
        "max_grad_norm": (1.0, None),
    }
    for path, (value, line) in expected.items():
        assert fact(recipe, path) == value, path
        at = recipe.facts.locations.get(f"training.{path}")
        assert (at.line if at else None) == line, path
    assert recipe.names == {"model": "acme/seven-b"}
    for path in ("optimizer", "deepspeed", "fsdp"):
        assert isinstance(fact(recipe, path), Unknown)


def test_glm_4_keeps_its_arguments_in_a_section(tmp_path: Path) -> None:
    glm = said(tmp_path, GLM_4)
    assert fact(glm, "framework") == "transformers"
    assert fact(glm, "per_device_train_batch_size") == 3
    assert isinstance(fact(glm, "max_length"), Unknown), "the length of an answer comes on top of the input's"
    assert fact(glm, "method") == "lora"
    assert fact(glm, "lora.target_modules") == ["query_key_value"]
    assert glm.names == {"deepspeed": "configs/ds_zero_2.json"}
    assert glm.facts.locations["training.learning_rate"].line == 7


def test_saved_arguments(tmp_path: Path) -> None:
    saved = said(
        tmp_path,
        {
            "output_dir": "out",
            "per_device_train_batch_size": 2,
            "gradient_accumulation_steps": 1,
            "learning_rate": 5e-05,
            "bf16": False,
            "fp16": False,
            "optim": "adamw_torch",
            "torch_compile": True,
            "fsdp": ["full_shard", "auto_wrap", "offload"],
            "fsdp_config": {"cpu_ram_efficient_loading": True, "version": 2},
            "deepspeed": {"zero_optimization": {"stage": 3}},
        },
        "training_args.json",
    )
    assert fact(saved, "dtype") == "float32"
    assert fact(saved, "optimizer") == "adamw_torch"
    assert fact(saved, "torch_compile") is True
    assert fact(saved, "fsdp") == {
        "offload": True,
        "sharding_strategy": "full_shard",
        "version": 2,
        "cpu_ram_efficient_loading": True,
    }
    inner = saved.inlined["deepspeed"]
    assert inner.value == {"zero_optimization": {"stage": 3}}
    assert inner.place(("zero_optimization", "stage")).line == 21


@pytest.mark.parametrize(
    ("lines", "dtype"),
    [
        ("bf16: true", "bfloat16"),
        ("fp16: 'true'", "float16"),
        ("bf16: false\nfp16: false", "float32"),
        ("bf16: false", Unknown),
        ("", Unknown),
        ("bf16: ${precision}", Unknown),
    ],
)
def test_the_dtype_of_autocast(tmp_path: Path, lines: str, dtype: Any) -> None:
    base = "output_dir: o\nper_device_train_batch_size: 1\nlearning_rate: 1e-4\nlogging_steps: 1\n"
    found = fact(said(tmp_path, base + lines), "dtype")
    assert (isinstance(found, Unknown) and found.reason) if dtype is Unknown else found == dtype


def test_a_value_of_another_kind_is_unknown_with_its_line(tmp_path: Path) -> None:
    text = "output_dir: o\nper_device_train_batch_size: '{{ batch }}'\nlearning_rate: auto\nbf16: true\nsave_steps: 1\n"
    found = said(tmp_path, text)
    unknown = fact(found, "per_device_train_batch_size")
    assert isinstance(unknown, Unknown)
    assert "config.yaml:2" in (unknown.reason or "")
    assert isinstance(fact(found, "learning_rate"), Unknown)


def test_the_dtype_of_the_checkpoint_is_not_ours_to_tell(tmp_path: Path) -> None:
    unknown = fact(said(tmp_path, RECIPE.replace("torch_dtype: bfloat16", "torch_dtype: auto")), "load_dtype")
    assert isinstance(unknown, Unknown) and "checkpoint" in (unknown.reason or "")


@pytest.mark.parametrize(
    "text",
    [
        "a: 1\n",
        "model_name_or_path: x\nper_device_train_batch_size: 1\n",
        "services:\n  web: {image: nginx}\n",
    ],
)
def test_other_files_are_not_claimed(tmp_path: Path, text: str) -> None:
    path = tmp_path / "other.yaml"
    path.write_text(text)
    assert reader_of(open_document(str(path))) is None


def test_fsdp_config_leaves_the_kind_of_state_dict_open(tmp_path: Path) -> None:
    section = {"fsdp_version": 1, "fsdp_state_dict_type": "SHARDED_STATE_DICT"}
    arguments = {"output_dir": "o", "per_device_train_batch_size": 1, "learning_rate": 1e-5, "bf16": True}
    sharded = said(tmp_path, {**arguments, "fsdp": "full_shard", "fsdp_config": section}, "args.json")
    assert fact(sharded, "fsdp.version") == 1
    assert isinstance(fact(sharded, "fsdp.state_dict_type"), Unknown)


def test_the_trainer_takes_fsdp_or_deepspeed_and_never_both(tmp_path: Path) -> None:
    arguments = {"output_dir": "o", "per_device_train_batch_size": 1, "learning_rate": 1e-5, "bf16": True}
    sharded = said(tmp_path, {**arguments, "fsdp": "full_shard auto_wrap"}, "args.json")
    assert fact(sharded, "fsdp.sharding_strategy") == "full_shard"
    assert fact(sharded, "deepspeed") is None
    assert isinstance(fact(said(tmp_path, arguments, "args.json"), "deepspeed"), Unknown)


def test_whether_vllm_writes_the_answers(tmp_path: Path) -> None:
    assert fact(said(tmp_path, RECIPE + "use_vllm: true\n"), "use_vllm") is True
    assert isinstance(fact(said(tmp_path, RECIPE), "use_vllm"), Unknown)


GRPO = """\
model_name_or_path: acme/seven-b
num_generations: 8
use_vllm: true
temperature: 0.7
top_p: 0.9
top_k: 20
vllm_importance_sampling_correction: false
per_device_train_batch_size: 6
gradient_accumulation_steps: 2
max_steps: 10
learning_rate: 1e-6
output_dir: out
"""


def test_sampling_of_a_rollout(tmp_path: Path) -> None:
    found = said(tmp_path, GRPO)
    assert [fact(found, f"sampling.{name}") for name in ("temperature", "top_p", "top_k")] == [0.7, 0.9, 20]
    assert fact(found, "sampling.importance_correction") is False
    assert fact(found, "sampling.repetition_penalty") == 1.0
    assert fact(found, "sampling.min_p") is None


def test_loss_and_rounds_of_a_rollout(tmp_path: Path) -> None:
    found = said(tmp_path, GRPO + "loss_type: dapo\nsteps_per_generation: 4\n")
    assert [fact(found, name) for name in ("loss_type", "steps_per_generation")] == ["dapo", 4]


def test_defaults_of_a_rollout_need_vllm(tmp_path: Path) -> None:
    found = said(tmp_path, GRPO.replace("use_vllm: true", "use_vllm: false").replace("top_p: 0.9\n", ""))
    assert isinstance(fact(found, "sampling.top_p"), Unknown)
    found = said(tmp_path, GRPO.replace("temperature: 0.7\n", "").replace("top_p: 0.9\n", ""))
    assert fact(found, "sampling.top_p") == 1.0
    assert isinstance(fact(found, "sampling.temperature"), Unknown)
