"""A model's config.json made small: what selects kernels stays, what only costs time shrinks.

Kept: head dimension, heads per key-value head, rotary embedding, normalisation, biases, activation,
soft caps, ties, query and key norms, attention sinks, and a layer of each kind.
Changed with a reason: every expert is chosen by every token, since a route that hangs on the last bit of a
router would differ between two healthy runs; dropout and jitter are 0 for the same reason; a sliding
window becomes 16, so that it bites at a length of 64, unless the user's sequences all fit into it.
"""

from __future__ import annotations

import copy
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from compatcheck.probes._criterion import Row, Settings

VOCABULARY = 512
WIDTH = 256
WINDOW = 16
POSITIONS = 4096
EXPERTS = 4
EXPERT_WIDTH = 64
LATENT_RANK = 64
LEAST_LAYERS, MOST_LAYERS = 2, 6
MOST_HEADS = 16

HIDDEN = ("hidden_size", "n_embd", "d_model")
LAYERS = ("num_hidden_layers", "n_layer", "num_layers", "n_layers")
HEADS = ("num_attention_heads", "n_head", "n_heads", "num_heads")
KEY_VALUE_HEADS = ("num_key_value_heads", "multi_query_group_num", "num_kv_heads", "n_head_kv")
HEAD_DIM = ("head_dim", "kv_channels")
INTERMEDIATE = ("intermediate_size", "intermediate_size_mlp", "ffn_hidden_size", "n_inner", "ffn_dim", "d_ff")
VOCABULARIES = ("vocab_size", "padded_vocab_size", "vocab_size_per_layer_input")

WINDOWS = ("sliding_window", "attention_chunk_size")
EXPERT_COUNTS = ("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts", "num_moe_experts")
EXPERTS_CHOSEN = ("num_experts_per_tok", "num_experts_per_token", "moe_topk", "moe_k", "top_k_experts")
EXPERT_WIDTHS = ("moe_intermediate_size", "shared_expert_intermediate_size", "expert_ffn_hidden_size")
STEPS = (
    "sliding_window_pattern",
    "_sliding_window_pattern",
    "full_attention_interval",
    "interleave_moe_layer_step",
    "decoder_sparse_step",
    "moe_layer_freq",
    "no_rope_layer_interval",
)
AT_MOST = {
    **dict.fromkeys(EXPERT_WIDTHS, EXPERT_WIDTH),
    **dict.fromkeys(("q_lora_rank", "kv_lora_rank"), LATENT_RANK),
    **dict.fromkeys(("first_k_dense_replace", "n_shared_experts", "num_dense_layers", "moe_layer_start_index"), 1),
    **dict.fromkeys(("n_group", "topk_group", "pretraining_tp"), 1),
    **dict.fromkeys(WINDOWS, WINDOW),
    **dict.fromkeys(STEPS, LEAST_LAYERS),
    "hidden_size_per_layer_input": EXPERT_WIDTH,
}
FIXED = {"num_kv_shared_layers": 0, "num_nextn_predict_layers": 0, "output_router_logits": False, "use_cache": False}
RANDOM = ("dropout", "pdrop", "jitter", "drop_path", "layerdrop")
DROPPED = (
    "quantization_config",
    "torch_dtype",
    "dtype",
    "auto_map",
    "_name_or_path",
    "transformers_version",
    "architectures",
    "attn_implementation",
    "_attn_implementation",
)

Config = Dict[str, Any]

DEFAULT_CONFIG: Config = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 256,
    "intermediate_size": 512,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 64,
    "vocab_size": VOCABULARY,
    "max_position_embeddings": POSITIONS,
    "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0,
    "hidden_act": "silu",
    "tie_word_embeddings": False,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": 0,
}


def shrink(config: Settings, square: bool = False, longest: Optional[float] = None) -> Row:
    """A small config of the same kind, its head dimension named; ``config`` is left as it is.

    ``square``: hidden size equal to heads times head dimension, for architectures to which it cannot be named.
    ``longest``: tokens of the user's longest sequence; a sliding window that holds them all stays as it is.
    """
    small = {key: copy.deepcopy(value) for key, value in config.items() if key not in DROPPED}
    chosen = _layers(small)
    layers = _name(small, LAYERS)
    if layers is not None and chosen:
        _keep_layers(small, small[layers], chosen)
        small[layers] = len(chosen)
    _width(small, square)
    _experts(small)
    _positions(small)
    _vocabulary(small)
    for key, value in small.items():
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            if any(part in key for part in RANDOM):
                small[key] = 0.0
            elif key in AT_MOST and not (key in WINDOWS and _never_bites(small, value, longest)):
                small[key] = min(value, AT_MOST[key])
    small.update({key: value for key, value in FIXED.items() if key in small or key == "use_cache"})
    return small


def _never_bites(config: Settings, window: float, longest: Optional[float]) -> bool:
    return config.get("use_sliding_window") is False or longest is not None and longest <= window


def text_config(config: Settings) -> Row:
    """The part of a config that describes the language model: itself, or what a multi-modal one holds."""
    inner = config.get("text_config") or config.get("llm_config") or config.get("language_config")
    if not isinstance(inner, Mapping):
        return dict(config)
    kept = {key: config[key] for key in ("tie_word_embeddings", "pad_token_id") if key in config and key not in inner}
    return {**kept, **inner}


def head_dim(config: Settings) -> Optional[int]:
    """The head dimension named or implied; None where neither is possible."""
    named, hidden, heads = (_name(config, names) for names in (HEAD_DIM, HIDDEN, HEADS))
    if named is not None:
        return int(config[named])
    return int(config[hidden]) // int(config[heads]) if hidden and heads else None


