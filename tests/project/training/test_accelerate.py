from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from compatcheck.environment import Environment, Unknown
from compatcheck.project.reading import read_paths

ZERO_3 = """\
compute_environment: LOCAL_MACHINE
debug: false
deepspeed_config:
  gradient_accumulation_steps: 2
  gradient_clipping: 0.7
  offload_optimizer_device: cpu
  offload_param_device: none
  zero3_save_16bit_model: true
  zero_stage: 3
distributed_type: DEEPSPEED
downcast_bf16: 'no'
mixed_precision: bf16
num_machines: 2
num_processes: 16
"""
FSDP_2 = """\
compute_environment: LOCAL_MACHINE
distributed_type: FSDP
fsdp_config:
  fsdp_version: 2
  fsdp_cpu_ram_efficient_loading: true
  fsdp_offload_params: false
  fsdp_reshard_after_forward: true
  fsdp_state_dict_type: SHARDED_STATE_DICT
mixed_precision: 'no'
num_processes: 4
dynamo_config:
  dynamo_backend: INDUCTOR
"""


def read(tmp_path: Path, text: str) -> Environment:
    path = tmp_path / "acc.yaml"
    path.write_text(text)
    return read_paths([str(path)]).environment


def line(environment: Environment, path: str) -> Any:
    at = environment.locations.get(path)
    return at.line if at else None


def test_a_deepspeed_section_is_read_as_what_accelerate_makes_of_it(tmp_path: Path) -> None:
    found = read(tmp_path, ZERO_3)
    for path, value, at in (
        ("training.world_size", 16, 14),
        ("training.dtype", "bfloat16", 12),
        ("training.deepspeed.zero_stage", 3, 9),
        ("training.deepspeed.overlap_comm", True, None),
        ("training.deepspeed.offload", "optimizer", 6),
        ("training.deepspeed.gradient_clipping", 0.7, 5),
        ("training.deepspeed.bf16.enabled", True, None),
        ("training.gradient_accumulation_steps", 2, 4),
        ("training.fsdp", None, 10),
    ):
        assert found.get(path) == value, path
        assert line(found, path) == at, path
    assert isinstance(found.get("training.per_device_train_batch_size"), Unknown)


def test_an_fsdp_section_of_the_second_version(tmp_path: Path) -> None:
    found = read(tmp_path, FSDP_2)
    assert found.get("training.fsdp") == {
        "version": 2,
        "cpu_ram_efficient_loading": True,
        "offload": False,
        "reshard_after_forward": True,
        "state_dict_type": "SHARDED_STATE_DICT",
    }
    assert found.get("training.deepspeed") is None
    assert found.get("training.dtype") == "float32"
    assert found.get("training.torch_compile") is True


@pytest.mark.parametrize("value", ["-1", "'many'"])
def test_a_number_of_processes_that_is_given_at_the_start(tmp_path: Path, value: str) -> None:
    text = f"compute_environment: LOCAL_MACHINE\ndistributed_type: MULTI_GPU\nnum_processes: {value}\n"
    assert isinstance(read(tmp_path, text).get("training.world_size"), Unknown)


def test_one_process_is_one_whatever_the_number_says(tmp_path: Path) -> None:
    text = "compute_environment: LOCAL_MACHINE\ndistributed_type: 'NO'\nnum_processes: 4\nmixed_precision: fp8\n"
    found = read(tmp_path, text)
    assert found.get("training.world_size") == 1
    unknown = found.get("training.dtype")
    assert isinstance(unknown, Unknown) and "fp8" in (unknown.reason or "")


def test_a_file_that_it_names_is_read(tmp_path: Path) -> None:
    (tmp_path / "ds.json").write_text('{"zero_optimization": {"stage": 1}}')
    text = (
        "compute_environment: LOCAL_MACHINE\ndistributed_type: DEEPSPEED\nmixed_precision: fp16\n"
        "deepspeed_config:\n  deepspeed_config_file: ds.json\n  zero3_init_flag: false\n"
    )
    found = read(tmp_path, text)
    assert found.get("training.deepspeed.zero_stage") == 1
    assert found.locations["training.deepspeed.zero_stage"].file.endswith("ds.json")
    assert found.get("training.dtype") == "float16"


def test_blocks_of_experts_that_it_names_are_marked_as_leaves(tmp_path: Path) -> None:
    named = read(
        tmp_path, ZERO_3.replace("  zero3_save", "  deepspeed_moe_layer_cls_names: MixtralSparseMoeBlock\n  zero3_save")
    )
    assert named.get("training.deepspeed.leaf_modules") is True
    assert read(tmp_path, ZERO_3).get("training.deepspeed.leaf_modules") == Unknown()
