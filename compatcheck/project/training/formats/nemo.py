"""The YAML of NeMo's Megatron trainings, NeMo 1.x and the examples that 2.x keeps.

Source: ``examples/nlp/language_modeling/conf`` and ``.../tuning/conf`` of 1.18 to 2.4, https://github.com/NVIDIA/NeMo.
The Python recipes of NeMo 2 are programs and belong to no reader.
"""

from __future__ import annotations

from typing import Any

from compatcheck.project.python_values import Open
from compatcheck.project.training._interpolation import interpolate
from compatcheck.project.training._rows import is_left_open, read_rows, rows
from compatcheck.project.training._sheet import Sheet
from compatcheck.project.training._values import FLAG, NUMBER, TEXT, WHOLE
from compatcheck.project.training.document import Configuration, Document

TITLE = "a NeMo YAML"
SUFFIXES = (".yaml", ".yml")
MARKS = ("micro_batch_size",)

_OWN = ("megatron_amp_O2", "tensor_model_parallel_size", "peft", "restore_from_path", "activations_checkpoint_method")
_ARGUMENTS = (
    *rows("training.", WHOLE, "per_device_train_batch_size=model.micro_batch_size", "max_steps=trainer.max_steps"),
    *rows("training.", NUMBER, "max_grad_norm=trainer.gradient_clip_val", "learning_rate=model.optim.lr"),
    *rows("training.", WHOLE, "max_length=model.encoder_seq_length", "max_length=model.data.train_ds.max_seq_length"),
    *rows("training.", WHOLE, "warmup_steps=model.optim.sched.warmup_steps"),
    *rows("training.", TEXT, "optimizer=model.optim.name"),
    *rows("training.", FLAG, "packing=model.data.train_ds.packed_sequence"),
)
_PRECISIONS = {"16": "float16", "bf16": "bfloat16", "32": "float32"}
_SHORT = {"float16": "fp16", "bfloat16": "bf16", "float32": "no"}
_SCHEMES = {"lora": "lora", "qlora": "qlora", "none": "full"}


def recognises(document: Document) -> bool:
    """Whether a mapping is a training of a Megatron model with NeMo."""
    value = document.value
    if not isinstance(value, dict):
        return False
    trainer, model = value.get("trainer"), value.get("model")
    if not isinstance(trainer, dict) or not isinstance(model, dict):
        return False
    return "precision" in trainer and "micro_batch_size" in model and any(each in model for each in _OWN)


def read(document: Document) -> Configuration:
    """What the configuration decides."""
    sheet = Sheet(interpolate(document))
    sheet.state("training.framework", "nemo")
    sheet.state("training.deepspeed", None)
    read_rows(sheet, _ARGUMENTS)
    _precision(sheet)
    _sizes(sheet)
    _method(sheet)
    granularity = sheet.get("model", "activations_checkpoint_granularity")
    if sheet.has("model", "activations_checkpoint_granularity") and not isinstance(granularity, Open):
        place = ("model", "activations_checkpoint_granularity")
        sheet.state("training.gradient_checkpointing", granularity is not None, place)
    sheet.name("model", sheet.get("model", "restore_from_path") or sheet.get("restore_from_path"))
    return sheet.configuration()


def _precision(sheet: Sheet) -> None:
    """``16`` and ``bf16`` are mixed, as is ``16-mixed``; ``bf16-true`` holds the weights so."""
    value, key = sheet.get("trainer", "precision"), ("trainer", "precision")
    name, _, way = str(value).partition("-")
    if name not in _PRECISIONS:
        for fact in ("training.dtype", "training.mixed_precision"):
            sheet.leave_open(fact, key, "the value is not 16, bf16 or 32")
        return
    sheet.state("training.dtype", _PRECISIONS[name], key)
    sheet.state("training.mixed_precision", "no" if way == "true" else _SHORT[_PRECISIONS[name]], key)


def _sizes(sheet: Sheet) -> None:
    """The accumulation follows from the whole batch and from how many processes hold a copy of the model."""
    devices, nodes = _count(sheet, "trainer", "devices"), _count(sheet, "trainer", "num_nodes") or 1
    micro, whole = _count(sheet, "model", "micro_batch_size"), _count(sheet, "model", "global_batch_size")
    if not devices:
        return
    sheet.state("training.world_size", devices * nodes, ("trainer", "devices"))
    parts = 1
    for name in ("tensor_model_parallel_size", "pipeline_model_parallel_size", "context_parallel_size"):
        parts *= _count(sheet, "model", name) or 1
    copies = devices * nodes // parts
    if micro and whole and copies and whole % (micro * copies) == 0:
        sheet.state("training.gradient_accumulation_steps", whole // (micro * copies), ("model", "global_batch_size"))


def _count(sheet: Sheet, *keys: str) -> int | None:
    value: Any = sheet.get(*keys)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 10**9 else None


def _method(sheet: Sheet) -> None:
    key = ("model", "peft", "peft_scheme")
    if not sheet.has(*key):
        return
    if is_left_open(sheet, ["training.method"], key, kind=TEXT):
        return
    name = (sheet.get(*key) or "none").lower()
    sheet.state("training.method", _SCHEMES.get(name, name), key)
    if name == "none":
        sheet.state("training.lora", None, key)
    elif name in ("lora", "qlora"):
        lora = ("model", "peft", "lora_tuning")
        read_rows(sheet, rows("training.lora.", NUMBER, "r=adapter_dim", "lora_alpha=alpha", below=lora))
