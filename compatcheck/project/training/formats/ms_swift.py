"""ms-swift's arguments, as it saves them (``args.json``, ``sft_args.json``) or is given them in YAML or JSON.

Sources: ``swift/llm/utils/argument.py`` of 2.6, ``swift/llm/argument`` and ``swift/trainers/arguments.py`` of 3.x, and
``swift/arguments`` of 4.x, https://github.com/modelscope/ms-swift. Arguments of its Megatron trainer are not claimed.
"""

from __future__ import annotations

from typing import Any

from compatcheck.project.training._parallel import read_deepspeed
from compatcheck.project.training._rows import Row, is_left_open, read_model, read_rows, rows, state_unquantized
from compatcheck.project.training._sheet import Sheet
from compatcheck.project.training._values import (
    ATTENTION,
    DTYPE,
    FLAG,
    LABELS,
    LOGGERS,
    NUMBER,
    SIDE,
    TEXT,
    WHOLE,
    dtype_name,
    parse_flag,
    parse_number,
)
from compatcheck.project.training.document import Configuration, Document, Keys

TITLE = "the arguments of ms-swift"
SUFFIXES = (".json", ".yaml", ".yml")
MARKS = ("per_device_train_batch_size", "batch_size", "num_train_epochs", "learning_rate")

_TUNERS = ("tuner_type", "train_type", "sft_type")
_MODELS = ("model", "model_id_or_path", "model_type")
_SIZES = ("per_device_train_batch_size", "batch_size", "num_train_epochs", "learning_rate")
_OWN = frozenset(
    ("attn_impl", "split_dataset_ratio", "lora_rank", "target_modules", "model_author", "rlhf_type", "padding_free")
    + ("dataset_num_proc", "quant_bits", "template", "torch_dtype")
)
_MEGATRON = ("tensor_model_parallel_size", "mcore_model", "micro_batch_size", "pipeline_model_parallel_size")
_OBJECTIVES = {name: name for name in ("dpo", "kto", "orpo", "cpo", "simpo", "ppo", "grpo", "gkd")} | {"rm": "reward"}
_ARGUMENTS = (
    *rows("training.", WHOLE, "per_device_train_batch_size=batch_size", "per_device_train_batch_size"),
    *rows("training.", WHOLE, "per_device_eval_batch_size", "gradient_accumulation_steps", "max_steps"),
    *rows("training.", WHOLE, "max_length", "world_size=global_world_size"),
    *rows("training.", NUMBER, "learning_rate", "max_grad_norm", "num_train_epochs", "warmup_steps"),
    *rows("training.", NUMBER, "neftune_noise_alpha"),
    *rows("training.", TEXT, "optimizer=optim", "template=template_type", "template"),
    *rows("training.", SIDE, "padding_side"),
    *rows("training.", FLAG, "packing", "padding_free", "group_by_length", "torch_compile", "save_safetensors"),
    *rows("training.", FLAG, "use_liger_kernel=use_liger", "use_liger_kernel", "gradient_checkpointing"),
    *rows("training.", FLAG, "gradient_checkpointing_kwargs.use_reentrant", "use_vllm"),
    *rows("training.", FLAG, "average_tokens_across_devices"),
    *rows("training.", LOGGERS, "report_to"),
)
_METHODS_OF_QUANTIZATION = {"bnb": "bitsandbytes"}
_ALL_LINEAR = ("ALL", "all-linear", "all")
_OPEN_MODULES = ("DEFAULT", "AUTO", "EMBEDDING", "all-embedding", "all-norm", "LN")


def recognises(document: Document) -> bool:
    """Whether a mapping holds the arguments of a training with ms-swift, by names that only it has."""
    value = document.value
    if not isinstance(value, dict) or any(value.get(each) is not None for each in _MEGATRON):
        return False
    if not any(isinstance(value.get(each), str) for each in _MODELS) or not any(each in value for each in _SIZES):
        return False
    if any(isinstance(value.get(each), str) for each in _TUNERS):
        return True
    return "dataset" in value and "model" in value and len(_OWN & value.keys()) >= 2


def read(document: Document) -> Configuration:
    """What the arguments decide."""
    sheet = Sheet(document)
    sheet.state("training.framework", "ms-swift")
    read_rows(sheet, _ARGUMENTS)
    model = read_model(sheet, "model") or read_model(sheet, "model_id_or_path")
    _defaults(sheet)
    _objective(sheet)
    _precision(sheet)
    _attention(sheet)
    _quantization(sheet, model)
    _tuner(sheet)
    _parallel(sheet)
    return sheet.configuration()


