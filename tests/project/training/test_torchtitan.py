from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from compatcheck.environment import Environment, Unknown
from compatcheck.project.training._joining import File, Run, join_run
from compatcheck.project.training.document import Configuration, open_document
from compatcheck.project.training.formats import torchtitan

LLAMA3_8B = """\
# torchtitan/models/llama3/train_configs/llama3_8b.toml of 0.2.2

[job]
dump_folder = "./outputs"
description = "Llama 3 8B training"

[model]
name = "llama3"
flavor = "8B"
hf_assets_path = "./assets/hf/Llama-3.1-8B"
# converters = ["float8"]

[optimizer]
name = "AdamW"
lr = 3e-4
eps = 1e-8

[lr_scheduler]
warmup_steps = 200  # lr scheduler warm up

[training]
local_batch_size = 1
seq_len = 8192
max_norm = 1.0  # grad norm clipping
steps = 1000
dataset = "c4"

[parallelism]
data_parallel_replicate_degree = 1
data_parallel_shard_degree = -1
tensor_parallel_degree = 1
pipeline_parallel_degree = 1
context_parallel_degree = 1

[compile]
enable=false
components = ["model", "loss"]

[activation_checkpoint]
mode = "selective"  # ["none", "selective", "full"]
selective_ac_option = "op"

[quantize.linear.float8]
enable_fsdp_float8_all_gather = false
filter_fqns = ["output"]
"""
LLAMA3_70B = """\
# torchtitan/models/llama3/train_configs/llama3_70b.toml of 0.1.0, shortened, with other degrees
[job]
dump_folder = "./outputs"

[model]
name = "llama3"
flavor = "70B"

[optimizer]
name = "AdamW"
lr = 8e-4
implementation = "foreach"

[training]
local_batch_size = 8
global_batch_size = 64
seq_len = 2048
max_norm = 1.0
steps = 10
enable_cpu_offload = true
compile = true

[parallelism]
data_parallel_replicate_degree = 2
data_parallel_shard_degree = 2
fsdp_reshard_after_forward = "always"
tensor_parallel_degree = 4

[activation_checkpoint]
mode = "none"
"""
SAMPLES = {"llama3_8b.toml": LLAMA3_8B, "llama3_70b.toml": LLAMA3_70B}


def read(tmp_path: Path, text: str) -> Configuration:
    path = tmp_path / "run.toml"
    path.write_text(text)
    document = open_document(str(path))
    assert torchtitan.recognises(document)
    return torchtitan.read(document)


def fact(said: Configuration, name: str) -> Any:
    return said.facts.get(f"training.{name}")


def test_a_file_of_the_project_is_read_with_its_lines(tmp_path: Path) -> None:
    said = read(tmp_path, LLAMA3_8B)
    expected = {
        "optimizer": ("adamw_torch_fused", 14),
        "learning_rate": (3e-4, 15),
        "warmup_steps": (200, 19),
        "per_device_train_batch_size": (1, 22),
        "max_length": (8192, 23),
        "max_grad_norm": (1.0, 24),
        "max_steps": (1000, 25),
        "torch_compile": (False, 36),
        "gradient_checkpointing": (True, 40),
        "framework": ("torchtitan", None),
        "dtype": ("bfloat16", None),
        "mixed_precision": ("bf16", None),
        "load_dtype": ("float32", None),
        "gradient_accumulation_steps": (1, None),
        "method": ("full", None),
        "lora": (None, None),
        "deepspeed": (None, None),
    }
    for name, (value, line) in expected.items():
        assert fact(said, name) == value, name
        at = said.facts.locations.get(f"training.{name}")
        assert (at.line if at else None) == line, name
    assert said.names == {"model": "./assets/hf/Llama-3.1-8B"}


def test_the_ranks_that_are_left_over_are_unknown(tmp_path: Path) -> None:
    said = read(tmp_path, LLAMA3_8B)
    for name in ("world_size", "fsdp", "several_ranks", "attention", "objective", "quantization"):
        assert isinstance(fact(said, name), Unknown), name
    assert str(said.facts.reasons["training.world_size"]).endswith("(run.toml:30)")


def test_degrees_multiply_to_the_ranks(tmp_path: Path) -> None:
    said = read(tmp_path, LLAMA3_70B)
    assert fact(said, "world_size") == 16
    assert fact(said, "several_ranks") is True
    assert fact(said, "fsdp") == {"version": 2, "offload": True, "reshard_after_forward": True}
    assert fact(said, "gradient_accumulation_steps") == 2
    assert fact(said, "torch_compile") is True
    assert fact(said, "gradient_checkpointing") is False
    assert fact(said, "optimizer") == "adamw_torch"


