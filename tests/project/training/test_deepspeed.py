from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from compatcheck.environment import Environment, Location, Unknown
from compatcheck.errors import InputError
from compatcheck.project.training.document import Document, open_document
from compatcheck.project.training.formats import deepspeed

GLM_4 = """{
  "train_micro_batch_size_per_gpu": "auto",
  "zero_allow_untested_optimizer": true,
  "bf16": {"enabled": "auto"},
  "zero_optimization": {
    "stage": 2,
    "allgather_partitions": true,
    "overlap_comm": true,
    "reduce_bucket_size": 5e8,
    "contiguous_gradients": true
  }
}
"""


def read(tmp_path: Path, document: Any, trainer: Environment = Environment({})) -> Environment:  # noqa: B008
    path = tmp_path / "ds.json"
    path.write_text(document if isinstance(document, str) else json.dumps(document, indent=1))
    return deepspeed.read(open_document(str(path)), trainer).facts


def fact(facts: Environment, path: str) -> Any:
    return Environment(facts.facts, facts.reasons).get(path)


def test_what_the_file_gives_is_known_with_its_line(tmp_path: Path) -> None:
    facts = read(tmp_path, GLM_4)
    expected = {
        "zero_stage": (2, 6),
        "overlap_comm": (True, 8),
        "reduce_bucket_size": (500_000_000, 9),
        "contiguous_gradients": (True, 10),
    }
    for key, (value, line) in expected.items():
        path = f"training.deepspeed.{key}"
        assert fact(facts, path) == value
        assert facts.locations[path] == Location(str(tmp_path / "ds.json"), line)
    assert type(fact(facts, "training.deepspeed.reduce_bucket_size")) is int


def test_auto_is_unknown_and_says_who_decides(tmp_path: Path) -> None:
    facts = read(tmp_path, GLM_4)
    for path in ("training.deepspeed.bf16.enabled", "training.per_device_train_batch_size", "training.dtype"):
        assert fact(facts, path) == Unknown(f"auto in {tmp_path / 'ds.json'}: the trainer decides")


@pytest.mark.parametrize(("stage", "overlaps"), [(0, False), (1, False), (2, False), (3, True)])
def test_overlap_comm_is_on_by_itself_for_stage_3_alone(tmp_path: Path, stage: int, overlaps: bool) -> None:
    facts = read(tmp_path, {"zero_optimization": {"stage": stage}})
    assert fact(facts, "training.deepspeed.overlap_comm") is overlaps
    assert "training.deepspeed.overlap_comm" not in facts.locations


def test_defaults_that_every_release_shares(tmp_path: Path) -> None:
    given = fact(read(tmp_path, {"steps_per_print": 1}), "training.deepspeed")
    assert given == {
        "zero_stage": 0,
        "overlap_comm": False,
        "contiguous_gradients": True,
        "reduce_scatter": True,
        "reduce_bucket_size": 500_000_000,
        "allgather_bucket_size": 500_000_000,
        "use_multi_rank_bucket_allreduce": True,
        "allgather_partitions": True,
        "round_robin_gradients": False,
        "sub_group_size": 1_000_000_000,
        "offload": None,
        "compile": False,
        "optimizer": None,
        "scheduler": None,
    }


def test_defaults_that_changed_are_unknown(tmp_path: Path) -> None:
    facts = read(tmp_path, {"zero_optimization": {"stage": 2}})
    for key in ("gradient_clipping", "bf16.check_grad_overflow"):
        unknown = fact(facts, f"training.deepspeed.{key}")
        assert isinstance(unknown, Unknown)
        assert "changed in 0.19.3" in (unknown.reason or "")
    assert fact(read(tmp_path, {"gradient_clipping": 1.0}), "training.deepspeed.gradient_clipping") == 1.0