def _is_new(sheet: Sheet) -> bool:
    """Whether the names are those of 3.0 and later."""
    return not sheet.has("sft_type") and not sheet.has("model_id_or_path") and not sheet.has("template_type")


def _defaults(sheet: Sheet) -> None:
    if not any(sheet.has(name) for name in ("per_device_train_batch_size", "batch_size")):
        sheet.state("training.per_device_train_batch_size", 1)
    if sheet.get("gradient_accumulation_steps") is None:
        sheet.unknown(
            "training.gradient_accumulation_steps", "not set, so the value depends on the number of processes"
        )
    if not sheet.has("gradient_checkpointing") and _is_new(sheet):
        sheet.state("training.gradient_checkpointing", True)
    if not sheet.has("packing"):
        sheet.state("training.packing", False)
    if not sheet.has("report_to") and _is_new(sheet):
        sheet.state("training.report_to", ["tensorboard"])
    if sheet.get("optimizer"):
        sheet.unknown("training.optimizer", "the optimizer is one of ms-swift's own", ("optimizer",))
    elif sheet.get("optim") is None:
        sheet.unknown("training.optimizer", "optim is not set, and its default changed between releases")
    if sheet.get("tuner_backend") == "unsloth":
        sheet.state("training.unsloth", True, ("tuner_backend",))


def _objective(sheet: Sheet) -> None:
    """Fine-tuning and pretraining take the same arguments; only what was saved tells them apart."""
    named = sheet.get("rlhf_type")
    if isinstance(named, str) and named in _OBJECTIVES:
        sheet.state("training.objective", _OBJECTIVES[named], ("rlhf_type",))
    elif named:
        sheet.leave_open("training.objective", ("rlhf_type",), "not a known objective")
    elif (chats := parse_flag(sheet.get("use_chat_template"))) is not None:
        sheet.state("training.objective", "sft" if chats else "pretrain", ("use_chat_template",))
    else:
        sheet.unknown("training.objective", "swift sft and swift pt take the same arguments")


def _precision(sheet: Sheet) -> None:
    """Since 3.0 autocast follows the dtype of the weights, float16 for float32 too, where neither flag is given."""
    if is_left_open(sheet, ("training.dtype", "training.load_dtype"), "bf16", "fp16", kind=FLAG):
        return
    if is_left_open(sheet, ("training.dtype", "training.load_dtype"), "torch_dtype", "dtype"):
        return
    for name, dtype in (("bf16", "bfloat16"), ("fp16", "float16")):
        if parse_flag(sheet.get(name)):
            sheet.state("training.dtype", dtype, (name,))
            sheet.state("training.mixed_precision", name, (name,))
    read_rows(sheet, rows("training.", DTYPE, "load_dtype=torch_dtype"))
    if sheet.is_stated("training.dtype"):
        return
    key = "torch_dtype" if sheet.get("torch_dtype") is not None else "dtype"
    named = sheet.get(key)
    load = dtype_name(named)
    if load is None:
        sheet.unknown("training.dtype", "no dtype is set: the run uses the model's own, or what the GPUs support")
    elif _is_new(sheet) and all(sheet.get(name) is None for name in ("bf16", "fp16")):
        sheet.state("training.dtype", "bfloat16" if load == "bfloat16" else "float16", (key,))
        sheet.state("training.mixed_precision", "bf16" if load == "bfloat16" else "fp16", (key,))
    elif not _is_new(sheet):
        sheet.state("training.dtype", load, (key,))
        full = sheet.get("sft_type") == "full" and load == "float16"
        sheet.state("training.load_dtype", "float32" if full else load, (key,))
    else:
        sheet.state("training.dtype", load, (key,))


def _attention(sheet: Sheet) -> None:
    read_rows(sheet, rows("training.", ATTENTION, "attention=attn_impl"))
    if sheet.get("attn_impl") is None:
        if parse_flag(sheet.get("use_flash_attn")):
            sheet.state("training.attention", "flash_attention_2", ("use_flash_attn",))
        else:
            sheet.unknown("training.attention", "attn_impl is not set, so the model's own default applies")


