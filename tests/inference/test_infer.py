"""Facts that follow from others."""

from __future__ import annotations

from typing import Any

import pytest

from compatcheck import matrix
from compatcheck.environment import Environment, Unknown
from compatcheck.inference.infer import value_for_name
from compatcheck.inference.inferred import Judged
from compatcheck.matrix.matching.match import TraitVerdict, match_table

WINDOWS = {"system": "Windows", "machine": "AMD64"}


def holds_in(judged: Judged, table: dict[str, Any]) -> bool | None:
    return match_table(table, judged.view, lambda *_: TraitVerdict(False), None, judged.inferred).holds


@pytest.mark.parametrize(
    ("name", "capability"),
    [
        ("NVIDIA A100-SXM4-80GB", "8.0"),
        ("NVIDIA A10", "8.6"),
        ("NVIDIA H100 80GB HBM3", "9.0"),
        ("NVIDIA GH200 480GB", "9.0"),
        ("Tesla V100-SXM2-32GB", "7.0"),
        ("Tesla T4", "7.5"),
        ("NVIDIA GeForce RTX 4090", "8.9"),
        ("NVIDIA GeForce RTX 3080 Laptop GPU", "8.6"),
        ("NVIDIA GeForce GTX 1080 Ti", "6.1"),
        ("NVIDIA RTX 6000 Ada Generation", "8.9"),
        ("Quadro RTX 6000", "7.5"),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "12.0"),
        ("NVIDIA L40S", "8.9"),
        ("NVIDIA B200", "10.0"),
        ("NVIDIA Graphics Device", None),
        ("", None),
    ],
)
def test_a_name_gives_its_compute_capability(known: matrix.Matrix, name: str, capability: str | None) -> None:
    assert value_for_name(name, known.table("gpu-compute-capability")["compute_capability"]) == capability


def test_what_is_stated_is_left_alone(known: matrix.Matrix) -> None:
    facts = {"gpus": [{"name": "NVIDIA A100", "compute_capability": "8.1"}, {"name": "NVIDIA A100"}]}
    completed = matrix.infer(known, Environment(facts)).view
    assert [gpu["compute_capability"] for gpu in completed.facts["gpus"]] == ["8.1", "8.0"]


@pytest.mark.parametrize(
    ("torch", "runtime"),
    [
        ("2.5.0+cu118", "11.8"),
        ("2.9.0+cu130", "13.0"),
        ("2.13.0+cpu", None),
        ("2.5.0", Unknown()),
        ("2.4.0+rocm6.1", None),
        ("2.5.0a0+872d972e41.nv24.08", Unknown()),
    ],
)
def test_a_label_gives_the_cuda_runtime(known: matrix.Matrix, torch: str, runtime: object) -> None:
    completed = matrix.infer(known, Environment({"distributions": {"torch": torch}})).view
    assert completed.get("cuda.runtime") == runtime


def test_a_stated_runtime_counts_more_than_a_label(known: matrix.Matrix) -> None:
    facts = {"distributions": {"torch": "2.5.0+cu118"}, "cuda": {"runtime": "12.4"}}
    assert matrix.infer(known, Environment(facts)).view.get("cuda.runtime") == "12.4"


def test_the_runtime_wheel_beside_torch_gives_its_cuda_runtime(known: matrix.Matrix) -> None:
    listed = {"torch": "2.5.1", "nvidia-cuda-runtime-cu12": "12.4.127"}
    assert matrix.infer(known, Environment({"distributions": listed})).view.get("cuda.runtime") == "12.4"
    two = {**listed, "nvidia-cuda-runtime": "13.0.96"}
    assert matrix.infer(known, Environment({"distributions": two})).view.get("cuda.runtime") == Unknown()


@pytest.mark.parametrize(
    ("deepspeed", "reasons", "completed"),
    [
        ({"zero_stage": 2}, {}, {"zero_stage": 2, "contiguous_gradients": True, "reduce_scatter": True}),
        ({"zero_stage": 2, "reduce_scatter": False}, {"training.deepspeed.contiguous_gradients": "auto"}, None),
        ({"overlap_comm": True}, {}, None),
        (None, {}, None),
    ],
)
def test_a_zero_stage_brings_the_defaults_that_never_changed(
    known: matrix.Matrix, deepspeed: object, reasons: dict[str, str], completed: object
) -> None:
    environment = Environment({"training": {"deepspeed": deepspeed}}, reasons)
    assert matrix.infer(known, environment).view.facts["training"]["deepspeed"] == (completed or deepspeed)


