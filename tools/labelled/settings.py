"""Settings by the names that people give them, and the facts they are."""

from __future__ import annotations

from typing import Any

from packaging.version import InvalidVersion, Version

from compatcheck.environment.vocabulary import keys

DTYPES = {
    "bf16": "bfloat16",
    "bfloat16": "bfloat16",
    "fp16": "float16",
    "float16": "float16",
    "half": "float16",
    "fp32": "float32",
    "float32": "float32",
}
ATTENTION = {
    "flash": "flash_attention_2",
    "flex": "flex_attention",
    "sdpa": "sdpa",
    "eager": "eager",
    "xformers": "xformers",
}
NAMES = {
    "attn_implementation": "attention",
    "flash_attn": "attention",
    "optim": "optimizer",
    "compile": "torch_compile",
    "max_seq_length": "max_length",
    "cutoff_len": "max_length",
    "stage": "objective",
    "batch_size": "per_device_train_batch_size",
    "gpu_count": "world_size",
    "num_processes": "world_size",
    "fsdp_version": "version",
    "fsdp_sharding_strategy": "sharding_strategy",
    "rlhf_type": "objective",
    "enable_cudnn_sdp": "cudnn_sdp",
}
"""Settings whose fact has another name."""


def version_of(text: str) -> Version | None:
    try:
        return Version(text)
    except InvalidVersion:
        return None


def fact_of(setting: str, value: Any) -> tuple[tuple[str, ...], Any] | None:
    """Where the fact stands below ``training`` that a setting gives, and its value; ``None`` where none is meant.

    The last part of the setting's name tells, as ``use_reentrant`` in ``gradient_checkpointing_kwargs.use_reentrant``,
    where one fact alone ends in it, or one that stands right below.
    """
    last = setting.lower().rpartition(".")[2]
    last = NAMES.get(last, last)
    paths = {tuple(path.split(".")[1:]): kind for path, kind in keys().items() if path.startswith("training.")}
    ending = [path for path in paths if path[-1] == last]
    where = (last,) if (last,) in paths else ending[0] if len(ending) == 1 else None
    if where is None:
        return None
    if value is None or any(path[: len(where)] == where != path for path in paths):
        return None if value else (where, None)
    typed = {
        "flag": value if isinstance(value, bool) else None,
        "number": value if isinstance(value, (int, float)) and not isinstance(value, bool) else None,
        "labels": value if isinstance(value, list) else None,
        "text": value.lower() if isinstance(value, str) else None,
    }[paths[where]]
    if last == "objective":
        typed = {"pt": "pretrain", "rm": "reward"}.get(str(typed), typed)
    if last == "attention":
        typed = ATTENTION.get(str(typed).partition("_")[0], typed)
    return None if typed is None else (where, typed)


def put(said: dict[str, Any], where: tuple[str, ...], value: Any) -> None:
    for part in where[:-1]:
        if said.get(part) is None:
            said[part] = {}
        said = said[part]
    said[where[-1]] = value
