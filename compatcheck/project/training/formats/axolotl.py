"""Axolotl's YAML, with its own defaults where every release shares them.

Sources: ``utils/schemas/*.py`` (before 0.8 ``utils/config/models/input``), ``utils/config/__init__.py`` and
``loaders/model.py`` (before 0.10 ``utils/models.py``) of 0.3.0 to 0.18.0, https://github.com/axolotl-ai-cloud/axolotl.
"""

from __future__ import annotations

from typing import Any

from compatcheck.project.python_values import Open
from compatcheck.project.training._parallel import read_deepspeed, read_fsdp, read_fsdp_section
from compatcheck.project.training._rows import Row, is_left_open, read_model, read_rows, rows, state_unquantized
from compatcheck.project.training._sheet import Sheet
from compatcheck.project.training._values import (
    ATTENTION,
    DTYPE,
    FLAG,
    LABELS,
    NUMBER,
    RESUME,
    TEXT,
    WHOLE,
    parse_flag,
    parse_whole,
)
from compatcheck.project.training.document import Configuration, Document, Keys

TITLE = "an Axolotl YAML"
SUFFIXES = (".yaml", ".yml")
MARKS = ("base_model",)

_USUAL = frozenset(
    ("micro_batch_size", "sequence_len", "datasets", "dataset_prepared_path", "val_set_size", "sample_packing")
    + ("adapter", "num_epochs", "pretraining_dataset", "train_on_inputs", "special_tokens", "test_datasets")
)
_OBJECTIVES = {"dpo": "dpo", "ipo": "dpo", "kto": "kto", "orpo": "orpo", "grpo": "grpo"}
_ARGUMENTS = (
    *rows("training.", WHOLE, "per_device_train_batch_size=micro_batch_size", "gradient_accumulation_steps"),
    *rows("training.", WHOLE, "per_device_eval_batch_size=eval_batch_size", "max_length=sequence_len"),
    *rows("training.", NUMBER, "learning_rate", "num_train_epochs=num_epochs", "max_steps", "warmup_steps"),
    *rows("training.", NUMBER, "max_grad_norm", "neftune_noise_alpha"),
    *rows("training.", TEXT, "template=chat_template", "optimizer"),
    *rows("training.", FLAG, "packing=sample_packing", "group_by_length", "torch_compile", "save_safetensors"),
    *rows("training.", FLAG, "tf32"),
    *rows("training.", RESUME, "resume_from_checkpoint"),
)
_LOGGERS = {
    "wandb": ("use_wandb", "wandb_project"),
    "mlflow": ("use_mlflow", "mlflow_experiment_name"),
    "tensorboard": ("use_tensorboard",),
    "comet_ml": ("use_comet", "comet_project_name"),
    "trackio": ("use_trackio", "trackio_project_name"),
}
"""Keys that turn on a logger: a flag, or the name of a project."""
_ATTENTIONS = (
    ("xformers_attention", "xformers"),
    ("flex_attention", "flex_attention"),
    ("flash_attention", "flash_attention_2"),
    ("sdp_attention", "sdpa"),
    ("eager_attention", "eager"),
)
_PRECISIONS = ("training.dtype", "training.mixed_precision", "training.load_dtype")
_SWITCHES = ("bf16", "bfloat16", "fp16", "float16")
_WORDS_OF_CHECKPOINTING = ("unsloth", "offload", "offload_disk")
_AUTO = "auto: bfloat16 if the GPUs support it"


def recognises(document: Document) -> bool:
    """Whether a mapping is a training of Axolotl: its base model, and data or sizes by Axolotl's names."""
    value = document.value
    return isinstance(value, dict) and isinstance(value.get("base_model"), str) and len(_USUAL & value.keys()) >= 2


def read(document: Document) -> Configuration:
    """What the configuration decides."""
    sheet = Sheet(document)
    sheet.state("training.framework", "axolotl")
    read_rows(sheet, _ARGUMENTS)
    _sizes(sheet)
    _objective(sheet)
    model = read_model(sheet, "base_model")
    _precision(sheet)
    _attention(sheet)
    _checkpointing(sheet)
    _adapter(sheet)
    _quantization(sheet, model)
    _parallel(sheet)
    _patches(sheet)
    _loggers(sheet)
    return sheet.configuration()


def _loggers(sheet: Sheet) -> None:
    """Without any of the keys no logger runs; wandb in all releases, the others since 0.5."""
    keys = [key for each in _LOGGERS.values() for key in each]
    if (unclear := next((key for key in keys if isinstance(sheet.get(key), Open)), None)) is not None:
        sheet.leave_open("training.report_to", (unclear,), "")
        return
    used = {logger: key for logger, each in _LOGGERS.items() for key in each if _is_on(sheet.get(key))}
    at = next(((key,) for key in used.values()), None)
    sheet.state("training.report_to", list(used) or ["none"], at)


