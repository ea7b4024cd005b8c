"""Foretold memory against what other estimators say and what runs really take, all in one run.

    python tools/benchmarks/memory_estimates.py [--device cuda]

First small models are trained for three steps here and the bytes of live tensors are counted as they come and go (on a
GPU the allocator's own peak is read), beside the probe's figure for the tensors, accelerate's for training with Adam
and DeepSpeed's for the model states. Then published configs are put beside published figures. Exit status 1 where a
measured peak is outside of the range widened by a tenth.
"""

from __future__ import annotations

import argparse
import os
import sys
import weakref
from typing import Any, NamedTuple

os.environ.setdefault("HF_HUB_OFFLINE", "1")

from compatcheck.probes.training._memory.estimate import Estimate, Model, estimate
from compatcheck.probes.training._memory.measured import activations, architecture, count
from compatcheck.probes.training._memory.setup import Setup, stated

MIB, GIB = 2.0**20, 2.0**30
ALLOWED = 0.10
SMALL = {
    "model_type": "llama", "hidden_size": 256, "intermediate_size": 704, "num_hidden_layers": 8,
    "num_attention_heads": 8, "num_key_value_heads": 2, "vocab_size": 4000, "max_position_embeddings": 1024,
}  # fmt: skip
LONG = {"optimizer": "adamw_torch", "per_device_train_batch_size": 4, "max_length": 256}
WIDE = {"optimizer": "adamw_torch", "per_device_train_batch_size": 1, "max_length": 64}
RECIPES: dict[str, dict[str, Any]] = {
    "float32, long": {**LONG, "dtype": "float32"},
    "float32, short": {**WIDE, "dtype": "float32"},
    "bfloat16, long": {**LONG, "dtype": "bfloat16", "load_dtype": "bfloat16"},
    "bfloat16, short": {**WIDE, "dtype": "bfloat16", "load_dtype": "bfloat16"},
    "autocast, long": {**LONG, "dtype": "bfloat16", "load_dtype": "float32"},
    "checkpointing, long": {**LONG, "dtype": "bfloat16", "load_dtype": "bfloat16", "gradient_checkpointing": True},
    "accumulating 2, long": {**LONG, "dtype": "float32", "gradient_accumulation_steps": 2},
    "LoRA r=8, long": {**LONG, "dtype": "bfloat16", "load_dtype": "bfloat16", "lora": {"r": 8}},
    "eager attention, long": {**LONG, "dtype": "float32", "attention": "eager"},
    "fused AdamW, short": {**WIDE, "dtype": "float32", "optimizer": "adamw_torch_fused"},
    "SGD, short": {**WIDE, "dtype": "float32", "optimizer": "sgd"},
}
PUBLISHED_CONFIGS: dict[str, dict[str, Any]] = {
    "llama-2-7b": {
        "model_type": "llama", "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32,
        "num_attention_heads": 32, "num_key_value_heads": 32, "vocab_size": 32000, "max_position_embeddings": 65536,
    },
    "llama-3-8b": {
        "model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
        "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256, "max_position_embeddings": 8192,
    },
    "glm-4-9b": {
        "model_type": "glm", "hidden_size": 4096, "intermediate_size": 13696, "num_hidden_layers": 40,
        "num_attention_heads": 32, "num_key_value_heads": 2, "head_dim": 128, "vocab_size": 151552,
        "attention_bias": True, "tie_word_embeddings": False, "max_position_embeddings": 131072,
    },
    "qwen2.5-7b": {
        "model_type": "qwen2", "hidden_size": 3584, "intermediate_size": 18944, "num_hidden_layers": 28,
        "num_attention_heads": 28, "num_key_value_heads": 4, "vocab_size": 152064, "tie_word_embeddings": False,
        "max_position_embeddings": 131072,
    },
    "gemma-2-9b": {
        "model_type": "gemma2", "hidden_size": 3584, "intermediate_size": 14336, "num_hidden_layers": 42,
        "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 256, "vocab_size": 256000,
        "query_pre_attn_scalar": 256, "sliding_window": 4096, "max_position_embeddings": 8192,
    },
}  # fmt: skip


