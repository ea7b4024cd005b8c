from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from compatcheck.environment import Environment, Unknown
from compatcheck.environment.snapshot import load_snapshot
from compatcheck.errors import InputError
from compatcheck.project.reading import read_paths
from compatcheck.project.sources import Source

SFT = """\
model_name_or_path: models/tiny
bf16: true
per_device_train_batch_size: 4
gradient_accumulation_steps: 2
output_dir: out
learning_rate: 1e-4
deepspeed: {deepspeed}
"""
ZERO_2 = {
    "bf16": {"enabled": "auto"},
    "gradient_accumulation_steps": "auto",
    "train_micro_batch_size_per_gpu": "auto",
    "zero_optimization": {"stage": 2, "overlap_comm": True},
}


def lay(path: Path, content: Any) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content, indent=1))
    return str(path)


def fact(environment: Environment, path: str) -> Any:
    return environment.get(f"training.{path}")


@pytest.mark.parametrize("named", ["ds/zero2.json", "../ds/zero2.json", "zero2.json"])
def test_the_configuration_decides_which_deepspeed_json_is_in_use(tmp_path: Path, named: str) -> None:
    lay(tmp_path / ".git" / "HEAD", "")
    config = lay(tmp_path / "configs" / "sft.yaml", SFT.format(deepspeed=named))
    folder = "configs" if named == "zero2.json" else "ds"
    used = lay(tmp_path / folder / "zero2.json", ZERO_2)
    lay(tmp_path / "other" / "zero3.json", {"zero_optimization": {"stage": 3}})
    for paths in ([str(tmp_path)], [config]):
        reading = read_paths(paths)
        found = reading.environment
        assert fact(found, "deepspeed.zero_stage") == 2
        assert fact(found, "gradient_accumulation_steps") == 2
        assert found.locations["training.gradient_accumulation_steps"].file == config
        assert found.locations["training.deepspeed.overlap_comm"].line == 9
        kinds = {source.kind: source.path for source in reading.sources}
        assert Path(kinds["deepspeed"]).resolve() == Path(used).resolve()


def test_a_path_that_may_mean_two_files_decides_nothing(tmp_path: Path) -> None:
    config = lay(tmp_path / "configs" / "sft.yaml", SFT.format(deepspeed="zero.json"))
    lay(tmp_path / "configs" / "zero.json", {"zero_optimization": {"stage": 2}})
    lay(tmp_path / "zero.json", {"zero_optimization": {"stage": 3}})
    found = read_paths([str(tmp_path)]).environment
    unknown = fact(found, "deepspeed.zero_stage")
    assert isinstance(unknown, Unknown)
    assert "zero.json may be" in (unknown.reason or "")
    chosen = read_paths([config, str(tmp_path / "zero.json")]).environment
    assert fact(chosen, "deepspeed.zero_stage") == 3


def test_a_deepspeed_json_that_is_not_there_is_unknown(tmp_path: Path) -> None:
    lay(tmp_path / "sft.yaml", SFT.format(deepspeed="gone.json"))
    lay(tmp_path / "zero3.json", {"zero_optimization": {"stage": 3}})
    unknown = fact(read_paths([str(tmp_path)]).environment, "deepspeed.zero_stage")
    assert isinstance(unknown, Unknown)
    assert "gone.json" in (unknown.reason or "")


def test_a_contradiction_leaves_the_fact_unknown_on_both_sides(tmp_path: Path) -> None:
    lay(tmp_path / "sft.yaml", SFT.format(deepspeed="ds.json"))
    lay(tmp_path / "ds.json", {**ZERO_2, "gradient_accumulation_steps": 8})
    found = read_paths([str(tmp_path)]).environment
    unknown = fact(found, "gradient_accumulation_steps")
    assert isinstance(unknown, Unknown)
    assert "is 8" in (unknown.reason or "") and "is 2" in (unknown.reason or "")
    assert "training.gradient_accumulation_steps" not in found.locations
    assert fact(found, "per_device_train_batch_size") == 4


def test_several_trainings_in_a_folder_decide_what_they_agree_on(tmp_path: Path) -> None:
    one = lay(tmp_path / "a.yaml", SFT.format(deepspeed="ds.json"))
    two = lay(tmp_path / "b.yaml", SFT.format(deepspeed="ds.json").replace("e-4", "e-5"))
    lay(tmp_path / "ds.json", ZERO_2)
    found = read_paths([str(tmp_path)]).environment
    assert fact(found, "deepspeed.zero_stage") == 2
    unknown = fact(found, "learning_rate")
    assert isinstance(unknown, Unknown)
    assert one in (unknown.reason or "") and two in (unknown.reason or "")
    assert fact(read_paths([str(tmp_path), two]).environment, "learning_rate") == 1e-5
    with pytest.raises(InputError, match="several training configurations; check one at a time"):
        read_paths([one, two])