@pytest.mark.parametrize(
    ("document", "dtype"),
    [
        ({"bf16": {"enabled": True}}, "bfloat16"),
        ({"bfloat16": {"enabled": True}}, "bfloat16"),
        ({"fp16": {"enabled": True}}, "float16"),
        ({"fp16": {"enabled": False}, "bf16": {"enabled": True}}, "bfloat16"),
        ({"fp16": {"enabled": False}, "bf16": {"enabled": False}}, "float32"),
        ({"fp16": {"enabled": False}}, Unknown),
        ({"fp16": {"enabled": False}, "bf16": {"enabled": "auto"}}, Unknown),
        ({}, Unknown),
    ],
)
def test_the_dtype_where_the_file_decides_it(tmp_path: Path, document: Any, dtype: Any) -> None:
    found = fact(read(tmp_path, document), "training.dtype")
    if dtype is Unknown:
        assert isinstance(found, Unknown)
        assert found.reason
    else:
        assert found == dtype


@pytest.mark.parametrize(
    ("zero", "offload"),
    [
        ({"offload_optimizer": {"device": "cpu"}}, "optimizer"),
        ({"offload_param": {"device": "nvme"}}, "param"),
        ({"offload_optimizer": {"device": "cpu"}, "offload_param": {"device": "cpu"}}, "optimizer+param"),
        ({"offload_optimizer": {"device": "none"}}, None),
        ({"cpu_offload": True}, "optimizer"),
        ({"offload_param": None}, None),
    ],
)
def test_offload(tmp_path: Path, zero: dict[str, Any], offload: str | None) -> None:
    facts = read(tmp_path, {"zero_optimization": {"stage": 3, **zero}})
    assert fact(facts, "training.deepspeed.offload") == offload


def test_what_deepspeed_makes_itself(tmp_path: Path) -> None:
    given: dict[str, Any] = {"optimizer": {"type": "AdamW", "params": {"lr": "auto"}}, "scheduler": {"params": {}}}
    facts = read(tmp_path, json.dumps(given))
    assert fact(facts, "training.deepspeed.optimizer") == "adamw"
    assert facts.locations["training.deepspeed.optimizer"] == Location(str(tmp_path / "ds.json"), 1)
    assert fact(facts, "training.deepspeed.scheduler") is None
    given["optimizer"]["params"]["torch_adam"] = True
    assert fact(read(tmp_path, given), "training.deepspeed.optimizer") == "torch_adam"