@pytest.mark.parametrize(
    ("gpus", "dtype"),
    [
        (["8.0", "9.0"], "bfloat16"),
        (["7.5", "8.0"], Unknown()),
        ([None], Unknown()),
        ([], Unknown()),
    ],
)
def test_a_launcher_takes_bfloat16_where_every_gpu_can(
    known: matrix.Matrix, gpus: list[str | None], dtype: object
) -> None:
    rule = {"dtype_rule": "bfloat16-if-supported"}
    facts = {"training": rule, "gpus": [{"compute_capability": each} for each in gpus]}
    assert matrix.infer(known, Environment(facts)).view.get("training.dtype") == dtype
    stated = Environment({**facts, "training": {**rule, "dtype": "float32"}})
    assert matrix.infer(known, stated).view.get("training.dtype") == "float32"
    assert matrix.infer(known, Environment({**facts, "training": {}})).view.get("training.dtype") == Unknown()


@pytest.mark.parametrize(("torch", "dtype"), [("2.2.2+cu118", "float16"), ("2.3.0", Unknown()), (None, Unknown())])
def test_an_older_gpu_gets_float16_only_where_torch_does_not_try_to_emulate(
    known: matrix.Matrix, torch: str | None, dtype: object
) -> None:
    installed = {"distributions": {"torch": torch}} if torch else {}
    facts = {"training": {"dtype_rule": "bfloat16-if-supported"}, "gpus": [{"compute_capability": "7.0"}], **installed}
    assert matrix.infer(known, Environment(facts)).view.get("training.dtype") == dtype


def test_the_reason_goes_with_what_was_unknown(known: matrix.Matrix) -> None:
    facts = {"training": {"dtype_rule": "bfloat16-if-supported"}, "gpus": [{"name": "NVIDIA H100"}]}
    completed = matrix.infer(known, Environment(facts, {"training.dtype": "the GPUs decide"})).view
    assert completed.facts["training"]["dtype"] == "bfloat16"
    assert completed.reasons == {}


@pytest.mark.parametrize(
    ("version", "training", "dtype"),
    [
        ("4.57.6", {"load_dtype": None}, "float16"),
        ("4.57.6", {}, Unknown()),
        ("4.57.6", {"load_dtype": "bfloat16"}, "bfloat16"),
        ("4.57.6", {"load_dtype": None, "quantization": {"bits": 4, "method": "gptq"}}, Unknown()),
        ("4.57.6", {"load_dtype": None, "quantization": None}, Unknown()),
        ("5.0.0", {"load_dtype": None}, Unknown()),
        ("4.29.2", {"load_dtype": None}, Unknown()),
        (None, {"load_dtype": None}, Unknown()),
    ],
)
def test_what_bitsandbytes_leaves_is_float16_where_no_dtype_is_given(
    known: matrix.Matrix, version: str | None, training: dict[str, object], dtype: object
) -> None:
    facts = {"training": {"quantization": {"bits": 4}, **training}}
    if version:
        facts["distributions"] = {"transformers": version}
    assert matrix.infer(known, Environment(facts)).view.get("training.unquantized_dtype") == dtype


@pytest.mark.parametrize(
    ("facts", "holds"),
    [
        ({"distributions": {}, "training": {"attention": "flash_attention_2"}}, True),
        ({"distributions": {}, "training": {"attention": "sdpa"}}, False),
        ({"distributions": {"flash-attn": None}, "training": {"attention": "flash_attention_2"}}, False),
        ({"training": {"attention": "flash_attention_2", "framework": "llama-factory"}}, False),
    ],
)
def test_a_run_with_flash_attention_has_the_package(known: matrix.Matrix, facts: dict, holds: bool) -> None:
    completed = matrix.infer(known, Environment({**facts, "gpus": [{"name": "Tesla T4"}]})).view
    assert ("flash-attn" in completed.section("distribution_ranges")) is holds


