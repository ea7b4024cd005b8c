from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from compatcheck.environment import Unknown
from compatcheck.project.training.document import Configuration, open_document
from compatcheck.project.training.formats import ms_swift

V4 = """\
model: Qwen/Qwen2.5-7B-Instruct
tuner_type: lora
target_modules:
  - q_proj
  - k_proj
torch_dtype: bfloat16
attn_impl: flash_attn
num_train_epochs: 5
per_device_train_batch_size: 1
learning_rate: 1e-4
dataset: swift/self-cognition#1000
gradient_accumulation_steps: 8
deepspeed: zero3
"""
V3 = json.dumps(
    {
        "model": "/models/glm-4-9b-chat",
        "model_type": "glm4",
        "torch_dtype": "bfloat16",
        "attn_impl": None,
        "train_type": "lora",
        "adapters": [],
        "template": "glm4",
        "use_chat_template": True,
        "max_length": 2048,
        "padding_side": "right",
        "quant_method": "bnb",
        "quant_bits": 4,
        "bnb_4bit_compute_dtype": "torch.bfloat16",
        "bnb_4bit_quant_type": "nf4",
        "bnb_4bit_use_double_quant": True,
        "per_device_train_batch_size": 2,
        "gradient_accumulation_steps": 8,
        "gradient_checkpointing": True,
        "gradient_checkpointing_kwargs": {"use_reentrant": False},
        "fp16": False,
        "bf16": True,
        "optim": "adamw_torch",
        "target_modules": ["all-linear"],
        "modules_to_save": [],
        "lora_rank": 8,
        "lora_alpha": 32,
        "packing": False,
        "global_world_size": 4,
        "deepspeed": {"zero_optimization": {"stage": 2, "overlap_comm": False}},
        "rlhf_type": "dpo",
    },
    indent=2,
)
V2 = json.dumps(
    {
        "model_type": "glm4-9b-chat",
        "model_id_or_path": "ZhipuAI/glm-4-9b-chat",
        "sft_type": "full",
        "template_type": "chatglm4",
        "dtype": "fp16",
        "use_flash_attn": True,
        "batch_size": 1,
        "gradient_accumulation_steps": 16,
        "quantization_bit": 0,
        "learning_rate": 1e-05,
        "deepspeed": None,
        "use_liger": False,
        "gradient_checkpointing": True,
        "optim": "adamw_torch",
        "packing": False,
    },
    indent=2,
)
SAMPLES = {"sft.yaml": V4, "args.json": V3, "sft_args.json": V2}


def read(tmp_path: Path, text: str, name: str = "args.json") -> Configuration:
    path = tmp_path / name
    path.write_text(text)
    document = open_document(str(path))
    assert ms_swift.recognises(document)
    return ms_swift.read(document)


def fact(said: Configuration, path: str) -> Any:
    return said.facts.get(path)


def test_yaml_of_release_4_is_read_with_its_lines(tmp_path: Path) -> None:
    said = read(tmp_path, V4, "sft.yaml")
    expected = {
        "training.method": ("lora", 2),
        "training.lora.target_modules": (["q_proj", "k_proj"], 3),
        "training.load_dtype": ("bfloat16", 6),
        "training.dtype": ("bfloat16", 6),
        "training.attention": ("flash_attention_2", 7),
        "training.per_device_train_batch_size": (1, 9),
        "training.learning_rate": (1e-4, 10),
        "training.gradient_accumulation_steps": (8, 12),
        "model.name": ("Qwen/Qwen2.5-7B-Instruct", 1),
    }
    for path, (value, at) in expected.items():
        assert fact(said, path) == value, path
        assert said.facts.locations[path].line == at, path
    assert said.names == {"model": "Qwen/Qwen2.5-7B-Instruct", "deepspeed": "zero3"}
    assert fact(said, "training.gradient_checkpointing") is True
    assert isinstance(fact(said, "training.objective"), Unknown)


def test_arguments_that_release_3_saved_are_read(tmp_path: Path) -> None:
    said = read(tmp_path, V3)
    assert fact(said, "training.framework") == "ms-swift"
    assert fact(said, "training.method") == "qlora"
    assert fact(said, "training.objective") == "dpo"
    assert fact(said, "training.world_size") == 4
    assert fact(said, "training.padding_side") == "right"
    assert fact(said, "training.lora.target_modules") == ["all-linear"]
    assert fact(said, "training.lora.modules_to_save") is None
    assert fact(said, "training.gradient_checkpointing_kwargs.use_reentrant") is False
    assert fact(said, "training.quantization") == {
        "bits": 4,
        "method": "bitsandbytes",
        "type": "nf4",
        "double_quant": True,
        "compute_dtype": "bfloat16",
    }
    assert said.inlined["deepspeed"].value["zero_optimization"]["stage"] == 2
    assert said.names == {"model": "/models/glm-4-9b-chat"}
    assert isinstance(fact(said, "model.name"), Unknown)


def test_arguments_that_release_2_saved_are_read(tmp_path: Path) -> None:
    said = read(tmp_path, V2, "sft_args.json")
    assert fact(said, "training.method") == "full"
    assert fact(said, "training.dtype") == "float16"
    assert fact(said, "training.load_dtype") == "float32"
    assert fact(said, "training.attention") == "flash_attention_2"
    assert fact(said, "training.per_device_train_batch_size") == 1
    assert fact(said, "training.quantization") is None
    assert fact(said, "training.deepspeed") is None
    assert fact(said, "training.template") == "chatglm4"


def test_since_release_3_float32_weights_train_under_float16(tmp_path: Path) -> None:
    said = read(tmp_path, V4.replace("torch_dtype: bfloat16", "torch_dtype: float32"), "sft.yaml")
    assert fact(said, "training.dtype") == "float16"
    assert fact(said, "training.load_dtype") == "float32"


def test_the_old_name_of_a_preset_loses_its_prefix(tmp_path: Path) -> None:
    said = read(tmp_path, V2.replace('"deepspeed": null', '"deepspeed": "default-zero2"'))
    assert said.names["deepspeed"] == "zero2"
    assert fact(said, "training.deepspeed") == Unknown("default-zero2 decides (args.json:12)")


def test_modules_that_only_the_model_tells_are_unknown(tmp_path: Path) -> None:
    said = read(tmp_path, V3.replace('"all-linear"', '"all-embedding"'))
    assert isinstance(fact(said, "training.lora.target_modules"), Unknown)


def test_arguments_of_the_megatron_trainer_are_not_claimed(tmp_path: Path) -> None:
    path = tmp_path / "args.json"
    path.write_text(V3.replace('"model_type"', '"tensor_model_parallel_size": 2, "model_type"'))
    assert not ms_swift.recognises(open_document(str(path)))