def test_numbers_of_the_training(tmp_path: Path) -> None:
    facts = read(tmp_path, {"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 4})
    assert fact(facts, "training.per_device_train_batch_size") == 2
    assert fact(facts, "training.gradient_accumulation_steps") == 4
    assert isinstance(fact(read(tmp_path, {}), "training.gradient_accumulation_steps"), Unknown)


@pytest.mark.parametrize(
    ("document", "seen"),
    [
        ('{\n "fp16": {"enabled": true},\n}', r"line \d, column \d+: a comma before the closing bracket"),
        ('{\n "a": [1, 2,]\n}', r"line 2, column \d+: a comma before the closing bracket"),
        ('{"a" 1}', r"line 1, column 6: expecting ':' delimiter"),
        ('{"bf16": {}, "bf16": {}}', "the key 'bf16' is given twice"),
        ("[]", "the file contains a list"),
        ("[" * 100_000, "nested too deeply"),
        ('{"a": ' * 100_000, "nested too deeply"),
    ],
)
def test_a_file_that_is_refused(tmp_path: Path, document: Any, seen: str) -> None:
    with pytest.raises(InputError, match=seen) as caught:
        read(tmp_path, document)
    assert "\n" not in str(caught.value)
    assert str(tmp_path / "ds.json") in str(caught.value)


def test_what_is_recognised() -> None:
    def recognised(value: Any) -> bool:
        return deepspeed.recognises(Document("ds.json", "", value))

    assert recognised(json.loads(GLM_4))
    assert not recognised({"model_type": "llama"})
    assert not recognised(["zero_optimization"])


AUTO = {
    "bf16": {"enabled": "auto"},
    "fp16": {"enabled": "auto"},
    "gradient_clipping": "auto",
    "gradient_accumulation_steps": "auto",
    "train_micro_batch_size_per_gpu": "auto",
    "zero_optimization": {"stage": 2},
}


def trainer(**said: Any) -> Environment:
    return Environment({"training": {"framework": "transformers", **said}})


def test_auto_takes_the_value_of_the_trainer(tmp_path: Path) -> None:
    said = trainer(
        mixed_precision="bf16", max_grad_norm=0.5, gradient_accumulation_steps=4, per_device_train_batch_size=2
    )
    facts = read(tmp_path, AUTO, said)
    for path, value in (
        ("training.dtype", "bfloat16"),
        ("training.deepspeed.bf16.enabled", True),
        ("training.deepspeed.fp16.enabled", False),
        ("training.deepspeed.gradient_clipping", 0.5),
        ("training.gradient_accumulation_steps", 4),
        ("training.per_device_train_batch_size", 2),
    ):
        assert fact(facts, path) == value
        assert path not in facts.reasons
    assert facts.locations["training.dtype"] == Location(str(tmp_path / "ds.json"), 3)


@pytest.mark.parametrize(("precision", "dtype"), [("bf16", "bfloat16"), ("fp16", "float16"), ("no", "float32")])
def test_a_precision_that_the_file_does_not_speak_of_is_the_trainers(
    tmp_path: Path, precision: str, dtype: str
) -> None:
    facts = read(tmp_path, {"zero_optimization": {"stage": 2}}, trainer(mixed_precision=precision))
    assert fact(facts, "training.dtype") == dtype


def test_values_that_contradict_the_trainers_are_unknown_and_both_are_named(tmp_path: Path) -> None:
    document = {"bf16": {"enabled": False}, "gradient_accumulation_steps": 8, "zero_optimization": {"stage": 2}}
    facts = read(tmp_path, document, trainer(mixed_precision="bf16", gradient_accumulation_steps=4))
    for path, words in (
        ("training.gradient_accumulation_steps", ("is 8", "is 4", "ds.json:5")),
        ("training.deepspeed.bf16.enabled", ("is false", "is true")),
    ):
        unknown = fact(facts, path)
        assert isinstance(unknown, Unknown)
        assert all(word in (unknown.reason or "") for word in words)
    assert isinstance(fact(facts, "training.dtype"), Unknown)


def test_xtuner_rules_over_the_numbers_and_takes_bfloat16_where_it_can(tmp_path: Path) -> None:
    said = Environment({"training": {"framework": "xtuner", "gradient_accumulation_steps": 16, "dtype": "float16"}})
    facts = read(tmp_path, {**AUTO, "gradient_accumulation_steps": 4}, said)
    assert fact(facts, "training.gradient_accumulation_steps") == 16
    assert fact(facts, "training.dtype_rule") == "bfloat16-if-supported"
    assert isinstance(fact(facts, "training.dtype"), Unknown)
    only_fp16 = read(tmp_path, {"fp16": {"enabled": "auto"}, "zero_optimization": {"stage": 2}}, said)
    assert fact(only_fp16, "training.dtype") == "float16"


@pytest.mark.parametrize(
    "name", ["stage3_gather_16bit_weights_on_model_save", "stage3_gather_fp16_weights_on_model_save"]
)
def test_a_key_of_an_older_release_is_the_same_fact(tmp_path: Path, name: str) -> None:
    facts = read(tmp_path, {"zero_optimization": {"stage": 3, name: True, "sub_group_size": 1e9}})
    assert fact(facts, "training.deepspeed.stage3_gather_16bit_weights_on_model_save") is True
    assert fact(facts, "training.deepspeed.sub_group_size") == 10**9


def test_modules_that_are_marked_as_leaves_are_known_and_their_absence_is_left_to_the_script(tmp_path: Path) -> None:
    leaves = "training.deepspeed.leaf_modules"
    marked = {"zero_optimization": {"stage": 3, "leaf_module": {"classes": ["MixtralSparseMoeBlock"]}}}
    assert fact(read(tmp_path, marked), leaves) is True
    assert fact(read(tmp_path, {"zero_optimization": {"stage": 3}}), leaves) == Unknown()
