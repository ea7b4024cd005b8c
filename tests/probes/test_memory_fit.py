"""Memory foretold: the closed forms against their papers, real widths against known counts, a run against its peak."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

from compatcheck.environment import Target
from compatcheck.probes import run
from compatcheck.probes.training import memory_fit
from compatcheck.probes.training._memory import estimate, measured
from compatcheck.probes.training._memory.setup import Setup, stated
from compatcheck.probes.training._memory.states import Counts, states
from compatcheck.probes.training._model import Unbuildable

LLAMA3 = {
    "model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
    "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256, "tie_word_embeddings": False,
}  # fmt: skip
FULL = {"dtype": "bfloat16", "load_dtype": "bfloat16", "per_device_train_batch_size": 1, "max_length": 2048}
LORA = {**FULL, "lora": {"r": 16}, "gradient_checkpointing": True}
GPU_24, GPU_80 = 24564, 81920
COUNTS = Counts(7_500_000_000, 7_000_000_000, 200_000_000, 100_000_000, 32000, 32)
MIXED = Setup(1, 1, "bfloat16", "bfloat16", engine="deepspeed", world=64)


def probed(settings: dict[str, Any], memory: int | None = GPU_24, **request: Any) -> tuple[str, str, dict[str, Any]]:
    """Outcome, why and what was measured, in this process."""
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    asked = {"config": LLAMA3, "training": settings, "memory_mib": memory, "device": "cpu", "seed": 0, **request}
    steps, rows = memory_fit.measure(asked, lambda stage: None), []
    while True:
        try:
            rows.append(next(steps))
        except StopIteration as end:
            found = {"rows": rows, **end.value}
            return (*memory_fit.judge(found), found)


@pytest.mark.parametrize(
    ("stage", "gigabytes"), [(0, 120), (1, 31.4), (2, 16.6), (3, 1.9)], ids=["none", "ZeRO-1", "ZeRO-2", "ZeRO-3"]
)
def test_states_are_those_of_the_zero_paper(stage: int, gigabytes: float) -> None:
    """Figure 1: 7.5 billion parameters on 64 processes; the optimizer shares nothing at stage 0."""
    held = states(MIXED._replace(stage=stage), COUNTS)
    total = sum(held[name][0] for name in ("parameters", "gradients", "optimizer", "masters"))
    assert total / 1e9 == pytest.approx(gigabytes, abs=0.06)


@pytest.mark.parametrize(
    ("changes", "part", "gigabytes"),
    [
        ({"engine": "", "world": 1}, "optimizer", 30),
        ({"engine": "", "world": 1, "weights": "float32"}, "optimizer", 60),
        ({"engine": "", "world": 1, "weights": "float32"}, "masters", 0),
        ({"engine": "", "world": 1, "optimizer": "adamw_bnb_8bit"}, "optimizer", 15.2),
        ({"engine": "", "world": 1, "rank": 8, "bits": 4, "kbit_prepared": False}, "parameters", 4.9375),
        ({"stage": 2, "offload_optimizer": True}, "masters", 0),
        ({"stage": 3, "offload_params": True}, "parameters", 0),
        ({"engine": "", "world": 2}, "buffers", 15),
    ],
)
def test_bytes_of_a_part(changes: dict[str, Any], part: str, gigabytes: float) -> None:
    assert states(MIXED._replace(**changes), COUNTS)[part][0] / 1e9 == pytest.approx(gigabytes, rel=0.01)


@pytest.mark.parametrize(
    ("row", "more", "outcome", "words"),
    [
        ((30.0, 35.0), {}, "fail", "6.0 GiB more than the GPU's 24.0; the training fits with LoRA: 10.0 to 12.0 GiB"),
        ((20.0, 30.0), {}, "watch", "borderline: needs 20.0 to 30.0 GiB"),
        ((10.0, 12.0), {}, "pass", "the GPU has 24.0 GiB"),
        ((10.0, 12.0), {"memory": None}, "skip", "needs 10.0 to 12.0 GiB (parameters 9.0, activations 7.0); the GPU's"),
        ((10.0, 12.0), {"unknown": ["max_length"]}, "skip", "not given: max_length"),
        ((30.0, 35.0), {"unknown": ["max_length"]}, "fail", "plus what max_length needs"),
        ((30.0, 35.0), {"activations": measured.BY_FORMULA}, "watch", "borderline"),
        ((20.0, 22.0), {"activations": measured.BY_FORMULA}, "watch", "borderline"),
        ((10.0, 12.0), {"activations": measured.BY_FORMULA}, "pass", "the GPU has 24.0 GiB"),
    ],
)
def test_judgement(row: tuple[float, float], more: dict[str, Any], outcome: str, words: str) -> None:
    own = {
        "setting": "as stated",
        "low": row[0],
        "high": row[1],
        "parts": {"parameters": [9.0, 9.0], "activations": [0.0, 7.0]},
    }
    lora = {"setting": "LoRA", "low": 10.0, "high": 12.0, "parts": {}, "fits": True}
    given = {"rows": [own, lora], "memory": 24.0, "unknown": [], "tokens_that_fit": None, "activations": "", **more}
    assert memory_fit.judge(given)[0] == outcome
    assert words in memory_fit.judge(given)[1]


def test_a_real_model_is_counted_and_does_not_fit_where_it_does_not() -> None:
    outcome, why, found = probed(FULL)
    assert (outcome, found["parameters"]) == ("fail", 8_030_261_248), why
    assert "fits with gradient checkpointing + half the max_length + LoRA" in why
    assert found["activations"] == "measured on 2 and 4 layers of fake tensors"


def test_the_same_model_fits_with_adapters_and_checkpointing() -> None:
    assert probed(LORA, 32768)[0] == "pass"
    assert probed(LORA, 16384)[0] == "fail"


@pytest.mark.parametrize("missing", ["per_device_train_batch_size", "max_length"])
@pytest.mark.parametrize("value", [None, -1, float("nan")])
def test_what_is_not_stated_is_not_judged(missing: str, value: object) -> None:
    outcome, why, found = probed({**LORA, missing: value})
    assert (outcome, found["unknown"]) == ("skip", [missing])
    assert "a micro-batch of about" in why
    assert probed({**FULL, missing: None})[0] == "fail", "the states alone are too large"


def test_processes_that_are_not_stated_widen_the_range() -> None:
    sharded = {**FULL, "deepspeed": {"zero_stage": 3}, "gradient_checkpointing": True}
    outcome, why, found = probed(sharded, GPU_24)
    assert (outcome, found["unknown"]) == ("skip", ["world_size"]), why
    assert found["rows"][0]["low"] < 12 < 120 < found["rows"][0]["high"]
    assert probed({**sharded, "world_size": 8}, GPU_80)[0] == "pass"


def test_a_dtype_of_loading_that_is_not_stated_widens_the_range() -> None:
    (row, *_) = probed({**FULL, "load_dtype": None}, GPU_80)[2]["rows"]
    assert row["high"] > 1.7 * row["low"]


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        ({"config": None}, "no config.json found"),
        ({"training": None}, "no training settings are known"),
        ({"config": {"model_type": "nowhere"}}, "knows no model type 'nowhere'"),
        ({"memory_mib": None}, "the GPU's memory is not known"),
        ({"config": {**LLAMA3, "num_hidden_layers": "x"}}, "LlamaConfig rejects the config"),
        ({"config": {**LLAMA3, "hidden_size": -4096}}, "LlamaForCausalLM cannot be built"),
        ({"config": {**LLAMA3, "text_config": 3}}, "LlamaForCausalLM cannot be built"),
    ],
)
def test_what_is_not_known_is_skipped_with_why(request_: dict[str, Any], words: str) -> None:
    outcome, why, _ = probed(LORA, **request_)
    assert outcome == "skip" and words in why


def test_tied_weights_are_counted_once() -> None:
    pytest.importorskip("transformers")
    small = {
        "model_type": "qwen2", "hidden_size": 896, "intermediate_size": 4864, "num_hidden_layers": 24,
        "num_attention_heads": 14, "num_key_value_heads": 2, "vocab_size": 151936, "tie_word_embeddings": True,
    }  # fmt: skip
    assert measured.count(measured.architecture(small, {}), Setup(1, 1, "float32", "float32")).total == 494_032_768


def test_a_model_that_does_not_run_on_fake_tensors_is_estimated(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*given: Any) -> Any:
        raise Unbuildable("DataDependentOutputException on fake tensors")

    monkeypatch.setattr(measured, "_saved", refuse)
    outcome, _, found = probed(LORA, GPU_80)
    assert (outcome, found["activations"]) == ("pass", "estimated by formula")
    assert found["notes"] == ["DataDependentOutputException on fake tensors"]


def test_adapters_named_are_counted() -> None:
    pytest.importorskip("transformers")
    (setup,) = stated({"training": {**LORA, "lora": {"r": 8, "target_modules": ["q_proj", "v_proj"]}}}, 0).setups
    counts = measured.count(measured.architecture(LLAMA3, {}), setup)
    assert counts.adapters == 32 * 8 * ((4096 + 4096) + (4096 + 1024))


@pytest.mark.stack
@pytest.mark.parametrize("recipe", ["float32, short", "bfloat16, long", "checkpointing, long"])
def test_a_run_takes_what_was_foretold(recipe: str) -> None:
    pytest.importorskip("transformers")
    path = Path(__file__).parents[2] / "tools" / "benchmarks" / "memory_estimates.py"
    spec = importlib.util.spec_from_file_location("memory_estimates", path)
    assert spec and spec.loader
    benchmark = importlib.util.module_from_spec(spec)
    sys.modules["memory_estimates"] = benchmark
    spec.loader.exec_module(benchmark)
    setup, _, found = benchmark.foretold(benchmark.SMALL, benchmark.RECIPES[recipe])
    peak = benchmark.train(setup, "cpu")
    assert found.tensors[0] * 0.95 <= peak <= found.tensors[1] * 1.05


@pytest.mark.stack
def test_it_runs_in_the_target(stack: Target) -> None:
    result = run("memory_fit", stack, {"config": LLAMA3, "training": FULL, "memory_mib": GPU_24, "device": "cpu"})
    assert result.outcome == "fail", result.why
    assert result.why.startswith("needs ")


def test_remedies_are_tried_in_order_and_pruned() -> None:
    setup = Setup(8, 2048, "bfloat16", "bfloat16")
    kept = measured.Activations(400e6 * 8, 16e6 * 8, 50e6, "")
    model = estimate.Model(COUNTS, setup, kept)
    found = list(estimate.remedies(setup, model, 24 * estimate.GIB))
    assert found[0][0] == ("gradient checkpointing",)
    together = found[-1][0]
    assert len(together) > 1 and found[-1][1].total[1] <= 24 * estimate.GIB
    for name in together:
        fewer = estimate._applied(setup, [other for other in together if other != name])
        assert estimate.estimate(fewer, model).total[1] > 24 * estimate.GIB
