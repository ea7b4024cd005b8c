"""The facts that the objects of a running Trainer give: what was really loaded and switched on, not what was asked for.

The attributes read are those of transformers 4.41 to 5.x and PEFT 0.10 to 0.21; one that is missing leaves its fact
unknown. torch is imported by then, so asking it costs nothing.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from typing import Any

from compatcheck.environment import Environment
from compatcheck.errors import CompatcheckError
from compatcheck.project.overlay import with_paths

_ATTENTIONS = ("eager", "sdpa", "flash_attention_2", "flash_attention_3", "flex_attention", "xformers")
_HALVES = ("float16", "bfloat16")
_COPIED = {
    "per_device_train_batch_size": int,
    "per_device_eval_batch_size": int,
    "gradient_accumulation_steps": int,
    "world_size": int,
    "learning_rate": float,
    "max_grad_norm": float,
    "num_train_epochs": float,
    "max_steps": int,
    "warmup_steps": (int, float),
    "torch_compile": bool,
    "group_by_length": bool,
    "packing": bool,
    "use_liger_kernel": bool,
    "neftune_noise_alpha": float,
}
_OBJECTIVES = ("sft", "dpo", "kto", "orpo", "ppo", "grpo", "reward")


def with_trainer(environment: Environment, args: object, model: object, tokenizer: object) -> Environment:
    """The environment with the facts of the Trainer's own objects; raises `InputError` for a broken model folder."""
    environment = _with_objects(environment, _training(args, model, tokenizer), args, model)
    deepspeed = getattr(getattr(args, "hf_deepspeed_config", None), "config", None)
    return _with_deepspeed(environment, deepspeed) if isinstance(deepspeed, Mapping) else environment


def with_model(environment: Environment, model: Any) -> Environment:
    """The environment with the facts of a model in a loop of the user's own; without a model those of the GPUs."""
    training = {} if model is None else {**_precision(None, model), **_checkpointing(None, model), **_method(model)}
    return _with_objects(environment, training, None, model)


def _with_objects(environment: Environment, training: dict[str, Any], args: object, model: object) -> Environment:
    devices = _gpus()
    known: dict[str, Any] = {"training": training, **({"gpus": devices} if devices else {})}
    configuration = getattr(model, "config", None)
    if hasattr(configuration, "model_type"):
        known["model"] = _model(configuration, args, model)
    environment = environment.overlay(Environment(known))
    folder = getattr(configuration, "_name_or_path", None)
    if isinstance(folder, str) and os.path.isfile(os.path.join(folder, "config.json")):
        environment = with_paths(environment, [folder], pins="ignored")
    return environment


def _gpus() -> list[dict[str, object]]:
    import torch

    if not torch.cuda.is_available():
        return []
    found = (torch.cuda.get_device_properties(index) for index in range(torch.cuda.device_count()))
    return [
        {"name": each.name, "compute_capability": f"{each.major}.{each.minor}", "memory_mib": each.total_memory >> 20}
        for each in found
    ]


def _training(args: Any, model: Any, tokenizer: Any) -> dict[str, object]:
    stated = {key: getattr(args, key, None) for key in _COPIED}
    training = {key: value for key, value in stated.items() if _is_of(value, _COPIED[key])}
    training["framework"] = "trl" if type(args).__module__.startswith("trl.") else "transformers"
    objective = type(args).__name__.removesuffix("Config").lower()
    if objective in _OBJECTIVES:
        training["objective"] = objective
    optimizer = getattr(args, "optim", None)
    if optimizer is not None:
        training["optimizer"] = str(getattr(optimizer, "value", optimizer))
    length = getattr(args, "max_length", None) or getattr(args, "max_seq_length", None)
    if _is_of(length, int):
        training["max_length"] = length
    side = getattr(tokenizer, "padding_side", None)
    if side in ("left", "right"):
        training["padding_side"] = side
    if getattr(args, "hf_deepspeed_config", None) is None and getattr(args, "deepspeed_plugin", None) is None:
        training["deepspeed"] = None
    return {**training, **_precision(args, model), **_checkpointing(args, model), **_method(model)}


def _is_of(value: object, kind: Any) -> bool:
    return isinstance(value, kind) and (kind is bool or not isinstance(value, bool))


def _precision(args: Any, model: Any) -> dict[str, str]:
    """``dtype`` is what is computed in, ``load_dtype`` what most of the weights are held in."""
    found: dict[str, str] = {}
    held: dict[str, int] = {}
    for name, parameter in model.named_parameters():
        if parameter.is_floating_point() and not _is_adapter(name):
            dtype = str(parameter.dtype).removeprefix("torch.")
            held[dtype] = held.get(dtype, 0) + parameter.numel()
    if held:
        found["load_dtype"] = found["dtype"] = max(held, key=lambda dtype: held[dtype])
    for flag, dtype in (("bf16", "bfloat16"), ("fp16", "float16")):
        if getattr(args, flag, False) is True:
            found["dtype"] = dtype
    attention = getattr(getattr(model, "config", None), "_attn_implementation", None)
    if attention in _ATTENTIONS:
        found["attention"] = attention
    return found


