"""The steps of a remedy, spelled as the user's own files spell them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from compatcheck.environment import Environment
from compatcheck.language import marked
from compatcheck.results.findings import Remedy, Step, StepKind

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


def steps(remedy: Remedy, environment: Environment) -> Iterator[Step]:
    """Each thing to do; a remedy without versions and settings explains itself."""
    if remedy.pins:
        kind: StepKind = "pin" if any(remedy.pins.values()) else "install"
        yield Step(kind, tuple(f"{name}{specifier}" for name, specifier in remedy.pins.items()))
    for path, value in remedy.config.items():
        yield setting(path, value, environment)
    for name, value in remedy.environ.items():
        yield Step("export", (f"export {name}={value}",))
    if remedy.code:
        yield Step("code", (remedy.code,))
    if not (remedy.pins or remedy.config or remedy.environ or remedy.code):
        yield Step("words", (remedy.why,))


def setting(path: str, value: Any, environment: Environment) -> Step:
    """A setting of the snapshot as the file that it belongs to spells it, with that file where it is known."""
    if path.startswith("training.deepspeed."):
        return Step("set", (_nested_json(path[19:], value),), _deepspeed_file(environment))
    if path in _DEEPSPEED_TRAINING and path in environment.locations:
        file = environment.locations[path].file
        if file.endswith(".json"):
            return Step("set", (_nested_json(_DEEPSPEED_TRAINING[path], value),), file)
        return Step("set", (path.partition(".")[2],), file, json.dumps(value))
    if path == "training.dtype":
        return Step("set", (_PYTHON_ARGUMENTS[path].format(_TRAINER_DTYPES.get(value, value)),))
    if path == "training.load_dtype":
        return Step("set", (_PYTHON_ARGUMENTS[path].format(value),))
    if path in _PYTHON_ARGUMENTS:
        return Step("set", (_PYTHON_ARGUMENTS[path].format(repr(value)),))
    return Step("set", (f"{path} = {json.dumps(value)}",))


def _deepspeed_file(environment: Environment) -> str:
    """The one file that the DeepSpeed settings come from, or words for it."""
    files = {
        location.file
        for path, location in environment.locations.items()
        if path.startswith("training.deepspeed.") and location.file.endswith(".json")
    }
    return files.pop() if len(files) == 1 else marked("the DeepSpeed JSON")


def _nested_json(key: str, value: Any) -> str:
    *sections, name = _DEEPSPEED_SECTIONS.get(key, tuple(key.split(".")))
    text = f"{json.dumps(name)}: {json.dumps(value)}"
    for section in reversed(sections):
        text = f"{json.dumps(section)}: {{{text}}}"
    return text


def applied(environment: Environment, remedy: Remedy) -> Environment:
    """The environment with the settings and variables of a remedy."""
    variables = {f"environ.{name}": value for name, value in remedy.environ.items()}
    for path, value in {**remedy.config, **variables}.items():
        environment = environment.with_fact(path, value)
    return environment