def _quantization(sheet: Sheet, model: str | None) -> None:
    prefix = "training.quantization."
    if is_left_open(sheet, ["training.quantization"], "quant_bits", "quantization_bit", "quant_method"):
        return
    bits = "quant_bits" if sheet.get("quant_bits") is not None else "quantization_bit"
    if not parse_number(sheet.get(bits)) and sheet.get(bits) != "float8":
        state_unquantized(sheet, model)
        return
    if is_left_open(sheet, [prefix + "method"], "quant_method", kind=TEXT):
        return
    method = sheet.get("quant_method") or "bnb"
    sheet.state(prefix + "method", _METHODS_OF_QUANTIZATION.get(method, method), (bits,))
    if sheet.get(bits) != "float8":
        read_rows(sheet, rows(prefix, WHOLE, f"bits={bits}"))
    if method != "bnb" or sheet.fact(prefix + "bits") != 4:
        return
    sheet.state(prefix + "type", "nf4")
    sheet.state(prefix + "double_quant", True)
    read_rows(sheet, rows(prefix, TEXT, "type=bnb_4bit_quant_type"))
    read_rows(sheet, rows(prefix, FLAG, "double_quant=bnb_4bit_use_double_quant"))
    load = sheet.fact("training.load_dtype")
    if load is not None:
        sheet.state(prefix + "compute_dtype", load if load == "bfloat16" or not _is_new(sheet) else "float32")
    for name in ("bnb_4bit_comp_dtype", "bnb_4bit_compute_dtype"):
        if dtype_name(sheet.get(name)):
            read_rows(sheet, rows(prefix, DTYPE, f"compute_dtype={name}"))


def _tuner(sheet: Sheet) -> None:
    key: str | None = next((each for each in _TUNERS if sheet.get(each) is not None), None)
    kind = sheet.get(key) if key else "lora"
    place: Keys | None = (key,) if key else None
    if key and is_left_open(sheet, ["training.method", "training.lora"], key, kind=TEXT):
        return
    for name in ("adapters", "resume_from_checkpoint"):
        folder = sheet.get(name)
        sheet.name("adapter", folder[0] if isinstance(folder, list) and folder else folder)
        if isinstance(folder, str) and name == "resume_from_checkpoint":
            sheet.state("training.resume_from_checkpoint", True, (name,))
    if kind != "lora":
        sheet.state("training.method", kind, place)
        if kind == "full":
            sheet.state("training.lora", None, place)
        return
    dora = parse_flag(sheet.get("use_dora"))
    quantized = sheet.fact("training.quantization.bits") == 4
    sheet.state("training.method", "qlora" if quantized else "dora" if dora else "lora", place)
    sheet.state("training.lora.r", 8)
    read_rows(sheet, rows("training.lora.", NUMBER, "r=lora_rank", "lora_alpha"))
    read_rows(sheet, rows("training.lora.", FLAG, "use_dora", "use_rslora"))
    read_rows(sheet, rows("training.lora.", TEXT, "bias=lora_bias_trainable", "bias=lora_bias"))
    for name in ("lora_target_modules", "target_modules"):
        _modules(sheet, "training.lora.target_modules", name, None)
    for name in ("lora_modules_to_save", "modules_to_save"):
        _modules(sheet, "training.lora.modules_to_save", name, ())


def _modules(sheet: Sheet, fact: str, name: str, none: tuple[str, ...] | None) -> None:
    """A list of modules; some of its words stand for modules that only the model tells."""
    given = sheet.get(name)
    if given is None and none is None:
        return
    if not given and none is not None:
        if not sheet.is_stated(fact):
            sheet.state(fact, None)
        return
    read_rows(sheet, [Row(fact, (name,), LABELS)])
    named: Any = sheet.fact(fact) or []
    if any(each in _OPEN_MODULES for each in named):
        sheet.leave_open(fact, (name,), "which depends on the model")
    elif named:
        sheet.state(fact, ["all-linear" if each in _ALL_LINEAR else each for each in named], (name,))


def _parallel(sheet: Sheet) -> None:
    """DeepSpeed by a file, by the name of a configuration that ms-swift carries, or written out where it was saved."""
    value = sheet.get("deepspeed")
    if read_deepspeed(sheet, ("deepspeed",)):
        if isinstance(value, str):
            sheet.name("deepspeed", value.removeprefix("default-"))
    else:
        sheet.state("training.deepspeed", None, ("deepspeed",) if sheet.has("deepspeed") else None)
    if isinstance(sheet.get("fsdp"), str) and sheet.get("fsdp").strip():
        sheet.unknown("training.fsdp", f"{sheet.get('fsdp')} decides", ("fsdp",))
