"""What a remedy asks the user to do, spelled as the user's own files spell it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from compatcheck.environment import Environment
from compatcheck.language import gettext as _
from compatcheck.results.findings import Remedy

_DEEPSPEED_SECTIONS = {
    "zero_stage": ("zero_optimization", "stage"),
    "overlap_comm": ("zero_optimization", "overlap_comm"),
    "contiguous_gradients": ("zero_optimization", "contiguous_gradients"),
    "reduce_scatter": ("zero_optimization", "reduce_scatter"),
    "reduce_bucket_size": ("zero_optimization", "reduce_bucket_size"),
    "use_multi_rank_bucket_allreduce": ("zero_optimization", "use_multi_rank_bucket_allreduce"),
    "stage3_gather_16bit_weights_on_model_save": ("zero_optimization", "stage3_gather_16bit_weights_on_model_save"),
    "zero_hpz_partition_size": ("zero_optimization", "zero_hpz_partition_size"),
    "zero_quantized_gradients": ("zero_optimization", "zero_quantized_gradients"),
    "zero_quantized_weights": ("zero_optimization", "zero_quantized_weights"),
    "offload_optimizer_device": ("zero_optimization", "offload_optimizer", "device"),
    "offload_param_device": ("zero_optimization", "offload_param", "device"),
    "compile": ("compile", "deepcompile"),
    "gradient_clipping": ("gradient_clipping",),
    "bf16.check_grad_overflow": ("bf16", "check_grad_overflow"),
}
_DEEPSPEED_TRAINING = {
    "training.gradient_accumulation_steps": "gradient_accumulation_steps",
    "training.per_device_train_batch_size": "train_micro_batch_size_per_gpu",
}
_PYTHON_ARGUMENTS = {
    "training.attention": "from_pretrained(..., attn_implementation={})",
    "training.load_dtype": "from_pretrained(..., torch_dtype=torch.{})",
    "training.padding_side": "tokenizer.padding_side = {}",
    "training.lora.autocast_adapter_dtype": "get_peft_model(..., autocast_adapter_dtype={})",
    "training.gradient_checkpointing": "TrainingArguments(..., gradient_checkpointing={})",
    "training.gradient_accumulation_steps": "TrainingArguments(..., gradient_accumulation_steps={})",
    "training.torch_compile": "TrainingArguments(..., torch_compile={})",
    "training.dtype": "TrainingArguments(..., {})",
}
_TRAINER_DTYPES = {
    "bfloat16": "bf16=True, fp16=False",
    "float16": "fp16=True, bf16=False",
    "float32": "bf16=False, fp16=False",
}


def steps(remedy: Remedy, environment: Environment) -> Iterator[str]:
    """One line for each thing to do; a remedy that is none of versions or settings says it in its own words."""
    if remedy.pins:
        said = _("pin {requirements}") if any(remedy.pins.values()) else _("install {requirements}")
        requirements = " ".join(f"'{name}{specifier}'" for name, specifier in remedy.pins.items())
        yield said.format(requirements=requirements)
    for path, value in remedy.config.items():
        yield spell(path, value, environment)
    for name, setting in remedy.environ.items():
        yield f"export {name}={setting}"
    if remedy.code:
        yield remedy.code
    if not (remedy.pins or remedy.config or remedy.environ or remedy.code):
        yield remedy.why


def spell(path: str, value: Any, environment: Environment) -> str:
    """A setting of the snapshot in the words of the file it belongs to, with that file's name where it is known."""
    if path.startswith("training.deepspeed."):
        return _in_file(_deepspeed_file(environment), _nested_json(path[19:], value))
    if path in _DEEPSPEED_TRAINING and path in environment.locations:
        file = environment.locations[path].file
        if file.endswith(".json"):
            return _in_file(file, _nested_json(_DEEPSPEED_TRAINING[path], value))
        said = _("in {file} set {name} to {value}")
        return said.format(file=file, name=path.partition(".")[2], value=json.dumps(value))
    if path == "training.dtype":
        return _set_to(_PYTHON_ARGUMENTS[path].format(_TRAINER_DTYPES.get(value, value)))
    if path == "training.load_dtype":
        return _set_to(_PYTHON_ARGUMENTS[path].format(value))
    if path in _PYTHON_ARGUMENTS:
        return _set_to(_PYTHON_ARGUMENTS[path].format(repr(value)))
    return _set_to(f"{path} = {json.dumps(value)}")


def _set_to(setting: str) -> str:
    return _("set {setting}").format(setting=setting)


def _in_file(file: str, setting: str) -> str:
    return _("in {file} set {setting}").format(file=file, setting=setting)


def _deepspeed_file(environment: Environment) -> str:
    files = {
        location.file
        for path, location in environment.locations.items()
        if path.startswith("training.deepspeed.") and location.file.endswith(".json")
    }
    return files.pop() if len(files) == 1 else _("the DeepSpeed JSON")


def _nested_json(key: str, value: Any) -> str:
    *sections, name = _DEEPSPEED_SECTIONS.get(key, tuple(key.split(".")))
    text = f"{json.dumps(name)}: {json.dumps(value)}"
    for section in reversed(sections):
        text = f"{json.dumps(section)}: {{{text}}}"
    return text


def applied(environment: Environment, remedy: Remedy) -> Environment:
    """The environment with the settings and variables of a remedy."""
    facts: dict[str, Any] = dict(environment.facts)
    for path, value in remedy.config.items():
        facts = _set(facts, path.split("."), value)
    for name, value in remedy.environ.items():
        facts = _set(facts, ["environ", name], value)
    return environment._replace(facts=facts)


def _set(facts: Mapping[str, Any], path: Sequence[str], value: Any) -> dict[str, Any]:
    name, *rest = path
    below = facts.get(name)
    return {**facts, name: _set(below if isinstance(below, Mapping) else {}, rest, value) if rest else value}
