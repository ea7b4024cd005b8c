"""Faults of checkpoints: what is written, what is read, and where a Trainer goes on."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from tools.faults._plant import Fault, Plant, replaced
from tools.faults.models import method

SAVED, RESUMED = "save_reload", "optimizer_resume"
NEEDS, ADAPTED, TRAINER = ("transformers",), ("transformers", "peft"), ("transformers", "accelerate")
LORA = {"training": {"lora": {"target_modules": ["q_proj", "v_proj"], "r": 4}}}
WITH_HEAD = {"training": {"lora": {"target_modules": ["q_proj"], "modules_to_save": ["lm_head"], "r": 4}}}
LOAD, SAVE = "PreTrainedModel.from_pretrained", "PreTrainedModel.save_pretrained"
F32 = {"dtype": "float32"}


def rewritten(folder: Any, change: Callable[[dict[str, Any]], Any], pattern: str = "*.safetensors") -> None:
    """``change(tensors)`` of every file of weights in a folder."""
    from safetensors.torch import load_file, save_file

    for path in sorted(Path(folder).glob(pattern)):
        tensors = load_file(path)
        change(tensors)
        save_file(tensors, path, metadata={"format": "pt"})


def one_tensor_unwritten(original: Any, model: Any, folder: Any, *args: Any, **options: Any) -> Any:
    out = original(model, folder, *args, **options)
    rewritten(folder, lambda tensors: tensors.pop(next((name for name in tensors if "down_proj" in name), ""), None))
    return out


def base_frequency_lost(original: Any, model: Any, folder: Any, *args: Any, **options: Any) -> Any:
    """The configuration is written without what it says of positions, as under a key that the reader does not know."""
    out = original(model, folder, *args, **options)
    path = Path(folder) / "config.json"
    config = json.loads(path.read_text(encoding="utf-8"))
    for name in ("rope_theta", "rope_scaling", "rope_parameters"):
        config.pop(name, None)
    path.write_text(json.dumps(config), encoding="utf-8")
    return out


def second_shard_unread(original: Any, *args: Any, **options: Any) -> Any:
    """The second of several files is lost on the way."""
    for folder in args:
        if isinstance(folder, str):
            rewritten(
                folder,
                lambda tensors: [value.zero_() for value in tensors.values()],
                "*-00002-of-*.safetensors",
            )
    return original(*args, **options)


def buffers_in_bfloat16(original: Any, *args: Any, **options: Any) -> Any:
    model = original(*args, **options)
    for buffer in model.buffers():
        if buffer.is_floating_point():
            buffer.copy_(buffer.bfloat16())
    return model


def through_bfloat16(original: Any, *args: Any, **options: Any) -> Any:
    model = original(*args, **options)
    for parameter in model.parameters():
        parameter.data.copy_(parameter.data.bfloat16())
    return model


def layers_exchanged(original: Any, *args: Any, **options: Any) -> Any:
    """Layers come in the order of their names as texts, where 10 stands before 2."""
    model = original(*args, **options)
    layers = model.model.layers
    first, last = layers[0].state_dict(), layers[-1].state_dict()
    kept = {name: value.clone() for name, value in first.items()}
    layers[0].load_state_dict(last)
    layers[-1].load_state_dict(kept)
    return model


def adapter_drawn_anew(original: Any, *args: Any, **options: Any) -> Any:
    model = original(*args, **options)
    for name, parameter in model.named_parameters():
        if "lora_B" in name:
            parameter.data.zero_()
    return model


def alpha_lost(original: Any, model: Any, folder: Any, *args: Any, **options: Any) -> Any:
    out = original(model, folder, *args, **options)
    path = Path(folder) / "adapter_config.json"
    config = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**config, "lora_alpha": config["lora_alpha"] // 2}), encoding="utf-8")
    return out


def saved_module_lost(original: Any, model: Any, folder: Any, *args: Any, **options: Any) -> Any:
    out = original(model, folder, *args, **options)

    def change(tensors: dict[str, Any]) -> None:
        for name in [name for name in tensors if "lm_head" in name]:
            del tensors[name]

    rewritten(folder, change)
    return out


def trainers(name: str, change: Callable[..., Any]) -> Plant:
    """``change(original, trainer, *args)`` in the place of a method of the Trainer."""
    return method("transformers", "Trainer." + name, change)


def not_loaded(original: Any, trainer: Any, *args: Any, **options: Any) -> None:
    return None


def schedule_not_loaded(original: Any, trainer: Any, *args: Any, **options: Any) -> None:
    before = trainer.lr_scheduler.state_dict()
    original(trainer, *args, **options)
    trainer.lr_scheduler.load_state_dict(before)


def data_from_the_start() -> AbstractContextManager[None]:
    from transformers import trainer

    return replaced(trainer, "skip_first_batches", lambda original: lambda loader, *args, **options: loader)


def one_batch_too_few_skipped() -> AbstractContextManager[None]:
    from transformers import trainer

    def make(original: Any) -> Any:
        return lambda loader, number=0, *args, **options: original(loader, max(number - 1, 0), *args, **options)

    return replaced(trainer, "skip_first_batches", make)


FAULTS = (
    Fault("one tensor not written", SAVED, method("transformers", SAVE, one_tensor_unwritten), needs=NEEDS),
    Fault(
        "base of the rotary frequencies not written",
        SAVED,
        method("transformers", SAVE, base_frequency_lost),
        {"config": {"model_type": "llama", "rope_theta": 500000.0}},
        needs=NEEDS,
    ),
    Fault("second of several files not read", SAVED, method("transformers", LOAD, second_shard_unread), needs=NEEDS),
    Fault("buffers in bfloat16 after loading", SAVED, method("transformers", LOAD, buffers_in_bfloat16), needs=NEEDS),
    Fault(
        "weights loaded through bfloat16",
        SAVED,
        method("transformers", LOAD, through_bfloat16),
        {"training": {"dtype": "float32"}},
        needs=NEEDS,
    ),
    Fault("first and last layer exchanged", SAVED, method("transformers", LOAD, layers_exchanged), needs=NEEDS),
    Fault(
        "adapters drawn anew on loading",
        SAVED,
        method("peft", "PeftModel.from_pretrained", adapter_drawn_anew),
        LORA,
        needs=ADAPTED,
    ),
    Fault(
        "half of lora_alpha written",
        SAVED,
        method("peft", "PeftModel.save_pretrained", alpha_lost),
        LORA,
        needs=ADAPTED,
    ),
    Fault(
        "modules_to_save not written",
        SAVED,
        method("peft", "PeftModel.save_pretrained", saved_module_lost),
        WITH_HEAD,
        needs=ADAPTED,
    ),
    Fault(
        "Trainer resumes without its optimizer's state",
        RESUMED,
        trainers("_load_optimizer_and_scheduler", not_loaded),
        F32,
        needs=TRAINER,
    ),
    Fault(
        "Trainer resumes with a fresh schedule",
        RESUMED,
        trainers("_load_optimizer_and_scheduler", schedule_not_loaded),
        F32,
        needs=TRAINER,
    ),
    Fault(
        "Trainer resumes without its random state",
        RESUMED,
        trainers("_load_rng_state", not_loaded),
        F32,
        needs=TRAINER,
    ),
    Fault("Trainer resumes at the first batch", RESUMED, data_from_the_start, F32, needs=TRAINER),
    Fault("Trainer takes one batch again on resuming", RESUMED, one_batch_too_few_skipped, F32, needs=TRAINER),
    Fault(
        "Trainer resumes from its first weights",
        RESUMED,
        trainers("_load_from_checkpoint", not_loaded),
        F32,
        needs=TRAINER,
    ),
)