def test_very_many_trainings_are_only_named(tmp_path: Path) -> None:
    for number in range(20):
        lay(tmp_path / f"{number}.yaml", SFT.format(deepspeed="null"))
    found = read_paths([str(tmp_path)]).environment
    assert "there are 20 trainings" in found.reasons["training"]


def test_a_script_and_the_configuration_that_it_names_are_one_training(tmp_path: Path) -> None:
    config = lay(tmp_path / "configs" / "sft.yaml", SFT.format(deepspeed="ds.json"))
    script = lay(tmp_path / "run.sh", "torchrun --nproc_per_node 2 t.py configs/sft.yaml --learning_rate 3e-4\n")
    lay(tmp_path / "ds.json", ZERO_2)
    reading = read_paths([str(tmp_path)])
    found = reading.environment
    assert fact(found, "world_size") == 2
    assert fact(found, "learning_rate") == 3e-4
    assert fact(found, "deepspeed.zero_stage") == 2
    assert found.locations["training.learning_rate"] == (script, 1)
    assert found.locations["training.per_device_train_batch_size"].line == 3
    assert {source.kind for source in reading.sources} == {"launch_script", "training_arguments", "deepspeed"}
    assert read_paths([script]).environment.facts == found.facts
    assert config


def test_the_only_accelerate_config_near_by_brings_its_deepspeed(tmp_path: Path) -> None:
    lay(tmp_path / "sft.yaml", SFT.replace("deepspeed: {deepspeed}\n", "").replace("bf16: true", "fp16: false"))
    lay(
        tmp_path / "zero3.yaml",
        "compute_environment: LOCAL_MACHINE\ndistributed_type: DEEPSPEED\nmixed_precision: bf16\nnum_processes: 8\n"
        "deepspeed_config: {zero_stage: 3}\n",
    )
    found = read_paths([str(tmp_path)]).environment
    assert fact(found, "deepspeed.zero_stage") == 3
    assert fact(found, "dtype") == "bfloat16"
    assert fact(found, "world_size") == 8
    assert fact(found, "gradient_accumulation_steps") == 2
    off = SFT.replace("deepspeed: {deepspeed}\n", "").replace("bf16: true", "fp16: false\nbf16: false")
    lay(tmp_path / "sft.yaml", off)
    assert fact(read_paths([str(tmp_path)]).environment, "dtype") == "bfloat16"


def test_the_training_decides_which_model_is_meant(tmp_path: Path) -> None:
    lay(tmp_path / "sft.yaml", SFT.format(deepspeed="null"))
    for name in ("tiny", "large"):
        lay(tmp_path / "models" / name / "config.json", {"model_type": name})
    reading = read_paths([str(tmp_path)])
    assert reading.environment.get("model.type") == "tiny"
    lay(tmp_path / "sft.yaml", SFT.format(deepspeed="null").replace("models/tiny", "acme/huge"))
    other = read_paths([str(tmp_path)]).environment
    assert other.get("model.name") == "acme/huge"
    lay(tmp_path / "weights" / "Huge" / "config.json", {"model_type": "huge"})
    assert read_paths([str(tmp_path)]).environment.get("model.type") == "huge"
    unknown = other.get("model.type")
    assert isinstance(unknown, Unknown)
    assert "acme/huge" in (unknown.reason or "")


def test_what_was_read_round_trips_through_a_snapshot(tmp_path: Path) -> None:
    lay(tmp_path / "run.sh", "export NCCL_DEBUG=INFO\ndeepspeed --num_gpus 4 t.py sft.yaml --optim adamw_torch\n")
    lay(tmp_path / "sft.yaml", SFT.format(deepspeed="ds.json"))
    lay(tmp_path / "ds.json", ZERO_2)
    lay(tmp_path / "models" / "tiny" / "config.json", {"model_type": "tiny"})
    read = read_paths([str(tmp_path)]).environment
    again = load_snapshot(json.dumps(read.dump()), "snapshot")
    assert again.facts == read.facts
    assert again.reasons == read.reasons
    assert again.locations == read.locations