def _is_on(value: object) -> bool:
    return bool(value) and parse_flag(value) is not False


def _sizes(sheet: Sheet) -> None:
    """Older files give the whole batch in place of the accumulation steps."""
    if sheet.get("gradient_accumulation_steps") is None:
        whole, micro = parse_whole(sheet.get("batch_size")), parse_whole(sheet.get("micro_batch_size"))
        if whole and micro:
            sheet.state("training.gradient_accumulation_steps", whole // micro, ("batch_size",))
    if not sheet.get("sample_packing"):
        sheet.state("training.packing", False, ("sample_packing",) if sheet.has("sample_packing") else None)
    if not sheet.get("optimizer"):
        sheet.unknown("training.optimizer", "optimizer is not set, and its default changed between releases")


def _objective(sheet: Sheet) -> None:
    named = sheet.get("rl")
    if isinstance(named, str) and named in _OBJECTIVES:
        sheet.state("training.objective", _OBJECTIVES[named], ("rl",))
    elif named not in (None, False):
        sheet.leave_open("training.objective", ("rl",), "not a known objective")
    elif parse_flag(sheet.get("reward_model")):
        sheet.state("training.objective", "reward", ("reward_model",))
    else:
        pretrains = bool(sheet.get("pretraining_dataset"))
        key: Keys | None = ("pretraining_dataset",) if pretrains else None
        sheet.state("training.objective", "pretrain" if pretrains else "sft", key)


def _precision(sheet: Sheet) -> None:
    """``bf16`` and ``fp16`` are autocast; ``bfloat16`` and ``float16`` hold the weights so without it.

    The weights are loaded in the same dtype, and in float16 for 8-bit (``resolve_dtype``).
    """
    if is_left_open(sheet, _PRECISIONS, *_SWITCHES, kind=FLAG, words=("full", "auto")):
        return
    given = {name: _switch(sheet, name) for name in _SWITCHES}
    for name, short in (("bf16", "bf16"), ("bfloat16", "no"), ("fp16", "fp16"), ("float16", "no")):
        if given[name]:
            dtype = "bfloat16" if name.startswith("b") else "float16"
            sheet.state("training.dtype", dtype, (name,))
            sheet.state("training.mixed_precision", short, (name,))
            sheet.state("training.load_dtype", dtype, (name,))
            return
    if given["bf16"] is None:
        key: Keys | None = ("bf16",) if sheet.has("bf16") else None
        for fact in _PRECISIONS:
            sheet.unknown(fact, _AUTO if key else "bf16 is not set, and its default changed between releases", key)
        if key and all(sheet.get(name) is None for name in ("fp16", "float16")):
            sheet.state("training.dtype_rule", "bfloat16-if-supported", key)
        return
    sheet.state("training.dtype", "float32", ("bf16",))
    sheet.state("training.mixed_precision", "no", ("bf16",))
    eight = parse_flag(sheet.get("load_in_8bit"))
    sheet.state("training.load_dtype", "float16" if eight else "float32", ("load_in_8bit",) if eight else ("bf16",))


def _switch(sheet: Sheet, name: str) -> bool | None:
    """Whether a precision is on; ``None`` where that is left to the GPU or to a default."""
    value = sheet.get(name)
    if value == "full":
        return True
    if value == "auto" or (name == "bf16" and value is None):
        return None
    return bool(parse_flag(value))


def _attention(sheet: Sheet) -> None:
    if not is_left_open(sheet, ["training.attention"], *dict(_ATTENTIONS), kind=FLAG):
        for name, attention in reversed(_ATTENTIONS):
            if parse_flag(sheet.get(name)):
                sheet.state("training.attention", attention, (name,))
    read_rows(sheet, [Row("training.attention", ("attn_implementation",), ATTENTION)])
    if not sheet.is_decided("training.attention"):
        sheet.unknown("training.attention", "no attention is set, so the model's own default applies")


def _checkpointing(sheet: Sheet) -> None:
    read_rows(sheet, rows("training.", FLAG, "gradient_checkpointing_kwargs.use_reentrant"))
    name = "gradient_checkpointing"
    if is_left_open(sheet, ["training.gradient_checkpointing"], name, kind=FLAG, words=_WORDS_OF_CHECKPOINTING):
        return
    on = bool(parse_flag(sheet.get(name))) or sheet.get(name) in _WORDS_OF_CHECKPOINTING
    sheet.state("training.gradient_checkpointing", on, (name,) if sheet.has(name) else None)


def _adapter(sheet: Sheet) -> None:
    kind = sheet.get("adapter")
    if is_left_open(sheet, ["training.method", "training.lora"], "adapter", kind=TEXT):
        return
    if isinstance(folder := sheet.get("lora_model_dir"), str):
        sheet.name("adapter", folder)
    key: Keys | None = ("adapter",) if sheet.has("adapter") else None
    if not kind:
        sheet.state("training.method", "freeze" if sheet.get("unfrozen_parameters") else "full", key)
        sheet.state("training.lora", None, key)
        return
    dora = parse_flag(sheet.get("peft_use_dora"))
    sheet.state("training.method", "dora" if kind == "lora" and dora else kind, key)
    if kind not in ("lora", "qlora"):
        return
    read_rows(sheet, rows("training.lora.", NUMBER, "r=lora_r", "lora_alpha"))
    read_rows(sheet, rows("training.lora.", FLAG, "use_dora=peft_use_dora", "use_rslora=peft_use_rslora"))
    modules = ("target_modules=lora_target_modules", "modules_to_save=lora_modules_to_save")
    read_rows(sheet, rows("training.lora.", LABELS, *modules))
    if parse_flag(sheet.get("lora_target_linear")):
        named: Any = sheet.fact("training.lora.target_modules") or []
        more = [each for each in named if each != "all-linear"]
        sheet.state("training.lora.target_modules", ["all-linear", *more], ("lora_target_linear",))
    if not sheet.get("lora_modules_to_save"):
        sheet.state("training.lora.modules_to_save", None)


def _quantization(sheet: Sheet, model: str | None) -> None:
    """QLoRA is NF4 with double quantization, computing in the dtype of loading, unless told otherwise."""
    prefix, kind = "training.quantization.", sheet.get("adapter")
    if parse_flag(sheet.get("gptq")):
        sheet.state(prefix + "method", "gptq", ("gptq",))
        return
    if is_left_open(sheet, ["training.quantization"], "load_in_4bit", "load_in_8bit", kind=FLAG):
        return
    bits = next((each for each in (4, 8) if parse_flag(sheet.get(f"load_in_{each}bit"))), None)
    if bits is None:
        state_unquantized(sheet, model)
        return
    sheet.state(prefix + "bits", bits, (f"load_in_{bits}bit",))
    sheet.state(prefix + "method", "bitsandbytes", (f"load_in_{bits}bit",))
    if bits != 4 or kind != "qlora":
        return
    sheet.state(prefix + "type", "nf4")
    sheet.state(prefix + "double_quant", True)
    if sheet.is_stated("training.load_dtype"):
        sheet.state(prefix + "compute_dtype", sheet.fact("training.load_dtype"))
    section: Keys = ("bnb_config_kwargs",)
    read_rows(sheet, rows(prefix, TEXT, "type=bnb_4bit_quant_type", below=section))
    read_rows(sheet, rows(prefix, FLAG, "double_quant=bnb_4bit_use_double_quant", below=section))
    read_rows(sheet, rows(prefix, DTYPE, "compute_dtype=bnb_4bit_compute_dtype", below=section))


def _parallel(sheet: Sheet) -> None:
    """Axolotl refuses DeepSpeed and FSDP together."""
    if read_deepspeed(sheet, ("deepspeed",)):
        pass
    elif off := next((key for key in ("fsdp", "fsdp_config") if _is_given(sheet, key)), None):
        sheet.state("training.deepspeed", None, (off,))
    elif sheet.has("deepspeed"):
        sheet.state("training.deepspeed", None, ("deepspeed",))
    else:
        why = "no DeepSpeed JSON is set, but accelerate or the command line may bring one"
        sheet.unknown("training.deepspeed", why)
    read_rows(sheet, rows("training.fsdp.", WHOLE, "version=fsdp_version"))
    if not read_fsdp(sheet, sets_environment=True):
        read_fsdp_section(sheet, ("fsdp_config",))


def _is_given(sheet: Sheet, key: str) -> bool:
    return bool(sheet.get(key)) and not isinstance(sheet.get(key), Open)


def _patches(sheet: Sheet) -> None:
    plugins = sheet.get("plugins")
    if isinstance(plugins, list) and any("liger" in str(each).lower() for each in plugins):
        sheet.state("training.use_liger_kernel", True, ("plugins",))
    words = [key for key in sheet.document.value if isinstance(key, str)]
    own = next((key for key in words if key.startswith("unsloth_") and parse_flag(sheet.get(key))), None)
    if own:
        sheet.state("training.unsloth", True, (own,))