@pytest.mark.parametrize(
    ("old", "new", "name", "value"),
    [
        ("shard_degree = -1", "shard_degree = 1", "world_size", 1),
        ("shard_degree = -1", "shard_degree = 1", "fsdp", None),
        ("context_parallel_degree = 1", "context_parallel_degree = 2", "fsdp", {"version": 2}),
        ("tensor_parallel_degree = 1", "tensor_parallel_degree = 8", "several_ranks", True),
        ("tensor_parallel_degree = 1", "tensor_parallel_degree = 8", "dtype", Unknown),
        (
            "shard_degree = -1\ntensor_parallel_degree = 1",
            "shard_degree = 1\ntensor_parallel_degree = 8",
            "dtype",
            "float32",
        ),
        ("shard_degree = -1", "shard_degree = 0", "world_size", Unknown),
        ('dataset = "c4"', 'mixed_precision_param = "float32"', "mixed_precision", "no"),
        ('dataset = "c4"', "global_batch_size = 64", "gradient_accumulation_steps", Unknown),
        ('enable=false\ncomponents = ["model", ', "enable=true\ncomponents = [", "torch_compile", Unknown),
        ('mode = "selective"', 'mode = "memory_budget"', "gradient_checkpointing", Unknown),
        ('name = "AdamW"', 'name = "Adam"', "optimizer", "Adam"),
        ("local_batch_size", "batch_size", "per_device_train_batch_size", 1),
        ('name = "llama3"', 'name = "simple_fsdp.llama3"', "fsdp", Unknown),
        ("shard_degree = -1", "shard_degree = 1\nexpert_parallel_degree = 2", "fsdp", Unknown),
        ('description = "Llama 3 8B training"', 'custom_config_module = "mine"', "load_dtype", Unknown),
    ],
)
def test_one_setting_that_is_other(tmp_path: Path, old: str, new: str, name: str, value: object) -> None:
    assert LLAMA3_8B.count(old) == 1
    found = fact(read(tmp_path, LLAMA3_8B.replace(old, new)), name)
    assert isinstance(found, Unknown) if value is Unknown else found == value


def test_a_word_that_is_no_choice_is_named_in_the_reason(tmp_path: Path) -> None:
    said = read(tmp_path, LLAMA3_8B.replace('mode = "selective"', 'mode = "memory_budget"'))
    why = said.facts.reasons["training.gradient_checkpointing"]
    assert "activation_checkpoint.mode is 'memory_budget', not none, selective or full" in why


def test_a_similar_file_is_not_claimed(tmp_path: Path) -> None:
    path = tmp_path / "other.toml"
    path.write_text("[job]\nname = 'a'\n[model]\nname = 'b'\n[training]\nbatch_size = 4\n")
    assert not torchtitan.recognises(open_document(str(path)))


LAUNCH = "torchrun --nproc_per_node=8 --role rank -m torchtitan.train --job.config_file {} {}\n"
FLAGS = "--training.local_batch_size 2 --compile.enable --parallelism.tensor_parallel_degree=2 --optimizer.name AdamW"


def launched(tmp_path: Path, file: str, flags: str = FLAGS) -> Environment:
    (tmp_path / "run.toml").write_text(LLAMA3_8B)
    script = tmp_path / "launch.sh"
    script.write_text(LAUNCH.format(file, flags))
    return join_run(Run({"script": File("launch_script", str(script))})).facts


def test_flags_of_a_launch_stand_over_the_file_they_name(tmp_path: Path) -> None:
    facts = launched(tmp_path, "run.toml")
    expected = {
        "per_device_train_batch_size": (2, "launch.sh"),
        "torch_compile": (True, "launch.sh"),
        "several_ranks": (True, "launch.sh"),
        "world_size": (8, "launch.sh"),
        "max_length": (8192, "run.toml"),
        "optimizer": ("adamw_torch_fused", "launch.sh"),
        "gradient_checkpointing": (True, "run.toml"),
    }
    for name, (value, file) in expected.items():
        assert facts.get(f"training.{name}") == value, name
        assert Path(facts.locations[f"training.{name}"].file).name == file, name
    assert facts.get("training.load_dtype") == "float32"


def test_a_negated_flag_switches_off(tmp_path: Path) -> None:
    facts = launched(tmp_path, "run.toml", "--compile.no_enable --debug.no-deterministic")
    assert facts.get("training.torch_compile") is False
    assert facts.get("training.deterministic") is False


@pytest.mark.parametrize("file", ["other.toml", "$CONFIG", '"$CONFIG" "$@"'])
def test_flags_alone_state_no_default(tmp_path: Path, file: str) -> None:
    facts = launched(tmp_path, file)
    stated = {path: value for path, value in facts.flat().items() if path.startswith("training.")}
    assert stated == {
        "training.launcher": "torchrun",
        "training.per_device_train_batch_size": 2,
        "training.torch_compile": True,
        "training.several_ranks": True,
        "training.world_size": 8,
    }
    assert "which line 1 names, was not found" in str(facts.get("training.optimizer"))