def test_a_preset_of_ms_swift_tells_what_every_release_shares(tmp_path: Path) -> None:
    script = lay(
        tmp_path / "run.sh",
        "NPROC_PER_NODE=2 swift sft --model Qwen/x --train_type lora --torch_dtype bfloat16 --dataset d.jsonl \\\n"
        "  --per_device_train_batch_size 1 --deepspeed zero2\n",
    )
    found = read_paths([script]).environment
    assert fact(found, "deepspeed.zero_stage") == 2
    assert fact(found, "deepspeed.reduce_bucket_size") == 200_000_000
    for changed in ("overlap_comm", "optimizer", "scheduler"):
        assert isinstance(fact(found, f"deepspeed.{changed}"), Unknown)
    assert fact(found, "world_size") == 2
    assert fact(found, "framework") == "ms-swift"


def test_reading_is_the_same_whatever_order_the_paths_have(tmp_path: Path) -> None:
    config = lay(tmp_path / "sft.yaml", SFT.format(deepspeed="ds.json"))
    deepspeed = lay(tmp_path / "ds.json", ZERO_2)
    one, two = read_paths([config, deepspeed]), read_paths([deepspeed, config])
    assert one == two
    assert Source("deepspeed", deepspeed) in one.sources


def test_a_value_that_cannot_be_read_leaves_its_fact_unknown_and_no_other(tmp_path: Path) -> None:
    wrong = "model_name_or_path: m\nstage: sft\nfinetuning_type: lora\ndo_train: true\nlearning_rate: fast\n"
    path = lay(tmp_path / "sft.yaml", wrong)
    for paths in ([str(tmp_path)], [path]):
        found = read_paths(paths).environment
        assert found.reasons["training.learning_rate"] == "learning_rate is 'fast', not a number (sft.yaml:5)"
        assert found.get("training.method") == "lora"


XTUNER = """\
from xtuner.model import SupervisedFinetune
from xtuner.dataset import process_hf_dataset

batch_size = 2
accumulative_counts = 4
model = dict(type=SupervisedFinetune, llm=dict(pretrained_model_name_or_path='acme/m'))
train_dataloader = dict(batch_size=batch_size)
optim_wrapper = dict(type='AmpOptimWrapper', dtype='float16', accumulative_counts=accumulative_counts)
"""


def test_what_xtuner_is_told_on_its_command_line_counts(tmp_path: Path) -> None:
    lay(tmp_path / "full.py", XTUNER)
    script = lay(
        tmp_path / "run.sh",
        "xtuner train full.py --deepspeed deepspeed_zero3 \\\n  --cfg-options train_dataloader.batch_size=8\n",
    )
    found = read_paths([script]).environment
    assert fact(found, "gradient_accumulation_steps") == 4
    assert fact(found, "deepspeed.zero_stage") == 3
    assert found.locations["training.deepspeed"] == (script, 1)
    for path in ("per_device_train_batch_size", "dtype"):
        unknown = fact(found, path)
        assert isinstance(unknown, Unknown) and unknown.reason
    alone = read_paths([lay(tmp_path / "alone.sh", "xtuner train full.py\n")]).environment
    assert fact(alone, "dtype") == "float16"
    assert fact(alone, "deepspeed") is None


@pytest.mark.parametrize(("model", "named"), [("acme/huge", "acme/huge"), ("~/weights/huge", None), ("./huge", None)])
def test_a_folder_that_is_not_here_names_no_model(tmp_path: Path, model: str, named: str | None) -> None:
    config = lay(tmp_path / "sft.yaml", SFT.format(deepspeed="null").replace("models/tiny", model))
    found = read_paths([config]).environment.get("model.name")
    assert found == named if named else isinstance(found, Unknown)


def test_a_model_folder_is_shown_without_a_dot(tmp_path: Path) -> None:
    lay(tmp_path / "tiny" / "config.json", '{"model_type": "llama"}')
    config = lay(tmp_path / "sft.yaml", SFT.format(deepspeed="null").replace("models/tiny", "./tiny"))
    found = read_paths([config]).environment
    assert found.locations["model"].file == str(tmp_path / "tiny")


def test_a_folder_is_no_deepspeed_json(tmp_path: Path) -> None:
    config = lay(tmp_path / "sft.yaml", SFT.format(deepspeed="."))
    assert "was not found" in str(fact(read_paths([config]).environment, "deepspeed"))


def test_a_reason_names_a_few_files_whole_and_counts_the_rest(tmp_path: Path) -> None:
    for number in range(20):
        lay(tmp_path / f"{number:02}.yaml", SFT.format(deepspeed="null"))
    why = read_paths([str(tmp_path)]).environment.reasons["training"]
    assert why.endswith("03.yaml and 16 more")
