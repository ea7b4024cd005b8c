from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from compatcheck.environment import Unknown
from compatcheck.project.training.document import Configuration, open_document
from compatcheck.project.training.formats import llama_factory

LORA = """\
### model
model_name_or_path: Qwen/Qwen2.5-7B-Instruct
trust_remote_code: true

### method
stage: sft
do_train: true
finetuning_type: lora
lora_rank: 16
lora_target: all
deepspeed: examples/deepspeed/ds_z2_config.json

### dataset
dataset: identity
template: qwen
cutoff_len: 4096
packing: true

### train
per_device_train_batch_size: 2
gradient_accumulation_steps: 4
learning_rate: 5.0e-5
num_train_epochs: 2.0
bf16: true
flash_attn: fa2
enable_liger_kernel: true
resume_from_checkpoint: null
"""
QLORA = """\
model_name_or_path: google/gemma-2b
quantization_bit: 4
quantization_method: bitsandbytes  # older spelling of bnb
stage: dpo
pref_loss: orpo
do_train: true
finetuning_type: lora
lora_target: q_proj,v_proj
additional_target: embed_tokens,lm_head
use_dora: false
dataset: dpo_en
template: gemma
cutoff_len: 1024
fp16: true
flash_attn: disabled
disable_gradient_checkpointing: true
optim: paged_adamw_8bit
"""
OLD = """\
# as releases before 0.7 had it
stage: pt
do_train: true
model_name_or_path: meta-llama/Llama-2-7b-hf
dataset: wiki_demo
finetuning_type: full
flash_attn: true
upcast_layernorm: true
per_device_train_batch_size: 1
pure_bf16: true
"""
JSON = """{
  "stage": "sft", "do_train": true, "finetuning_type": "freeze", "template": "llama3",
  "model_name_or_path": "models/llama-3", "use_unsloth": true,
  "fp16": false, "bf16": false, "deepspeed": {"zero_optimization": {"stage": 3}}
}
"""
SAMPLES = {"lora.yaml": LORA, "qlora.yml": QLORA, "old.yaml": OLD, "train.json": JSON}


def read(tmp_path: Path, text: str, name: str = "train.yaml") -> Configuration:
    path = tmp_path / name
    path.write_text(text)
    document = open_document(str(path))
    assert llama_factory.recognises(document)
    return llama_factory.read(document)


def fact(said: Configuration, path: str) -> Any:
    return said.facts.get(path)


def line(said: Configuration, path: str) -> int | None:
    return said.facts.locations[path].line


def test_a_lora_training_is_read_with_its_lines(tmp_path: Path) -> None:
    said = read(tmp_path, LORA)
    expected = {
        "training.framework": ("llama-factory", None),
        "training.objective": ("sft", 6),
        "training.method": ("lora", 8),
        "training.lora.r": (16, 9),
        "training.lora.target_modules": (["all-linear"], 10),
        "training.template": ("qwen", 15),
        "training.max_length": (4096, 16),
        "training.packing": (True, 17),
        "training.per_device_train_batch_size": (2, 20),
        "training.gradient_accumulation_steps": (4, 21),
        "training.learning_rate": (5e-5, 22),
        "training.dtype": ("bfloat16", 24),
        "training.mixed_precision": ("bf16", 24),
        "training.attention": ("flash_attention_2", 25),
        "training.use_liger_kernel": (True, 26),
        "model.name": ("Qwen/Qwen2.5-7B-Instruct", 2),
    }
    for path, (value, at) in expected.items():
        assert fact(said, path) == value, path
        if at is not None:
            assert line(said, path) == at, path
    assert said.names == {"model": "Qwen/Qwen2.5-7B-Instruct", "deepspeed": "examples/deepspeed/ds_z2_config.json"}


def test_gradient_checkpointing_is_on_unless_disabled(tmp_path: Path) -> None:
    said = read(tmp_path, LORA)
    assert fact(said, "training.gradient_checkpointing") is True
    assert fact(said, "training.gradient_checkpointing_kwargs.use_reentrant") is True
    assert fact(said, "training.use_cache") is False
    said = read(tmp_path, QLORA)
    assert fact(said, "training.gradient_checkpointing") is False
    assert line(said, "training.gradient_checkpointing") == 16
    assert isinstance(fact(said, "training.use_cache"), Unknown)


def test_a_quantized_training_is_nf4_in_the_dtype_of_the_run(tmp_path: Path) -> None:
    said = read(tmp_path, QLORA)
    assert fact(said, "training.quantization") == {
        "bits": 4,
        "method": "bitsandbytes",
        "type": "nf4",
        "double_quant": True,
        "compute_dtype": "float16",
    }
    assert fact(said, "training.method") == "qlora"
    assert fact(said, "training.objective") == "orpo"
    assert fact(said, "training.lora.modules_to_save") == ["embed_tokens", "lm_head"]
    assert fact(said, "training.lora.target_modules") == ["q_proj", "v_proj"]
    assert fact(said, "training.attention") == "eager"
    assert fact(said, "training.deepspeed") is None