def test_a_range_asked_for_stands(known: matrix.Matrix) -> None:
    facts = {"distribution_ranges": {"flash-attn": "<2"}, "training": {"attention": "flash_attention_2"}}
    assert matrix.infer(known, Environment(facts)).view.facts["distribution_ranges"] == {"flash-attn": "<2"}


def test_the_conda_package_of_the_build_tells_its_runtime(known: matrix.Matrix) -> None:
    facts = {"distributions": {"torch": "2.3.1", "pytorch-cuda": "12.1"}}
    assert matrix.infer(known, Environment(facts)).view.get("cuda.runtime") == "12.1"


@pytest.mark.parametrize(
    ("torch", "hip"),
    [("2.4.0+rocm6.1", "6.1"), ("2.4.0+cu121", None), ("2.4.0+cpu", None), ("2.4.0", Unknown())],
)
def test_the_label_of_torch_tells_hip(known: matrix.Matrix, torch: str, hip: str | None | Unknown) -> None:
    completed = matrix.infer(known, Environment({"distributions": {"torch": torch}})).view
    assert completed.get("torch_build.hip") == hip


@pytest.mark.parametrize(
    ("facts", "holds"),
    [
        ({"training": {"dtype": "bfloat16"}}, True),
        ({"training": {"dtype": "bfloat16"}, "distributions": {"torch": "2.5.1"}}, True),
        ({"training": {"dtype": "bfloat16"}, "distributions": {"torch": "2.5.1"}, "platform": WINDOWS}, None),
        ({"training": {"dtype": "bfloat16"}, "distributions": {"torch": "2.5.0a0+872d972e41.nv24.08"}}, None),
        ({"training": {"dtype": "bfloat16"}, "distributions": {"torch": "2.5.1+cpu"}}, False),
        ({"training": {"dtype": "bfloat16"}, "distributions_complete": True, "distributions": {}}, None),
        ({"training": {"dtype": "bfloat16"}, "gpus": [{"name": "AMD Instinct MI250X"}]}, False),
        ({}, None),
    ],
)
def test_a_run_on_named_gpus_has_a_torch_with_cuda(known: matrix.Matrix, facts: dict, holds: bool | None) -> None:
    judged = matrix.infer(known, Environment({"gpus": [{"name": "Tesla T4"}], **facts}))
    assert holds_in(judged, {"cuda.runtime": "present"}) is holds


@pytest.mark.parametrize(
    ("framework", "versions", "reentrant"),
    [
        ("transformers", {"transformers": "4.57.6"}, True),
        ("transformers", {"transformers": "5.0.0"}, False),
        ("transformers", {}, Unknown()),
        ("trl", {"transformers": "4.57.6", "trl": "0.26.2"}, Unknown()),
        ("trl", {"transformers": "5.0.0", "trl": "0.26.2"}, Unknown()),
        ("trl", {"transformers": "4.57.6", "trl": "0.27.0"}, None),
        ("trl", {"transformers": "4.57.6"}, Unknown()),
    ],
)
def test_checkpointing_is_reentrant_by_the_release_where_the_arguments_do_not_say(
    known: matrix.Matrix, framework: str, versions: dict[str, str], reentrant: bool | None | Unknown
) -> None:
    fact = "training.gradient_checkpointing_kwargs.use_reentrant"
    unsaid = {"framework": framework, "gradient_checkpointing_kwargs": {"use_reentrant": None}}
    completed = matrix.infer(known, Environment({"distributions": versions, "training": unsaid})).view
    assert completed.get(fact) == reentrant
    said = {"framework": framework, "gradient_checkpointing_kwargs": {"use_reentrant": False}}
    assert matrix.infer(known, Environment({"distributions": versions, "training": said})).view.get(fact) is False