class Live:
    """Counts the bytes of live tensors that pass through the dispatcher; ``peak`` is the most at one time."""

    def __init__(self, model: Any) -> None:
        from torch.utils._python_dispatch import TorchDispatchMode

        self.now = self.peak = 0
        self.seen: set[int] = set()
        live = self

        class Mode(TorchDispatchMode):  # type: ignore[misc]
            def __torch_dispatch__(self, operator: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
                from torch.utils._pytree import tree_flatten

                result = operator(*args, **(kwargs or {}))
                for each in tree_flatten(result)[0]:
                    live.add(each)
                return result

        self.mode = Mode()
        for parameter in [*model.parameters(), *model.buffers()]:
            self.add(parameter)

    def add(self, tensor: Any) -> None:
        import torch

        if not isinstance(tensor, torch.Tensor):
            return
        storage = tensor.untyped_storage()
        key = storage._cdata
        if key in self.seen:
            return
        self.seen.add(key)
        self.now += storage.nbytes()
        self.peak = max(self.peak, self.now)
        weakref.finalize(storage, self.remove, key, storage.nbytes())

    def remove(self, key: int, size: int) -> None:
        self.seen.discard(key)
        self.now -= size


def train(setup: Setup, device: str) -> float:
    """Bytes of live tensors at the peak of three steps."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    config = AutoConfig.for_model(**SMALL)
    config._attn_implementation = setup.attention or "sdpa"
    torch.set_default_dtype(getattr(torch, setup.weights))
    model = AutoModelForCausalLM.from_config(config).to(device).train()
    torch.set_default_dtype(torch.float32)
    if setup.rank is not None:
        import peft

        model = peft.get_peft_model(model, peft.LoraConfig(r=setup.rank, target_modules="all-linear"))
        for name, parameter in model.named_parameters():
            if "lora_" in name:
                parameter.data = parameter.data.float()
    if setup.checkpointing:
        model.gradient_checkpointing_enable({"use_reentrant": False})
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    if setup.optimizer == "sgd":
        optimizer: Any = torch.optim.SGD(trained, lr=1e-3)
    else:
        fused = "fused" in setup.optimizer
        optimizer = torch.optim.AdamW(trained, lr=1e-3, fused=fused, foreach=not fused)
    ids = torch.randint(0, SMALL["vocab_size"], (setup.batch, setup.length), device=device)
    live = Live(model)
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
    with live.mode:
        for _ in range(3):
            for _ in range(2 if setup.accumulates else 1):
                with torch.autocast(device, dtype=torch.bfloat16, enabled=setup.autocast):
                    loss = model(input_ids=ids, labels=ids, use_cache=False).loss
                loss.backward()
                del loss
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
    return float(torch.cuda.max_memory_allocated()) if device == "cuda" else float(live.peak)


def foretold(config: dict[str, Any], training: dict[str, Any]) -> tuple[Setup, Model, Estimate]:
    (setup, *_) = stated({"training": training}, 0).setups
    built = architecture(config, {})
    model = Model(count(built, setup), setup, activations(built, setup))
    return setup, model, estimate(setup, model)


class Others(NamedTuple):
    """What the other estimators say of a model, in bytes."""

    weights: float
    training: float
    zero2: float
    zero3: float


def others(config: dict[str, Any], dtype: str, model: Model, gpus: int) -> Others:
    """accelerate's largest step with Adam and DeepSpeed's model states for so many GPUs."""
    import torch
    from accelerate.commands.estimate import estimate_training_usage
    from accelerate.utils import calculate_maximum_sizes
    from deepspeed.runtime.zero.stage3 import estimate_zero3_model_states_mem_needs
    from deepspeed.runtime.zero.stage_1_and_2 import estimate_zero2_model_states_mem_needs
    from transformers import AutoConfig, AutoModelForCausalLM

    with torch.device("meta"):
        empty = AutoModelForCausalLM.from_config(AutoConfig.for_model(**config), dtype=torch.float32)
    total, _ = calculate_maximum_sizes(empty)
    usage = estimate_training_usage(total, "float32" if dtype == "float32" else "bfloat16")
    counts = model.counts
    two = estimate_zero2_model_states_mem_needs(counts.total, gpus, 1, cpu_offload=False)[1]
    three = estimate_zero3_model_states_mem_needs(counts.total, counts.layer, gpus, 1, False, False)[1]
    return Others(float(total), float(max(usage.values())), float(two), float(three))


def against_runs(device: str) -> int:
    print(f"{'measured here (MiB)':24} {'peak':>7} {'ours':>15} {'middle':>7} {'accelerate':>11} {'DeepSpeed':>10}")
    missed = 0
    for name, training in RECIPES.items():
        setup, model, found = foretold(SMALL, training)
        peak = train(setup, device)
        low, high = found.tensors
        other = others(SMALL, setup.weights, model, 1)
        outside = not low * (1 - ALLOWED) <= peak <= high * (1 + ALLOWED)
        missed += outside
        print(
            f"{name:24} {peak / MIB:7.1f} {low / MIB:7.1f}-{high / MIB:7.1f} {(low + high) / 2 / peak - 1:+7.0%} "
            f"{other.training / peak - 1:+11.0%} {other.zero2 / peak - 1:+10.0%}{'  OUTSIDE' if outside else ''}"
        )
    return missed


class Published(NamedTuple):
    """A figure of memory that someone published for a way of training, in GB of 10^9 bytes."""

    model: str
    training: dict[str, Any]
    gigabytes: float
    source: str


B16 = {
    "dtype": "bfloat16",
    "load_dtype": "bfloat16",
    "per_device_train_batch_size": 1,
    "attention": "flash_attention_2",
}
ATTENTION_ONLY = {"r": 8, "target_modules": ["q_proj", "k_proj", "v_proj", "o_proj"]}
PUBLISHED = [
    Published(
        "llama-2-7b",
        {**B16, "max_length": 8192, "lora": ATTENTION_ONLY, "gradient_checkpointing": True,
         "deepspeed": {"zero_stage": 2}, "world_size": 8},
        25.7, "measured: LongLoRA, table 12, arxiv.org/abs/2309.12307",
    ),
    Published(
        "glm-4-9b",
        {**B16, "attention": None, "max_length": 1024, "gradient_checkpointing": True,
         "lora": {"r": 8, "target_modules": ["q_proj", "k_proj", "v_proj"]}},
        22.6, "measured, samples of at most 1024 tokens: THUDM/GLM-4 finetune_demo/README_en.md",
    ),
    Published(
        "llama-2-7b", {**B16, "max_length": 512, "gradient_checkpointing": True}, 60.0,
        "estimated: LLaMA-Factory README",
    ),
    Published(
        "llama-2-7b", {**B16, "max_length": 512, "lora": {"r": 8}, "gradient_checkpointing": True}, 16.0,
        "estimated: LLaMA-Factory README",
    ),
    Published(
        "llama-2-7b", {**B16, "max_length": 512, "lora": {"r": 8}, "quantization": {"bits": 4, "double_quant": True},
                       "gradient_checkpointing": True}, 6.0, "estimated: LLaMA-Factory README",
    ),
]  # fmt: skip
WAYS: dict[str, dict[str, Any]] = {
    "full": {},
    "full, checkpointing": {"gradient_checkpointing": True},
    "ZeRO-2 on 8": {"gradient_checkpointing": True, "deepspeed": {"zero_stage": 2}, "world_size": 8},
    "ZeRO-3 on 8": {"gradient_checkpointing": True, "deepspeed": {"zero_stage": 3}, "world_size": 8},
    "LoRA": {"gradient_checkpointing": True, "lora": {"r": 16}},
    "QLoRA": {"gradient_checkpointing": True, "lora": {"r": 16}, "quantization": {"bits": 4, "double_quant": True}},
}


def against_configs() -> None:
    print(f"\n{'1 x 2048 tokens (GiB)':32} {'parameters':>13} {'ours':>13} {'accelerate':>11} {'DeepSpeed states':>17}")
    for name, config in PUBLISHED_CONFIGS.items():
        for way, more in WAYS.items():
            training = {**B16, "attention": None, "max_length": 2048, **more}
            setup, model, found = foretold(config, training)
            other = others(config, "bfloat16", model, setup.world)
            states = {2: other.zero2, 3: other.zero3}.get(setup.stage)
            low, high = (size / GIB for size in found.total)
            print(
                f"{name + ' ' + way:32} {model.counts.total:13,} {low:6.1f}-{high:6.1f} "
                f"{other.training / GIB:11.1f} {f'{states / GIB:17.1f}' if states else '-':>17}"
            )


def against_figures() -> None:
    print(f"\n{'published (GB)':14} {'figure':>7} {'ours':>13}  way and source")
    for each in PUBLISHED:
        setup, _, found = foretold(PUBLISHED_CONFIGS[each.model], each.training)
        low, high = (size / 1e9 for size in found.total)
        print(f"{each.model:14} {each.gigabytes:7.1f} {low:6.1f}-{high:6.1f}  {setup.describe()}; {each.source}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    options = parser.parse_args()
    missed = against_runs(options.device)
    against_configs()
    against_figures()
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
