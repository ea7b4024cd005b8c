"""Settings that code, a command or a log gives by the Trainer's own names: ``per_device_train_batch_size=2``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from compatcheck.bug_report._blocks import Block, Line
from compatcheck.bug_report._claims import Claim
from compatcheck.files.lazy_patterns import LazyPattern
from compatcheck.language import marked

_DTYPES = {"bf16": "bfloat16", "fp16": "float16", "float16": "float16", "half": "float16", "bfloat16": "bfloat16"}
_DTYPES |= {"float32": "float32", "fp32": "float32"}
_ATTENTION = ("eager", "sdpa", "flash_attention_2", "flash_attention_3", "flex_attention")
_NUMBERS = {
    "per_device_train_batch_size": "training.per_device_train_batch_size",
    "gradient_accumulation_steps": "training.gradient_accumulation_steps",
    "max_grad_norm": "training.max_grad_norm",
    "neftune_noise_alpha": "training.neftune_noise_alpha",
    "max_seq_length": "training.max_length",
    "cutoff_len": "training.max_length",
    "steps_per_generation": "training.steps_per_generation",
}
_FLAGS = {
    "gradient_checkpointing": "training.gradient_checkpointing",
    "torch_compile": "training.torch_compile",
    "packing": "training.packing",
    "padding_free": "training.padding_free",
    "group_by_length": "training.group_by_length",
    "use_vllm": "training.use_vllm",
    "use_liger_kernel": "training.use_liger_kernel",
    "predict_with_generate": "training.predict_with_generate",
    "save_safetensors": "training.save_safetensors",
    "tf32": "training.tf32",
    "use_reentrant": "training.gradient_checkpointing_kwargs.use_reentrant",
    "ddp_find_unused_parameters": "training.ddp_find_unused_parameters",
    "average_tokens_across_devices": "training.average_tokens_across_devices",
    "overlap_comm": "training.deepspeed.overlap_comm",
    "fsdp_cpu_ram_efficient_loading": "training.fsdp.cpu_ram_efficient_loading",
    "fsdp_offload_params": "training.fsdp.offload",
}
_ADAPTERS = {"use_dora": "training.lora.use_dora", "use_rslora": "training.lora.use_rslora"}
"""Flags that speak of an adapter where they are on alone: a full training prints them off."""
_WORDS = {
    "optim": "training.optimizer",
    "padding_side": "training.padding_side",
    "attn_implementation": "training.attention",
    "bnb_4bit_quant_type": "training.quantization.type",
}
_STAGES = {"pt": "pretrain", "sft": "sft", "rm": "reward", "ppo": "ppo", "dpo": "dpo", "kto": "kto", "orpo": "orpo"}
"""What LLaMA-Factory calls objectives; the stages of ZeRO are numbers."""
_TYPES = {
    "torch_dtype": "training.load_dtype",
    "bnb_4bit_compute_dtype": "training.quantization.compute_dtype",
}
_LISTS = {"target_modules": "training.lora.target_modules", "modules_to_save": "training.lora.modules_to_save"}
_SWITCHES = ("fp16", "bf16", "load_in_4bit", "load_in_8bit")
_NAMES = "|".join((*_NUMBERS, *_FLAGS, *_ADAPTERS, *_WORDS, *_TYPES, *_LISTS, *_SWITCHES, "stage", "report_to"))
_ASSIGNED = re.compile(
    rf"(?<![\w.$-])(?:--)?['\"]?({_NAMES})['\"]?(\s{{0,3}}[=:]\s{{0,3}}|\s{{1,3}}(?=\S))"
    r"(\[[^\[\]]{0,300}\]|['\"]?[\w.$(]{1,60})"
)
_DEFINITION = re.compile(r"\s{0,40}(?:def|class)\s|.{0,80}:\s?(?:int|bool|str|float|Optional|list|List)\b")
_ONLY_FLAG = LazyPattern(rf"(?<![\w.$-])--({'|'.join((*_SWITCHES, *_FLAGS))})(?=\s{{0,3}}(?:\\|--|\Z))", marks=("--",))


def read(block: Block, lines: Iterable[Line]) -> Iterator[Claim]:
    """The claims of every setting that is given a plain value; one that code computes stays open."""
    for line in lines:
        code = line.text.partition("#")[0] if "#" in line.text else line.text
        if not any(sign in code for sign in ("=", ":", "--")):
            continue
        if _DEFINITION.match(code[:200]):
            continue
        found = [(match[1], _value(match[3]), match[2]) for match in _ASSIGNED.finditer(code)]
        found += [(match[1], True, "=") for match in _ONLY_FLAG.finditer(code)]
        for name, value, between in found:
            if not between.strip() and f"--{name}" not in code:
                continue
            if name == "torch_dtype" and ":" in between:
                name = "torch_dtype of a model"
            yield from _claims(name, value, line.number)


def _claims(name: str, value: Any, number: int) -> Iterator[Claim]:
    word = value.removeprefix("torch.") if isinstance(value, str) else ""
    if name in _NUMBERS:
        yield _typed(_NUMBERS[name], _number(word), number)
    elif name in _FLAGS:
        yield _typed(_FLAGS[name], value if isinstance(value, bool) else None, number)
    elif name in _ADAPTERS:
        if value is True:
            yield Claim(_ADAPTERS[name], True, number)
    elif name == "torch_dtype of a model":
        loaded = isinstance(value, str) and value.startswith("torch.")
        yield _typed("training.load_dtype" if loaded else "model.torch_dtype", _DTYPES.get(word), number)
    elif name in _TYPES:
        yield _typed(_TYPES[name], _DTYPES.get(word), number)
    elif name in _LISTS:
        yield _typed(_LISTS[name], value if isinstance(value, list) else None, number)
    elif name == "report_to":
        yield _typed("training.report_to", _loggers(value), number)
    elif name == "stage":
        if word in _STAGES:
            yield Claim("training.objective", _STAGES[word], number)
    elif name == "attn_implementation":
        yield _typed(_WORDS[name], word if word in _ATTENTION else None, number)
    elif name == "padding_side":
        yield _typed(_WORDS[name], word if word in ("left", "right") else None, number)
    elif name in _WORDS:
        yield _typed(_WORDS[name], word if re.fullmatch(r"[a-z][a-z0-9_]{2,40}", word) else None, number)
    elif value is True and name in ("fp16", "bf16"):
        yield Claim("training.dtype", _DTYPES[name], number)
    elif value is True:
        yield Claim("training.quantization.bits", int(name[8]), number)
    elif not isinstance(value, bool):
        path = "training.dtype" if name in ("fp16", "bf16") else "training.quantization.bits"
        yield _typed(path, None, number)


def _loggers(value: object) -> list[str] | None:
    """The loggers by name; None for code, and for Python's None, which means another default in each release."""
    if value == "[]":
        return ["none"]
    if isinstance(value, str):
        return [value] if re.fullmatch(r"[a-z][a-z_]{1,20}", value) else None
    return value if isinstance(value, list) else None


def _number(word: str) -> int | float | None:
    if not re.fullmatch(r"\d{1,12}(\.\d{1,12})?", word):
        return None
    return float(word) if "." in word else int(word)


def _typed(path: str, value: object, number: int) -> Claim:
    return Claim(path, value, number, None if value is not None else marked("does not set the fact to a plain value"))


def _value(text: str) -> object:
    """The value of a literal; what is none stays a string, with a bracket where code goes on."""
    if text.startswith("["):
        items = [item.strip() for item in text[1:-1].split(",") if item.strip()]
        plain = [item[1:-1] for item in items if re.fullmatch(r"(['\"])[\w.]{1,60}\1", item)]
        return plain if plain and len(plain) == len(items) else text
    bare = text.strip("'\"")
    return {"true": True, "false": False}.get(bare.lower(), bare)