@pytest.mark.parametrize(
    ("stated", "newer", "older"),
    [
        ({"distributions": {"torch": "2.1.2+cu118"}}, False, None),
        ({"distributions": {"torch": "2.2.0"}}, None, None),
        ({"distributions": {"torch": "2.1.0a0+29c30b1"}}, None, None),
        ({"distributions": {"torch": "2.1.2"}, "python": "3.12.4"}, True, False),
        ({"distributions": {"torch": "2.99.0"}}, None, None),
        ({"distributions": {}}, None, None),
    ],
)
def test_a_torch_without_wheels_for_a_python_stands_beside_an_older_one(
    known: matrix.Matrix, stated: dict[str, Any], newer: bool | None, older: bool | None
) -> None:
    judged = matrix.infer(known, Environment(stated))
    for condition, holds in ((">=3.12", newer), ("<3.12", older)):
        assert holds_in(judged, {"python": condition}) is holds


@pytest.mark.parametrize(
    ("fact", "training", "value"),
    [
        ("cudnn_sdp", {"attention": "sdpa"}, True),
        ("cudnn_sdp", {"cudnn_sdp": False}, False),
        ("cudnn_sdp", {}, Unknown()),
        ("model_accepts_loss_kwargs", {"method": "lora"}, True),
        ("model_accepts_loss_kwargs", {"model_accepts_loss_kwargs": False}, False),
        ("fill_uninitialized_memory", {"deterministic": True}, True),
        ("fill_uninitialized_memory", {"deterministic": True, "fill_uninitialized_memory": False}, False),
        ("fill_uninitialized_memory", {"method": "lora"}, Unknown()),
        ("deepspeed.leaf_modules", {"framework": "trl", "deepspeed": {"zero_stage": 3}}, False),
        ("deepspeed.leaf_modules", {"framework": "trl", "deepspeed": {"leaf_modules": True}}, True),
        ("deepspeed.leaf_modules", {"framework": "accelerate", "deepspeed": {"zero_stage": 3}}, Unknown()),
        ("deepspeed.leaf_modules", {"framework": "trl"}, Unknown()),
    ],
)
def test_a_switch_is_as_its_library_has_it_unless_somebody_says_otherwise(
    known: matrix.Matrix, fact: str, training: dict[str, Any], value: object
) -> None:
    completed = matrix.infer(known, Environment({"training": training})).view
    assert completed.get(f"training.{fact}") == value


@pytest.mark.parametrize(
    ("names", "runtime"),
    [
        (["Ascend 910B1"], None),
        (["Ascend910A", "Ascend910A"], None),
        (["Ascend 910B1", "NVIDIA A100-SXM4-80GB"], Unknown()),
        (["AMD Radeon RX 7900 XTX"], None),
        (["AMD Radeon RX 7900 XTX", "NVIDIA A100-SXM4-80GB"], Unknown()),
        ([], Unknown()),
    ],
)
def test_other_makers_have_no_cuda(known: matrix.Matrix, names: list[str], runtime: object) -> None:
    judged = matrix.infer(known, Environment({"gpus": [{"name": name} for name in names]}))
    assert judged.view.get("cuda.runtime") == runtime
    assert judged.view.get("cuda.driver") == runtime
    capabilities = {gpu.get("compute_capability", Unknown()) for gpu in judged.view.facts["gpus"]}
    assert (None in capabilities) is (runtime is None)


def test_stated_cuda_stands_beside_npus(known: matrix.Matrix) -> None:
    judged = matrix.infer(known, Environment({"gpus": [{"name": "Ascend 910B1"}], "cuda": {"toolkit": "12.1"}}))
    assert judged.view.get("cuda.toolkit") == "12.1"


@pytest.mark.parametrize(
    ("name", "gfx"),
    [("AMD Instinct MI250X", "gfx90a"), ("AMD Radeon RX 6750 XT", "gfx1031"), ("AMD Radeon Graphics", None)],
)
def test_a_name_gives_the_target_of_an_amd_gpu(known: matrix.Matrix, name: str, gfx: str | None) -> None:
    assert matrix.infer(known, Environment({"gpus": [{"name": name}]})).view.facts["gpus"][0].get("gfx") == gfx


def test_a_cuda_build_beside_amd_gpus_is_not_denied(known: matrix.Matrix) -> None:
    facts = {"gpus": [{"name": "AMD Instinct MI210"}], "distributions": {"torch": "2.6.0+cu124"}}
    assert matrix.infer(known, Environment(facts)).view.get("cuda.runtime") == "12.4"