def _checkpointing(args: Any, model: Any) -> dict[str, Any]:
    asked = _asks_to_checkpoint(args)
    found: dict[str, Any] = {"gradient_checkpointing": asked or _checkpoints(model)}
    options = getattr(args, "gradient_checkpointing_kwargs", None)
    if isinstance(options, Mapping) and isinstance(options.get("use_reentrant"), bool):
        found["gradient_checkpointing_kwargs"] = {"use_reentrant": options["use_reentrant"]}
    return found


def _asks_to_checkpoint(args: object) -> bool:
    """Later releases of transformers 5 call it activation checkpointing."""
    return any(getattr(args, f"{kind}_checkpointing", False) is True for kind in ("gradient", "activation"))


def _checkpoints(model: Any) -> bool:
    return any(getattr(module, "gradient_checkpointing", False) is True for module in model.modules())


def _method(model: Any) -> dict[str, Any]:
    found: dict[str, Any] = {"quantization": _quantization(model)}
    adapters = getattr(model, "peft_config", None)
    if isinstance(adapters, Mapping) and adapters:
        adapter = next(iter(adapters.values()))
        kind = str(getattr(getattr(adapter, "peft_type", ""), "value", "")).lower()
        found["method"] = "qlora" if kind == "lora" and found["quantization"] else kind or "lora"
        found["lora"] = _lora(adapter, model)
    else:
        frozen = any(not parameter.requires_grad for parameter in model.parameters())
        found.update(method="freeze" if frozen else "full", lora=None)
    return found


def _lora(adapter: Any, model: Any) -> dict[str, object]:
    lora: dict[str, Any] = {}
    for key in ("target_modules", "modules_to_save"):
        value = getattr(adapter, key, None)
        if value is None and key == "modules_to_save":
            lora[key] = None
        elif isinstance(value, (list, tuple, set)):
            lora[key] = sorted(map(str, value))
    for key in ("r", "lora_alpha", "use_dora", "use_rslora", "bias"):
        value = getattr(adapter, key, None)
        if isinstance(value, (int, float, str)):
            lora[key] = value
    dtypes = {str(each.dtype).removeprefix("torch.") for name, each in model.named_parameters() if _is_adapter(name)}
    if dtypes:
        lora["autocast_adapter_dtype"] = not dtypes & set(_HALVES)
    return lora


def _is_adapter(name: str) -> bool:
    return "lora_" in name or "modules_to_save" in name


def _quantization(model: Any) -> dict[str, Any] | None:
    stated = getattr(getattr(model, "config", None), "quantization_config", None)
    if stated is None:
        return None
    values = stated if isinstance(stated, Mapping) else getattr(stated, "to_dict", dict)()
    bits = 4 if values.get("load_in_4bit") else 8 if values.get("load_in_8bit") else values.get("bits")
    method = values.get("quant_method")
    found = {
        "bits": bits if _is_of(bits, int) else None,
        "type": values.get("bnb_4bit_quant_type") if bits == 4 else None,
        "compute_dtype": str(values.get("bnb_4bit_compute_dtype") or "").removeprefix("torch.") or None,
        "method": str(getattr(method, "value", method)) if method else None,
    }
    return {key: value for key, value in found.items() if value is not None}


def _model(configuration: Any, args: Any, model: Any) -> dict[str, Any]:
    """Identity and traits; that checkpointing was asked for and no module has it on is seen here as nowhere else."""
    stated = {
        "name": getattr(configuration, "_name_or_path", None) or None,
        "type": getattr(configuration, "model_type", None) or None,
        "architectures": getattr(configuration, "architectures", None),
    }
    found = {key: value for key, value in stated.items() if value is not None}
    base = model.get_base_model() if hasattr(model, "get_base_model") else model
    remote = type(base).__module__.startswith("transformers_modules.")
    noop = _asks_to_checkpoint(args) and not _checkpoints(model)
    if noop or not remote:
        found["traits"] = ["gradient-checkpointing-noop"] if noop else []
    return {**found, "remote_code": remote}


def _with_deepspeed(environment: Environment, configuration: Mapping[str, Any]) -> Environment:
    """The Trainer has filled in every ``auto`` by now; our reader knows files, so it gets one."""
    try:
        with tempfile.TemporaryDirectory(prefix="compatcheck-", ignore_cleanup_errors=True) as folder:
            path = os.path.join(folder, "deepspeed.json")
            with open(path, "w", encoding="utf-8") as stream:
                json.dump(configuration, stream, default=str)
            read = with_paths(environment, [path], pins="ignored")
    except OSError as error:
        seen = error.strerror or str(error)
        raise CompatcheckError("writing", "a temporary file", seen, "free some space, or set TMPDIR") from None
    return read._replace(locations={fact: at for fact, at in read.locations.items() if at.file != path})
