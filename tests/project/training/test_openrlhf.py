from __future__ import annotations

from pathlib import Path
from typing import Any

from compatcheck.environment import Environment, Unknown
from compatcheck.project.reading import read_paths

PPO = """\
ray job submit --address="http://127.0.0.1:8265" \\
   --runtime-env-json='{"working_dir": "/openrlhf"}' \\
   -- python3 -m openrlhf.cli.train_ppo_ray \\
   --actor_num_nodes 2 \\
   --actor_num_gpus_per_node 8 \\
   --vllm_num_engines 4 \\
   --pretrain acme/eight-b \\
   --micro_train_batch_size 8 \\
   --zero_stage 3 \\
   --bf16 --adam_offload --packing_samples --flash_attn
"""
NEWER = """\
deepspeed --num_gpus 4 --module openrlhf.cli.train_sft \\
   --model.model_name_or_path acme/eight-b --train.micro_batch_size 2 --ds.zero_stage 2 --ds.param_dtype bf16 \\
   --ds.attn_implementation eager --ds.lora.rank 16 --ds.lora.alpha 32 --ds.load_in_4bit
"""


def read(tmp_path: Path, text: str) -> Environment:
    path = tmp_path / "run.sh"
    path.write_text(text)
    return read_paths([str(path)]).environment


def training(environment: Environment, **expected: Any) -> None:
    for path, value in expected.items():
        assert environment.get(f"training.{path.replace('__', '.')}") == value, path


def test_a_job_of_ray(tmp_path: Path) -> None:
    found = read(tmp_path, PPO)
    training(
        found,
        framework="openrlhf",
        world_size=16,
        use_vllm=True,
        per_device_train_batch_size=8,
        deepspeed__zero_stage=3,
        deepspeed__offload_optimizer_device="cpu",
        dtype="bfloat16",
        packing=True,
        attention="flash_attention_2",
        method="full",
        lora=None,
    )
    assert found.get("model.name") == "acme/eight-b"
    assert found.locations["training.deepspeed.zero_stage"].line == 9


def test_names_with_their_sections(tmp_path: Path) -> None:
    found = read(tmp_path, NEWER)
    training(
        found,
        objective="sft",
        world_size=4,
        per_device_train_batch_size=2,
        deepspeed__zero_stage=2,
        dtype="bfloat16",
        attention="eager",
        method="qlora",
        lora__r=16,
        lora__lora_alpha=32,
        quantization__bits=4,
    )
    assert found.get("model.name") == "acme/eight-b"
    assert found.locations["training.deepspeed.zero_stage"].line == 2


def test_the_sections_of_other_models_are_not_the_actors(tmp_path: Path) -> None:
    command = (
        "python -m openrlhf.cli.train_ppo_ray --reward.model_name_or_path acme/judge --actor.model_name_or_path acme/b "
        "--train.micro_batch_size 2 --rollout.micro_batch_size 8 --actor.num_nodes 1 --actor.num_gpus_per_node 4 "
        "--critic.num_gpus_per_node 2 --vllm.num_engines 0\n"
    )
    found = read(tmp_path, command)
    training(found, per_device_train_batch_size=2, world_size=4, use_vllm=False)
    assert found.get("model.name") == "acme/b"


def test_how_many_processes_ray_starts_is_not_guessed(tmp_path: Path) -> None:
    found = read(tmp_path, "python -m openrlhf.cli.train_ppo_ray --pretrain acme/eight-b\n")
    assert isinstance(found.get("training.world_size"), Unknown)


def test_a_reward_model(tmp_path: Path) -> None:
    training(read(tmp_path, "deepspeed --module openrlhf.cli.train_rm --pretrain acme/eight-b\n"), objective="reward")
