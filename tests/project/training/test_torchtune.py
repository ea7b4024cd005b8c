from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from compatcheck.environment import Unknown
from compatcheck.project.training.document import Configuration, open_document
from compatcheck.project.training.formats import torchtune

QLORA = """\
root: /data/models
output_dir: ${root}/out
model:
  _component_: torchtune.models.llama3_1.qlora_llama3_1_8b
  lora_attn_modules: ['q_proj', 'output_proj']
  apply_lora_to_mlp: True
  apply_lora_to_output: True
  lora_rank: 8
  lora_alpha: 16
tokenizer:
  _component_: torchtune.models.llama3.llama3_tokenizer
  max_seq_len: 4096
checkpointer:
  _component_: torchtune.training.FullModelHFCheckpointer
  checkpoint_dir: ${root}/llama-3.1
  output_dir: ${output_dir}
resume_from_checkpoint: False
dataset:
  _component_: torchtune.datasets.alpaca_cleaned_dataset
  packed: False
batch_size: 2
optimizer:
  _component_: torch.optim.AdamW
  fused: True
  lr: 3e-4
lr_scheduler:
  _component_: torchtune.training.lr_schedulers.get_cosine_schedule_with_warmup
  num_warmup_steps: 100
loss:
  _component_: torchtune.modules.loss.CEWithChunkedOutputLoss
epochs: 1
gradient_accumulation_steps: 8
clip_grad_norm: null
compile: False
dtype: bf16
enable_activation_checkpointing: True
"""
FULL = """\
# as 0.1 had it
tokenizer:
  _component_: torchtune.models.llama2.llama2_tokenizer
dataset:
  _component_: torchtune.datasets.alpaca_dataset
model:
  _component_: torchtune.models.llama2.llama2_7b
checkpointer:
  _component_: torchtune.utils.FullModelHFCheckpointer
  checkpoint_dir: /data/Llama-2-7b-hf
batch_size: 2
epochs: 3
optimizer:
  _component_: bitsandbytes.optim.PagedAdamW
  lr: 2e-5
loss:
  _component_: torch.nn.CrossEntropyLoss
gradient_accumulation_steps: 1
dtype: fp32
"""
DPO = """\
model:
  _component_: torchtune.models.llama3_2.lora_llama3_2_1b
  lora_attn_modules: ['q_proj', 'v_proj']
  quantize_base: False
  use_dora: True
  lora_rank: ${rank}
rank: 64
dataset:
  _component_: torchtune.datasets.stack_exchange_paired_dataset
  packed: True
batch_size: 4
optimizer: {_component_: bitsandbytes.optim.PagedAdamW8bit, lr: 5e-4}
loss: {_component_: torchtune.rlhf.loss.DPOLoss, beta: 0.1}
fsdp_cpu_offload: True
compile: True
dtype: bf16
"""
SAMPLES = {"qlora.yaml": QLORA, "full.yaml": FULL, "dpo.yaml": DPO}


def read(tmp_path: Path, text: str) -> Configuration:
    path = tmp_path / "recipe.yaml"
    path.write_text(text)
    document = open_document(str(path))
    assert torchtune.recognises(document)
    return torchtune.read(document)


def fact(said: Configuration, path: str) -> Any:
    return said.facts.get(path)


def test_a_qlora_recipe_is_read_with_its_lines(tmp_path: Path) -> None:
    said = read(tmp_path, QLORA)
    expected = {
        "training.method": ("qlora", 4),
        "training.quantization.bits": (4, 4),
        "training.lora.target_modules": (["q_proj", "o_proj", "gate_proj", "up_proj", "down_proj", "lm_head"], 5),
        "training.lora.r": (8, 8),
        "training.max_length": (4096, 12),
        "training.packing": (False, 20),
        "training.per_device_train_batch_size": (2, 21),
        "training.optimizer": ("adamw_torch_fused", 23),
        "training.learning_rate": (3e-4, 25),
        "training.objective": ("sft", 30),
        "training.gradient_accumulation_steps": (8, 32),
        "training.torch_compile": (False, 34),
        "training.dtype": ("bfloat16", 35),
        "training.gradient_checkpointing": (True, 36),
    }
    for path, (value, at) in expected.items():
        assert fact(said, path) == value, path
        assert said.facts.locations[path].line == at, path
    assert fact(said, "training.attention") == "sdpa"
    assert fact(said, "training.mixed_precision") == "no"
    assert fact(said, "training.quantization.method") == "torchao"
    assert said.names == {"model": "/data/models/llama-3.1"}


def test_a_full_recipe_of_an_old_release_is_read(tmp_path: Path) -> None:
    said = read(tmp_path, FULL)
    assert fact(said, "training.method") == "full"
    assert fact(said, "training.lora") is None
    assert fact(said, "training.quantization") is None
    assert fact(said, "training.optimizer") == "paged_adamw_32bit"
    assert fact(said, "training.dtype") == "float32"
    assert fact(said, "training.deepspeed") is None


def test_a_preference_recipe_is_read(tmp_path: Path) -> None:
    said = read(tmp_path, DPO)
    assert fact(said, "training.objective") == "dpo"
    assert fact(said, "training.fsdp.offload") is True
    assert fact(said, "training.method") == "dora"
    assert fact(said, "training.quantization") is None
    assert fact(said, "training.lora.r") == 64
    assert fact(said, "training.optimizer") == "paged_adamw_8bit"
    assert isinstance(fact(said, "training.attention"), Unknown)


@pytest.mark.parametrize(
    ("more", "rank"),
    [
        ("a: 4\n", "${a}"),
        ("a: {b: 4}\n", "${a.b}"),
        ("a: ${b}\nb: ${c}\nc: 4\n", "${a}"),
    ],
)
def test_interpolation_is_resolved_within_the_file(tmp_path: Path, more: str, rank: str) -> None:
    assert fact(read(tmp_path, DPO.replace("${rank}", rank) + more), "training.lora.r") == 4


@pytest.mark.parametrize(
    ("more", "rank"),
    [
        ("", "${gone}"),
        ("", "${oc.env:HOME}"),
        ("", "???"),
        ("a: ${b}\nb: ${a}\n", "${a}"),
        ("a: {b: 4}\n", "${a}"),
        ("".join(f"a{i}: ${{a{i + 1}}}${{a{i + 1}}}\n" for i in range(15)) + "a15: xxxxxxxxxx\n", "${a0}"),
    ],
)
def test_interpolation_that_leads_nowhere_is_unknown(tmp_path: Path, more: str, rank: str) -> None:
    assert isinstance(fact(read(tmp_path, DPO.replace("${rank}", f"'{rank}'") + more), "training.lora.r"), Unknown)


def test_files_for_generation_are_not_claimed(tmp_path: Path) -> None:
    path = tmp_path / "generation.yaml"
    path.write_text("model:\n  _component_: torchtune.models.llama2.llama2_7b\ndtype: bf16\nprompt: hi\n")
    assert not torchtune.recognises(open_document(str(path)))
