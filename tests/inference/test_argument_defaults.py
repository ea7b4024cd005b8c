"""What a call seen whole leaves out is worth: by class and release, and only while nothing is said of it."""

from __future__ import annotations

from typing import Any

import pytest
from packaging.version import Version

from compatcheck import matrix
from compatcheck.environment import Environment, Unknown
from compatcheck.environment.assumptions import assume
from compatcheck.environment.vocabulary import fact_at

RELEASES = {"torch": "2.5.0", "transformers": "4.46.1", "trl": "0.12.1", "peft": "0.13.0"}


def environment(callee: str, *given: str, training: dict[str, Any] | None = None, **packages: str) -> Environment:
    calls = {"calls": {callee: list(given)}}
    return Environment({"distributions": {**RELEASES, **packages}, "training": {**(training or {}), **calls}})


def fact(known: matrix.Matrix, stated: Environment, name: str) -> Any:
    return matrix.infer(known, stated).view.get(f"training.{name}")


@pytest.mark.parametrize(
    ("callee", "packages", "name", "value"),
    [
        ("transformers.TrainingArguments", {"transformers": "4.30.2"}, "optimizer", "adamw_hf"),
        ("transformers.TrainingArguments", {"transformers": "4.46.1"}, "optimizer", "adamw_torch"),
        (
            "transformers.TrainingArguments",
            {"transformers": "5.24.0", "torch": "2.8.0"},
            "optimizer",
            "adamw_torch_fused",
        ),
        ("transformers.TrainingArguments", {"transformers": "5.24.0", "torch": "2.7.1"}, "optimizer", "adamw_torch"),
        ("transformers.TrainingArguments", {"transformers": "4.30.2"}, "save_safetensors", False),
        ("transformers.TrainingArguments", {"transformers": "4.46.1"}, "save_safetensors", True),
        ("transformers.TrainingArguments", {"transformers": "5.24.0"}, "save_safetensors", None),
        ("transformers.TrainingArguments", {"transformers": "99.0.0"}, "save_safetensors", Unknown()),
        ("transformers.TrainingArguments", {"transformers": "5.1.0"}, "group_by_length", Unknown()),
        ("transformers.TrainingArguments", {"transformers": "5.2.0"}, "group_by_length", None),
        ("transformers.TrainingArguments", {}, "gradient_checkpointing", False),
        ("transformers.TrainingArguments", {"transformers": "5.24.0"}, "gradient_checkpointing", False),
        ("transformers.TrainingArguments", {}, "learning_rate", 5e-5),
        ("transformers.TrainingArguments", {}, "mixed_precision", Unknown()),
        ("transformers.Seq2SeqTrainingArguments", {}, "per_device_train_batch_size", 8),
        ("transformers.Seq2SeqTrainingArguments", {}, "predict_with_generate", False),
        ("trl.SFTConfig", {"trl": "0.12.1"}, "gradient_checkpointing", False),
        ("trl.SFTConfig", {"trl": "0.24.0"}, "gradient_checkpointing", True),
        ("trl.SFTConfig", {"trl": "0.24.0"}, "mixed_precision", "bf16"),
        ("trl.SFTConfig", {"trl": "0.24.0"}, "dtype", "bfloat16"),
        ("trl.SFTConfig", {"trl": "1.16.0"}, "mixed_precision", "bf16"),
        ("trl.SFTConfig", {"trl": "0.12.1"}, "mixed_precision", Unknown()),
        ("trl.SFTConfig", {"trl": "0.12.1"}, "learning_rate", 2e-5),
        ("trl.SFTConfig", {"trl": "0.12.1"}, "save_safetensors", True),
        ("trl.GRPOConfig", {"trl": "0.24.0"}, "learning_rate", 1e-6),
        ("trl.GRPOConfig", {"trl": "0.21.0"}, "loss_type", "bnpo"),
        ("trl.GRPOConfig", {"trl": "0.22.0"}, "loss_type", "dapo"),
        ("trl.SFTConfig", {"trl": "0.19.1"}, "packing_strategy", "ffd"),
        ("trl.SFTConfig", {"trl": "0.19.1", "transformers": "4.57.6"}, "report_to", ["all"]),
        ("transformers.TrainingArguments", {"transformers": "5.0.0"}, "report_to", ["none"]),
        ("trl.KTOConfig", {"trl": "0.9.6"}, "gradient_checkpointing", False),
        ("trl.KTOConfig", {"trl": "0.27.0"}, "mixed_precision", "bf16"),
        ("trl.OnlineDPOConfig", {"trl": "0.27.0"}, "gradient_checkpointing", True),
        ("trl.XPOConfig", {"trl": "1.5.0"}, "gradient_checkpointing", True),
        ("trl.IterativeSFTConfig", {"trl": "1.0.0"}, "gradient_checkpointing", Unknown()),
        ("trl.SFTConfig", {"trl": "0.8.6"}, "save_safetensors", Unknown()),
        ("trl.NoSuchConfig", {}, "learning_rate", Unknown()),
        ("somewhere.TrainingArguments", {}, "learning_rate", Unknown()),
    ],
)
def test_a_missing_argument_is_worth_the_default_of_the_release(
    known: matrix.Matrix, callee: str, packages: dict[str, str], name: str, value: object
) -> None:
    assert fact(known, environment(callee, **packages), name) == value


