from __future__ import annotations

from pathlib import Path
from typing import Any

from compatcheck.environment import Unknown
from compatcheck.project.training.document import Configuration, open_document
from compatcheck.project.training.formats import axolotl

QLORA = """\
base_model: NousResearch/Llama-3.2-1B
load_in_8bit: false
load_in_4bit: true
datasets:
  - path: my/data
    type: alpaca
adapter: qlora
lora_model_dir:
sequence_len: 2048
sample_packing: true
lora_r: 32
lora_alpha: 16
lora_target_modules:
  - q_proj
  - v_proj
lora_target_linear: true
lora_modules_to_save: [embed_tokens]
gradient_accumulation_steps: 4
micro_batch_size: 2
num_epochs: 1
optimizer: adamw_bnb_8bit
learning_rate: 0.0002
bf16: true
gradient_checkpointing: true
gradient_checkpointing_kwargs:
  use_reentrant: false
flash_attention: true
deepspeed:
plugins:
  - axolotl.integrations.liger.LigerPlugin
"""
FSDP = """\
base_model: casper/llama-3-70b
datasets: [{path: a, type: completion}]
dataset_prepared_path: last_run_prepared
rl: dpo
micro_batch_size: 1
num_epochs: 4
optimizer: adamw_torch_fused
learning_rate: 1e-5
bf16: auto
attn_implementation: sdpa
fsdp:
  - full_shard
  - auto_wrap
fsdp_version: 2
fsdp_config:
  fsdp_offload_params: true
  fsdp_use_orig_params: false
  fsdp_cpu_ram_efficient_loading: true
  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP
  fsdp_state_dict_type: FULL_STATE_DICT
  fsdp_sharding_strategy: FULL_SHARD
"""
OLD = """\
base_model: openlm-research/open_llama_3b
base_model_config: openlm-research/open_llama_3b
load_in_8bit: true
load_in_4bit: false
datasets:
  - path: teknium/GPT4-LLM-Cleaned
    type: alpaca
val_set_size: 0.02
adapter: lora
sequence_len: 256
lora_r: 8
lora_target_modules: [gate_proj]
batch_size: 32
micro_batch_size: 16
num_epochs: 3
bf16: false
fp16: true
tf32: false
xformers_attention: true
deepspeed: deepspeed/zero3.json
"""
SAMPLES = {"qlora.yml": QLORA, "fsdp.yaml": FSDP, "old.yml": OLD}


def read(tmp_path: Path, text: str) -> Configuration:
    path = tmp_path / "axolotl.yml"
    path.write_text(text)
    document = open_document(str(path))
    assert axolotl.recognises(document)
    return axolotl.read(document)


def fact(said: Configuration, path: str) -> Any:
    return said.facts.get(path)


def test_a_qlora_training_is_read_with_its_lines(tmp_path: Path) -> None:
    said = read(tmp_path, QLORA)
    expected = {
        "training.method": ("qlora", 7),
        "training.max_length": (2048, 9),
        "training.packing": (True, 10),
        "training.lora.r": (32, 11),
        "training.lora.target_modules": (["all-linear", "q_proj", "v_proj"], 16),
        "training.lora.modules_to_save": (["embed_tokens"], 17),
        "training.gradient_accumulation_steps": (4, 18),
        "training.per_device_train_batch_size": (2, 19),
        "training.optimizer": ("adamw_bnb_8bit", 21),
        "training.dtype": ("bfloat16", 23),
        "training.load_dtype": ("bfloat16", 23),
        "training.gradient_checkpointing": (True, 24),
        "training.gradient_checkpointing_kwargs.use_reentrant": (False, 26),
        "training.attention": ("flash_attention_2", 27),
        "training.deepspeed": (None, 28),
        "training.use_liger_kernel": (True, 29),
        "training.quantization.bits": (4, 3),
    }
    for path, (value, at) in expected.items():
        assert fact(said, path) == value, path
        assert said.facts.locations[path].line == at, path
    assert fact(said, "training.objective") == "sft"
    assert fact(said, "training.quantization.type") == "nf4"
    assert fact(said, "training.quantization.compute_dtype") == "bfloat16"


def test_auto_is_left_to_the_gpu(tmp_path: Path) -> None:
    said = read(tmp_path, FSDP)
    assert fact(said, "training.dtype") == Unknown("auto: bfloat16 if the GPUs support it (axolotl.yml:9)")
    assert fact(said, "training.dtype_rule") == "bfloat16-if-supported"
    assert isinstance(fact(said, "training.load_dtype"), Unknown)
    silent = read(tmp_path, FSDP.replace("bf16: auto\n", ""))
    assert fact(silent, "training.dtype") == Unknown("bf16 is not set, and its default changed between releases")
    off = read(tmp_path, FSDP.replace("bf16: auto", "bf16: auto\nfp16: false"))
    assert isinstance(fact(off, "training.dtype_rule"), Unknown)
    float16 = read(tmp_path, FSDP.replace("bf16: auto", "bf16: auto\nfp16: true"))
    assert fact(float16, "training.dtype") == "float16"


def test_fsdp_and_preference_training_are_read(tmp_path: Path) -> None:
    said = read(tmp_path, FSDP)
    assert fact(said, "training.objective") == "dpo"
    assert fact(said, "training.method") == "full"
    assert fact(said, "training.lora") is None
    assert fact(said, "training.attention") == "sdpa"
    assert fact(said, "training.fsdp") == {
        "version": 2,
        "sharding_strategy": "FULL_SHARD",
        "offload": True,
        "cpu_ram_efficient_loading": True,
        "use_orig_params": False,
        "state_dict_type": "FULL_STATE_DICT",
        "auto_wrap_policy": "TRANSFORMER_BASED_WRAP",
    }
    assert fact(said, "training.deepspeed") is None
    assert fact(said, "training.gradient_checkpointing") is False


def test_the_names_of_old_releases_are_read(tmp_path: Path) -> None:
    said = read(tmp_path, OLD)
    assert fact(said, "training.gradient_accumulation_steps") == 2
    assert fact(said, "training.dtype") == "float16"
    assert fact(said, "training.attention") == "xformers"
    assert fact(said, "training.method") == "lora"
    assert fact(said, "training.quantization") == {"bits": 8, "method": "bitsandbytes"}
    assert said.names["deepspeed"] == "deepspeed/zero3.json"


def test_both_precisions_off_is_float32(tmp_path: Path) -> None:
    said = read(tmp_path, OLD.replace("fp16: true", "fp16: false").replace("load_in_8bit: true", "load_in_8bit: false"))
    assert fact(said, "training.dtype") == "float32"
    assert fact(said, "training.load_dtype") == "float32"
    assert fact(said, "training.mixed_precision") == "no"


def test_a_merge_of_models_is_not_claimed(tmp_path: Path) -> None:
    path = tmp_path / "merge.yml"
    path.write_text("base_model: a/b\nmerge_method: ties\nmodels:\n  - model: c/d\ndtype: bfloat16\n")
    assert not axolotl.recognises(open_document(str(path)))