def is_square(config: Settings) -> bool:
    """Whether the heads together are as wide as the hidden size, as releases without a named head dimension assume."""
    hidden, heads = _name(config, HIDDEN), _name(config, HEADS)
    return hidden is None or heads is None or config[hidden] == config[heads] * (head_dim(config) or 0)


def _name(config: Settings, names: Sequence[str]) -> Optional[str]:
    """The first of ``names`` whose value is a positive number."""
    return next((name for name in names if _positive(config.get(name))), None)


def _positive(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _layers(config: Settings) -> List[int]:
    """Which layers stay: the first of each kind, and at least two."""
    name = _name(config, LAYERS)
    if name is None:
        return []
    count = config[name]
    patterns = [value for value in config.values() if _is_pattern(value, count)]
    first: Dict[str, int] = {}
    for layer in range(count):
        first.setdefault(repr([pattern[layer] for pattern in patterns]), layer)
    others = [layer for layer in range(count) if layer not in first.values()]
    return sorted([*first.values(), *others[: max(0, LEAST_LAYERS - len(first))]][:MOST_LAYERS])


def _is_pattern(value: Any, layers: int) -> bool:
    """Whether a value says something of each layer; a list of layer numbers, which has no equal items, does not."""
    return isinstance(value, list) and len(value) == layers and len(set(map(repr, value))) < layers


def _keep_layers(config: Config, count: int, chosen: List[int]) -> None:
    for key, value in config.items():
        if _is_pattern(value, count):
            config[key] = [value[layer] for layer in chosen]
        elif key.endswith(("layers", "layer_ids")) and isinstance(value, list):
            config[key] = [layer for layer in value if not isinstance(layer, int) or layer < len(chosen)]
        elif key == "per_layer_config" and isinstance(value, dict):
            config[key] = {layer: item for layer, item in value.items() if int(layer) < len(chosen)}
    if _positive(config.get("max_window_layers")):
        config["max_window_layers"] = min(config["max_window_layers"], len(chosen) // 2)
    if _positive(config.get("moe_layer_end_index")):
        config["moe_layer_end_index"] = len(chosen) - 1


def _width(config: Config, square: bool) -> None:
    hidden, heads = _name(config, HIDDEN), _name(config, HEADS)
    if hidden is None or heads is None:
        return
    dimension = head_dim(config) or 1
    groups = _name(config, KEY_VALUE_HEADS)
    ratio = max(1, config[heads] // config[groups]) if groups else 1
    few = 1 if 2 * ratio > MOST_HEADS or square and ratio > 1 else 2
    few = min(few, config[groups] if groups else config[heads])
    if groups:
        config[groups] = few
    config[heads] = few * ratio
    if _name(config, HEAD_DIM) is None and not square:
        config["head_dim"] = dimension
    config[hidden] = few * ratio * dimension if square else min(config[hidden], WIDTH)
    routed = any(_positive(config.get(key)) for key in EXPERT_COUNTS) and not _name(config, EXPERT_WIDTHS)
    for name in INTERMEDIATE:
        if _positive(config.get(name)):
            config[name] = min(config[name], EXPERT_WIDTH if routed else 2 * config[hidden])
    _linear_attention(config)


def _linear_attention(config: Config) -> None:
    keys, values = (int(config.get(f"linear_num_{kind}_heads") or 0) for kind in ("key", "value"))
    if keys and values:
        config["linear_num_key_heads"], config["linear_num_value_heads"] = 2, 2 * max(1, values // keys)


def _experts(config: Config) -> None:
    for key in EXPERT_COUNTS:
        if _positive(config.get(key)):
            config[key] = min(config[key], EXPERTS)
            for chosen in EXPERTS_CHOSEN:
                if _positive(config.get(chosen)):
                    config[chosen] = config[key]


def _positions(config: Config) -> None:
    """Scaled rotary embeddings depend on the number of positions, which costs them nothing."""
    scaling = config.get("rope_scaling") or config.get("rope_parameters") or {}
    scaled = isinstance(scaling, dict) and scaling.get("rope_type", scaling.get("type")) not in (None, "default")
    for key in ("max_position_embeddings", "n_positions", "n_ctx", "seq_length", "max_seq_len"):
        if _positive(config.get(key)) and not scaled:
            config[key] = min(config[key], POSITIONS)


def _vocabulary(config: Config) -> None:
    """A small vocabulary with the special tokens moved to its end, those of one id to one id."""
    if not any(_positive(config.get(key)) for key in VOCABULARIES):
        return
    for key in VOCABULARIES:
        if _positive(config.get(key)):
            config[key] = min(config[key], VOCABULARY)
    size = min(config[key] for key in VOCABULARIES if _positive(config.get(key)))
    moved: Dict[int, int] = {}
    for key, value in config.items():
        if key.endswith(("token_id", "token_index")) and value is not None:
            ids = value if isinstance(value, list) else [value]
            small = [_moved(number, size, moved) for number in ids]
            config[key] = small if isinstance(value, list) else small[0]


def _moved(number: Any, size: int, moved: Dict[int, int]) -> object:
    if not isinstance(number, int) or number < size:
        return number
    return moved.setdefault(number, size - 1 - len(moved) % 16)


def special_ids(config: Settings) -> Tuple[int, ...]:
    """The ids that a config names as special tokens."""
    found: List[int] = []
    for key, value in config.items():
        if key.endswith(("token_id", "token_index")):
            found.extend(item for item in (value if isinstance(value, list) else [value]) if isinstance(item, int))
    return tuple(sorted(set(found)))
