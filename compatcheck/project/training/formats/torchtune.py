"""torchtune's recipe YAML, with its ``${...}`` resolved within the file.

Sources: ``recipes/configs`` and the recipes of 0.1.1 to 0.6.1, https://github.com/pytorch/torchtune. It trains in the
one ``dtype`` of the file without autocast, and calls torch's own attention. Files for generation, evaluation and
quantization are not claimed.
"""

from __future__ import annotations

from compatcheck.project.training._interpolation import interpolate
from compatcheck.project.training._rows import OPTIMIZERS, read_rows, rows
from compatcheck.project.training._sheet import Sheet
from compatcheck.project.training._values import DTYPE, FLAG, LABELS, NUMBER, WHOLE, dtype_name, parse_flag
from compatcheck.project.training.document import Configuration, Document

TITLE = "a torchtune YAML"
SUFFIXES = (".yaml", ".yml")
MARKS = ("_component_",)

_ARGUMENTS = (
    *rows("training.", WHOLE, "per_device_train_batch_size=batch_size", "gradient_accumulation_steps"),
    *rows("training.", WHOLE, "max_length=tokenizer.max_seq_len", "warmup_steps=lr_scheduler.num_warmup_steps"),
    *rows("training.", NUMBER, "num_train_epochs=epochs", "max_grad_norm=clip_grad_norm"),
    *rows("training.", NUMBER, "learning_rate=optimizer.lr"),
    *rows("training.", FLAG, "gradient_checkpointing=enable_activation_checkpointing", "torch_compile=compile"),
    *rows("training.", FLAG, "packing=dataset.packed", "resume_from_checkpoint"),
    *rows("training.", DTYPE, "dtype", "load_dtype=dtype"),
    *rows("training.fsdp.", FLAG, "offload=fsdp_cpu_offload"),
)
_MODULES = {"output_proj": "o_proj"}
_MLP = ["gate_proj", "up_proj", "down_proj"]


def recognises(document: Document) -> bool:
    """Whether a mapping is a training recipe: a model and an optimizer that torchtune builds."""
    value = document.value
    if not isinstance(value, dict) or "batch_size" not in value:
        return False
    model, optimizer = (value.get(each) for each in ("model", "optimizer"))
    if not isinstance(model, dict) or not isinstance(optimizer, dict) or "_component_" not in optimizer:
        return False
    return str(model.get("_component_", "")).startswith("torchtune.") or "torchtune." in document.text


def read(document: Document) -> Configuration:
    """What the recipe decides."""
    sheet = Sheet(interpolate(document))
    sheet.state("training.framework", "torchtune")
    sheet.state("training.deepspeed", None)
    read_rows(sheet, _ARGUMENTS)
    if dtype_name(sheet.get("dtype")):
        sheet.state("training.mixed_precision", "no", ("dtype",))
    _optimizer(sheet)
    _objective(sheet)
    _attention(sheet)
    _model(sheet)
    sheet.name("model", sheet.get("checkpointer", "checkpoint_dir"))
    return sheet.configuration()


def _component(sheet: Sheet, section: str) -> str:
    value = sheet.get(section, "_component_")
    return value if isinstance(value, str) else ""


def _optimizer(sheet: Sheet) -> None:
    kind, key = _component(sheet, "optimizer"), ("optimizer", "_component_")
    if not kind:
        return
    name = OPTIMIZERS.get(kind, kind.rpartition(".")[2])
    fused = name == "adamw_torch" and parse_flag(sheet.get("optimizer", "fused"))
    sheet.state("training.optimizer", "adamw_torch_fused" if fused else name, key)


def _objective(sheet: Sheet) -> None:
    loss, data = _component(sheet, "loss").rpartition(".")[2], _component(sheet, "dataset")
    if loss in ("DPOLoss", "RSOLoss", "SimPOLoss"):
        sheet.state("training.objective", "dpo", ("loss", "_component_"))
    elif loss == "PPOLoss":
        sheet.state("training.objective", "ppo", ("loss", "_component_"))
    elif data.endswith(".text_completion_dataset"):
        sheet.state("training.objective", "pretrain", ("dataset", "_component_"))
    elif "CrossEntropy" in loss or loss.startswith("CE"):
        sheet.state("training.objective", "sft", ("loss", "_component_"))


def _attention(sheet: Sheet) -> None:
    if parse_flag(sheet.get("dataset", "packed")):
        why = "packed sequences use flex_attention if torch has it, else sdpa"
        sheet.unknown("training.attention", why, ("dataset", "packed"))
    else:
        sheet.state("training.attention", "sdpa")


def _model(sheet: Sheet) -> None:
    """The builder's name says what is trained: ``lora_``, ``qlora_`` for NF4 weights, else all of it."""
    kind, key = _component(sheet, "model"), ("model", "_component_")
    name = kind.rpartition(".")[2]
    if not name:
        return
    if not name.startswith(("lora_", "qlora_")):
        sheet.state("training.method", "full", key)
        sheet.state("training.lora", None, key)
        sheet.state("training.quantization", None, key)
        return
    base = parse_flag(sheet.get("model", "quantize_base"))
    if name.startswith("qlora_") or base:
        place = ("model", "quantize_base") if base else key
        sheet.state("training.quantization.bits", 4, place)
        sheet.state("training.quantization.type", "nf4", place)
        sheet.state("training.quantization.method", "torchao", place)
        if sheet.is_stated("training.dtype"):
            sheet.state("training.quantization.compute_dtype", sheet.fact("training.dtype"), ("dtype",))
        sheet.state("training.method", "qlora", place)
    else:
        sheet.state("training.quantization", None, key)
        sheet.state("training.method", "dora" if parse_flag(sheet.get("model", "use_dora")) else "lora", key)
    _lora(sheet)


def _lora(sheet: Sheet) -> None:
    """The modules by the names that transformers and PEFT give them."""
    read_rows(sheet, rows("training.lora.", NUMBER, "r=lora_rank", "lora_alpha", below=("model",)))
    read_rows(sheet, rows("training.lora.", FLAG, "use_dora", below=("model",)))
    attended = "target_modules=lora_attn_modules"
    read_rows(sheet, rows("training.lora.", LABELS, attended, below=("model",)))
    named = sheet.fact("training.lora.target_modules")
    if named is not None:
        modules = [_MODULES.get(each, each) for each in named]
        modules += _MLP if parse_flag(sheet.get("model", "apply_lora_to_mlp")) else []
        modules += ["lm_head"] if parse_flag(sheet.get("model", "apply_lora_to_output")) else []
        sheet.state("training.lora.target_modules", modules, ("model", "lora_attn_modules"))
    sheet.state("training.lora.modules_to_save", None)