@pytest.mark.parametrize(
    ("given", "attention"),
    [
        ("fa2", "flash_attention_2"),
        ("sdpa", "sdpa"),
        ("disabled", "eager"),
        ("off", "eager"),
        ("true", "flash_attention_2"),
    ],
)
def test_attention_takes_the_names_of_transformers(tmp_path: Path, given: str, attention: str) -> None:
    text = LORA.replace("flash_attn: fa2", f"flash_attn: {given}")
    assert fact(read(tmp_path, text), "training.attention") == attention


def test_generation_while_evaluating_is_known_where_it_is_stated(tmp_path: Path) -> None:
    assert fact(read(tmp_path, LORA + "predict_with_generate: true\n"), "training.predict_with_generate") is True
    assert isinstance(fact(read(tmp_path, LORA), "training.predict_with_generate"), Unknown)


@pytest.mark.parametrize("text", [LORA.replace("flash_attn: fa2\n", ""), LORA.replace("fa2", "auto")])
def test_attention_left_to_the_model_is_unknown(tmp_path: Path, text: str) -> None:
    assert isinstance(fact(read(tmp_path, text), "training.attention"), Unknown)


def test_the_dtype_of_loading_changed_between_releases(tmp_path: Path) -> None:
    alone = read(tmp_path, LORA.replace("deepspeed: examples/deepspeed/ds_z2_config.json\n", ""))
    assert fact(alone, "training.dtype") == "bfloat16"
    assert "later releases in the model's own" in str(fact(alone, "training.load_dtype"))
    assert fact(alone, "training.deepspeed") is None


def test_the_names_of_old_releases_are_read(tmp_path: Path) -> None:
    said = read(tmp_path, OLD)
    assert fact(said, "training.objective") == "pretrain"
    assert fact(said, "training.packing") is True
    assert fact(said, "training.method") == "full"
    assert fact(said, "training.lora") is None
    assert fact(said, "training.quantization") is None
    assert fact(said, "training.dtype") == "bfloat16"
    assert fact(said, "training.mixed_precision") == "no"
    assert fact(said, "training.attention") == "flash_attention_2"
    assert isinstance(fact(said, "training.max_length"), Unknown)


def test_json_with_deepspeed_written_out_is_read(tmp_path: Path) -> None:
    said = read(tmp_path, JSON, "train.json")
    assert said.inlined["deepspeed"].value == {"zero_optimization": {"stage": 3}}
    assert said.names == {"model": "models/llama-3"}
    assert fact(said, "training.method") == "freeze"
    assert fact(said, "training.unsloth") is True
    assert isinstance(fact(said, "training.dtype"), Unknown)


def test_a_model_that_may_be_stored_quantized_leaves_quantization_open(tmp_path: Path) -> None:
    said = read(tmp_path, LORA.replace("Qwen2.5-7B-Instruct", "Qwen2.5-7B-Instruct-GPTQ-Int4"))
    assert isinstance(fact(said, "training.quantization"), Unknown)


def test_a_model_that_is_a_folder_here_is_no_hub_id(tmp_path: Path) -> None:
    assert fact(read(tmp_path, LORA), "model.name") == "Qwen/Qwen2.5-7B-Instruct"
    (tmp_path / "Qwen" / "Qwen2.5-7B-Instruct").mkdir(parents=True)
    assert isinstance(fact(read(tmp_path, LORA), "model.name"), Unknown)


@pytest.mark.parametrize(
    "text",
    [
        "model_name_or_path: a/b\ntemplate: llama3\ninfer_backend: huggingface\n",
        "model_name_or_path: a/b\ntemplate: llama3\nfinetuning_type: lora\nexport_dir: out\n",
        "model_name_or_path: a/b\nstage: sft\nfinetuning_type: lora\ntemplate: llama3\ndo_predict: true\n",
        "top.lang: en\ntop.model_name: Llama-3\ntrain.lora_rank: 8\n",
    ],
)
def test_files_for_inference_export_and_the_web_page_are_not_claimed(tmp_path: Path, text: str) -> None:
    path = tmp_path / "other.yaml"
    path.write_text(text)
    assert not llama_factory.recognises(open_document(str(path)))


def test_neat_packing_is_told_from_plain_packing(tmp_path: Path) -> None:
    plain, neat = read(tmp_path, LORA), read(tmp_path, LORA.replace("packing: true", "neat_packing: true"))
    assert fact(plain, "training.packing") is True
    assert fact(plain, "training.neat_packing") is False
    assert (fact(neat, "training.packing"), fact(neat, "training.neat_packing")) == (True, True)