def test_without_the_release_the_reason_says_on_what_it_depends(known: matrix.Matrix) -> None:
    stated = environment("transformers.TrainingArguments").without("distributions.transformers")
    assert fact(known, stated, "optimizer") == Unknown("not set, and its default depends on the transformers release")


@pytest.mark.parametrize("given", ["optim", "adafactor"])
def test_an_argument_that_is_given_has_no_default(known: matrix.Matrix, given: str) -> None:
    assert fact(known, environment("transformers.TrainingArguments", given), "optimizer") == Unknown()


@pytest.mark.parametrize("given", ["bf16", "fp16"])
def test_a_precision_that_is_given_has_no_default(known: matrix.Matrix, given: str) -> None:
    assert fact(known, environment("trl.SFTConfig", given, trl="0.24.0"), "mixed_precision") == Unknown()


@pytest.mark.parametrize(("launcher", "precision"), [("torchrun", "no"), ("python", "no"), ("accelerate", Unknown())])
def test_only_accelerate_may_bring_a_precision(known: matrix.Matrix, launcher: str, precision: object) -> None:
    training = {"launcher": launcher, "deepspeed": None}
    stated = environment("transformers.TrainingArguments", training=training)
    assert fact(known, stated, "mixed_precision") == precision


def test_a_reason_that_a_reader_gives_stays(known: matrix.Matrix) -> None:
    stated = environment("transformers.TrainingArguments")
    stated = stated._replace(reasons={"training.optimizer": "the Trainer is given one"})
    assert fact(known, stated, "optimizer") == Unknown("the Trainer is given one")


def test_what_is_stated_or_assumed_counts_more(known: matrix.Matrix) -> None:
    stated = assume(environment("trl.SFTConfig", trl="0.24.0"), "training.gradient_checkpointing=false")
    assert fact(known, stated, "gradient_checkpointing") is False


@pytest.mark.parametrize(("lora", "rank"), [({"lora_alpha": 16}, 8), (None, None)])
def test_lora_has_its_defaults_where_it_is_in_use(known: matrix.Matrix, lora: object, rank: int | None) -> None:
    assert fact(known, environment("peft.LoraConfig", "lora_alpha", training={"lora": lora}), "lora.r") == rank


@pytest.mark.parametrize(("bits", "kind"), [(4, "fp4"), (8, Unknown())])
def test_settings_of_four_bits_have_defaults_for_four_bits(known: matrix.Matrix, bits: int, kind: object) -> None:
    training = {"quantization": {"bits": bits, "method": "bitsandbytes"}}
    stated = environment("transformers.BitsAndBytesConfig", f"load_in_{bits}bit", training=training)
    assert fact(known, stated, "quantization.type") == kind


@pytest.mark.parametrize(
    ("name", "stage"),
    [
        ("ds_z3_config.json", 3),
        ("deepspeed_zero2", 2),
        ("configs/ds_config_zero3.json", 3),
        ("zero-1.json", 1),
        ("ds_zero2_offload.json", 2),
        ("stage_3.json", 3),
        ("examples/zero3/ds.json", Unknown()),
        ("ds_config.json", Unknown()),
        ("zero2_or_zero3.json", Unknown()),
        ("z10.json", Unknown()),
    ],
)
def test_the_name_of_a_deepspeed_file_tells_its_stage_alone(known: matrix.Matrix, name: str, stage: object) -> None:
    stated = Environment({"training": {"deepspeed_file": name}}, {"training.deepspeed": "it is not here"})
    view = matrix.infer(known, stated).view
    found = view.get("training.deepspeed.zero_stage")
    assert isinstance(found, Unknown) if isinstance(stage, Unknown) else found == stage
    assert isinstance(view.get("training.deepspeed.contiguous_gradients"), Unknown)


def test_each_row_is_a_run_of_releases_of_a_declared_fact(known: matrix.Matrix) -> None:
    table = known.table("argument-defaults")
    assert all(fact_at(path) for path in table["facts"].values())
    for arguments in (*table["defaults"].values(), table["bases"]):
        for rows in arguments.values():
            assert all(Version(first) <= Version(last) for first, last, *_ in rows)
