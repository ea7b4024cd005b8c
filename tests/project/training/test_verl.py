from __future__ import annotations

from pathlib import Path
from typing import Any

from compatcheck.environment import Environment, Unknown
from compatcheck.project.reading import read_paths

GRPO = """\
MODEL=${MODEL:-acme/seven-b}
python3 -m verl.trainer.main_ppo \\
    algorithm.adv_estimator=grpo \\
    data.train_files=$HOME/train.parquet \\
    actor_rollout_ref.model.path=$MODEL \\
    actor_rollout_ref.model.use_remove_padding=True \\
    +actor_rollout_ref.model.enable_gradient_checkpointing=False \\
    actor_rollout_ref.actor.strategy=fsdp2 \\
    actor_rollout_ref.actor.optim.lr=1e-6 \\
    actor_rollout_ref.rollout.name=vllm \\
    trainer.logger=['console','wandb'] \\
    trainer.n_gpus_per_node=8 \\
    trainer.nnodes=2 $@
"""
WHOLE = """\
data:
  train_batch_size: 256
actor_rollout_ref:
  model:
    path: acme/seven-b
    lora_rank: 32
    lora_alpha: 16
  actor:
    strategy: fsdp
  rollout:
    name: sglang
algorithm:
  adv_estimator: reinforce_plus_plus
trainer:
  nnodes: ${oc.env:NODES}
  n_gpus_per_node: 8
"""


def read(tmp_path: Path, text: str, name: str = "run.sh") -> Environment:
    path = tmp_path / name
    path.write_text(text)
    return read_paths([str(path)]).environment


def training(environment: Environment, **expected: Any) -> None:
    for path, value in expected.items():
        assert environment.get(f"training.{path.replace('__', '.')}") == value, path


def test_the_overrides_of_a_command(tmp_path: Path) -> None:
    found = read(tmp_path, GRPO)
    training(
        found,
        framework="verl",
        objective="grpo",
        use_vllm=True,
        padding_free=True,
        gradient_checkpointing=False,
        fsdp__version=2,
        learning_rate=1e-6,
        world_size=16,
        method="full",
        lora=None,
        deepspeed=None,
    )
    assert found.get("model.name") == "acme/seven-b"
    assert found.locations["training.objective"].line == 3
    assert found.locations["training.gradient_checkpointing"].line == 7


def test_a_whole_configuration(tmp_path: Path) -> None:
    found = read(tmp_path, WHOLE, "config.yaml")
    training(found, framework="verl", method="lora", lora__r=32, lora__lora_alpha=16, use_vllm=False, fsdp__version=1)
    for path in ("objective", "world_size"):
        assert isinstance(found.get(f"training.{path}"), Unknown), path


def test_sampling_of_the_rollout(tmp_path: Path) -> None:
    found = read(
        tmp_path, WHOLE.replace("name: sglang", "name: sglang\n    temperature: 0.8\n    top_p: 0.95"), "run.yaml"
    )
    training(found, sampling__temperature=0.8, sampling__top_p=0.95)


def test_without_an_estimator_it_is_ppo_unless_another_configuration_is_named(tmp_path: Path) -> None:
    training(read(tmp_path, "python -m verl.trainer.main_ppo data.train_batch_size=8\n"), objective="ppo")
    named = "python -m verl.trainer.main_ppo --config-path=/own --config-name=mine data.train_batch_size=8\n"
    for path in ("objective", "method", "world_size"):
        assert isinstance(read(tmp_path, named).get(f"training.{path}"), Unknown), path


def test_megatron_is_no_fsdp(tmp_path: Path) -> None:
    command = "python3 -m verl.trainer.main_ppo --config-name='ppo_megatron_trainer' algorithm.adv_estimator=rloo\n"
    training(read(tmp_path, command), fsdp=None, objective="rloo")


def test_supervised_fine_tuning(tmp_path: Path) -> None:
    command = (
        "torchrun --standalone --nproc_per_node=4 -m verl.trainer.fsdp_sft_trainer data.micro_batch_size_per_gpu=2 "
        "model.partial_pretrain=acme/half-b model.strategy=fsdp model.lora_rank=16 use_remove_padding=true\n"
    )
    training(
        read(tmp_path, command),
        framework="verl",
        objective="sft",
        world_size=4,
        per_device_train_batch_size=2,
        fsdp__version=1,
        method="lora",
        padding_free=True,
    )


def test_micro_batches_of_supervised_fine_tuning(tmp_path: Path) -> None:
    command = (
        "torchrun --standalone --nproc_per_node=4 -m verl.trainer.fsdp_sft_trainer data.micro_batch_size_per_gpu=2 "
        "data.train_batch_size=64 model.partial_pretrain=acme/half-b{}\n"
    )
    training(read(tmp_path, command.format("")), gradient_accumulation_steps=8)
    training(read(tmp_path, command.format(" ulysses_sequence_parallel_size=2")), gradient_accumulation_steps=16)
    unlaunched = command.replace("torchrun --standalone --nproc_per_node=4", "torchrun --nproc_per_node=$N")
    found = read(tmp_path, unlaunched.format(""))
    assert isinstance(found.get("training.gradient_accumulation_steps"), Unknown)
