"""Published configs made small: what selects kernels stays, and the installed transformers builds them."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from compatcheck.probes.training._shrunk import DEFAULT_CONFIG, head_dim, shrink, special_ids, text_config

SAMPLES = Path(__file__).parent / "samples"
CONFIGS: dict[str, dict[str, Any]] = json.loads((SAMPLES / "model_configs.json").read_text(encoding="utf-8"))
NAMES = sorted(CONFIGS)


def small(name: str, **changes: Any) -> dict[str, Any]:
    return shrink({**text_config(CONFIGS[name]), **changes})


@pytest.mark.parametrize("name", NAMES)
def test_what_selects_kernels_stays(name: str) -> None:
    given, result = text_config(CONFIGS[name]), small(name)
    assert head_dim(result) == head_dim(given)
    kept = [key for key in given if key.startswith(("rope_", "qk_", "v_head", "partial")) or key.endswith("_eps")]
    kept += ["hidden_act", "attention_bias", "tie_word_embeddings", "attn_logit_softcapping", "model_type"]
    assert {key: result[key] for key in kept if key in given} == {key: given[key] for key in kept if key in given}


@pytest.mark.parametrize("name", NAMES)
def test_what_costs_time_shrinks(name: str) -> None:
    result = small(name)
    layers = result.get("num_hidden_layers") or result["n_layer"]
    assert 2 <= layers <= 4
    assert (result.get("hidden_size") or result["n_embd"]) <= 256
    assert result["vocab_size"] <= 512
    assert result.get("num_experts", result.get("n_routed_experts", 0)) <= 4
    assert result["use_cache"] is False


@pytest.mark.parametrize("name", NAMES)
def test_nothing_random_and_nothing_of_the_checkpoint_stays(name: str) -> None:
    result = small(name)
    random = [key for key in result if "dropout" in key or "pdrop" in key or "jitter" in key]
    assert [result[key] for key in random] == [0.0] * len(random)
    assert not {"torch_dtype", "quantization_config", "auto_map", "architectures"} & set(result)


@pytest.mark.parametrize("name", NAMES)
def test_special_tokens_move_inside_the_vocabulary(name: str) -> None:
    assert all(0 <= number < 512 for number in special_ids(small(name)))


@pytest.mark.parametrize("name", NAMES)
def test_the_config_given_is_left_alone(name: str) -> None:
    given = copy.deepcopy(CONFIGS[name])
    shrink(CONFIGS[name])
    assert CONFIGS[name] == given


@pytest.mark.parametrize(
    ("name", "heads", "groups"), [("llama", 8, 2), ("glm", 16, 1), ("qwen2", 14, 2), ("phi3", 2, 2)]
)
def test_heads_keep_their_ratio_to_key_value_heads(name: str, heads: int, groups: int) -> None:
    result = small(name)
    assert (result["num_attention_heads"], result["num_key_value_heads"]) == (heads, groups)


def test_an_architecture_that_needs_it_gets_its_width_from_its_heads() -> None:
    result = shrink(CONFIGS["llama"], square=True)
    assert result["hidden_size"] == result["num_attention_heads"] * 128 == 512


def test_one_layer_of_each_kind_stays() -> None:
    kinds = ["linear_attention"] * 3 + ["full_attention"]
    result = small("qwen3_next", layer_types=kinds * 12, sliding_window=4096)
    assert (result["num_hidden_layers"], result["layer_types"]) == (2, ["linear_attention", "full_attention"])
    assert (result["sliding_window"], result["full_attention_interval"]) == (16, 2)


@pytest.mark.parametrize(("longest", "window"), [(None, 16), (8192, 16), (4096, 4096), (512, 4096)])
def test_a_sliding_window_bites_unless_the_users_sequences_fit_into_it(longest: int | None, window: int) -> None:
    assert shrink(CONFIGS["mistral"], longest=longest)["sliding_window"] == window
    assert small("qwen2")["sliding_window"] == 131072


def test_every_expert_is_chosen_so_that_no_route_hangs_on_rounding() -> None:
    result = small("qwen3_moe")
    assert (result["num_experts"], result["num_experts_per_tok"], result["moe_intermediate_size"]) == (4, 4, 64)
    assert small("deepseek_v3")["first_k_dense_replace"] == 1


def test_ids_that_were_equal_stay_equal() -> None:
    result = small("phi3")
    assert result["eos_token_id"] == result["pad_token_id"] < 512
    assert result["bos_token_id"] == 1


def test_lists_of_another_length_and_scaled_positions_stay() -> None:
    result = shrink({**CONFIGS["llama"], "mlp_only_layers": [0, 5], "thresholds": [1.0, 2.0, 3.0]})
    assert (result["mlp_only_layers"], result["thresholds"]) == ([0], [1.0, 2.0, 3.0])
    assert result["max_position_embeddings"] == 131072
    assert small("qwen3")["max_position_embeddings"] == 4096


def test_the_default_is_small_already() -> None:
    assert {key: shrink(DEFAULT_CONFIG)[key] for key in ("hidden_size", "num_attention_heads", "vocab_size")} == {
        "hidden_size": 256,
        "num_attention_heads": 4,
        "vocab_size": 512,
    }


def test_a_config_of_nothing_is_no_error() -> None:
    assert shrink({}) == {"use_cache": False}
    assert head_dim({}) is None
