"""LLaMA-Factory's training YAML and JSON, with its own defaults where every release shares them.

Sources: ``hparams/*.py``, ``hparams/parser.py``, ``model/patcher.py`` and ``model/model_utils`` of 0.5.3 to 0.9.5,
https://github.com/hiyouga/LLaMA-Factory. Files for export, chat and evaluation are not claimed, nor are those of the
new ``v1`` interface, which have names of their own.
"""

from __future__ import annotations

from compatcheck.project.training._parallel import read_deepspeed, read_fsdp
from compatcheck.project.training._rows import is_left_open, read_model, read_rows, rows, state_unquantized
from compatcheck.project.training._sheet import Sheet
from compatcheck.project.training._trainer_arguments import read_arguments
from compatcheck.project.training._values import (
    ATTENTION,
    FLAG,
    LABELS,
    LOGGERS,
    NUMBER,
    RESUME,
    TEXT,
    WHOLE,
    attention_name,
    parse_flag,
)
from compatcheck.project.training.document import Configuration, Document, Keys

TITLE = "a LLaMA-Factory YAML"
SUFFIXES = (".yaml", ".yml", ".json")
MARKS = ("model_name_or_path",)

_OBJECTIVES = {
    "pt": "pretrain",
    "sft": "sft",
    "rm": "reward",
    "ppo": "ppo",
    "dpo": "dpo",
    "kto": "kto",
    "orpo": "orpo",
}
_METHODS = ("lora", "freeze", "full", "oft")
_ARGUMENTS = (
    *rows("training.", WHOLE, "per_device_train_batch_size", "per_device_eval_batch_size"),
    *rows("training.", WHOLE, "gradient_accumulation_steps", "max_steps", "max_length=cutoff_len"),
    *rows("training.", NUMBER, "learning_rate", "max_grad_norm", "num_train_epochs", "warmup_steps"),
    *rows("training.", NUMBER, "neftune_noise_alpha"),
    *rows("training.", LOGGERS, "report_to"),
    *rows("training.", RESUME, "resume_from_checkpoint"),
    *rows("training.", TEXT, "template", "optimizer=optim"),
    *rows("training.", FLAG, "group_by_length", "torch_compile", "save_safetensors", "tf32", "predict_with_generate"),
    *rows(
        "training.",
        FLAG,
        "average_tokens_across_devices",
        "neat_packing",
        "use_liger_kernel=enable_liger_kernel",
        "unsloth=use_unsloth",
    ),
)
_DEFAULTS: dict[str, object] = {
    "per_device_train_batch_size": 8,
    "gradient_accumulation_steps": 1,
    "max_grad_norm": 1.0,
    "neat_packing": False,
}
_PRECISIONS = ("training.dtype", "training.mixed_precision")
_ATTENTIONS = {"fa2": "flash_attention_2", "fa3": "flash_attention_3", "disabled": "eager", "off": "eager"}
_BACKENDS = {"bnb": "bitsandbytes"}
_OF_ITS_OWN = ("bf16", "fp16", "gradient_checkpointing", "use_liger_kernel", "ddp_find_unused_parameters")
"""Arguments of the Trainer that it gives by itself."""
_OWN_OPTIMIZERS = ("use_galore", "use_badam", "use_apollo", "use_adam_mini", "use_muon")


def recognises(document: Document) -> bool:
    """Whether a mapping is a training of LLaMA-Factory, by names that only it has."""
    value = document.value
    if not isinstance(value, dict) or "model_name_or_path" not in value:
        return False
    staged = isinstance(value.get("stage"), str) and value["stage"] in _OBJECTIVES
    own = [staged, value.get("finetuning_type") in _METHODS, "cutoff_len" in value, "template" in value]
    trains = bool(parse_flag(value.get("do_train"))) or "per_device_train_batch_size" in value
    return trains and (own[0] or own[1]) and sum(own) >= 2


def read(document: Document) -> Configuration:
    """What the arguments decide."""
    sheet = Sheet(document)
    sheet.state("training.framework", "llama-factory")
    read_rows(sheet, _ARGUMENTS)
    for fact, default in _DEFAULTS.items():
        if not sheet.has(fact):
            sheet.state(f"training.{fact}", default)
    _objective(sheet)
    model = read_model(sheet, "model_name_or_path")
    _packing(sheet)
    _optimizer(sheet)
    _precision(sheet)
    read_arguments(sheet, complete=True)
    _attention(sheet)
    _checkpointing(sheet)
    _quantization(sheet, model)
    _adapter(sheet)
    _parallel(sheet)
    given = sorted({*(key for key in document.value if isinstance(key, str)), *_OF_ITS_OWN})
    sheet.default("training.calls.transformers.Seq2SeqTrainingArguments", given)
    return sheet.configuration()


def _at(sheet: Sheet, key: str) -> Keys | None:
    return (key,) if sheet.has(key) else None


def _objective(sheet: Sheet) -> None:
    stage = sheet.get("stage") or "sft"
    if not isinstance(stage, str) or stage not in _OBJECTIVES:
        sheet.leave_open("training.objective", ("stage",), f"not one of {', '.join(_OBJECTIVES)}")
        return
    preference = stage == "dpo" and sheet.get("pref_loss") == "orpo"
    sheet.state("training.objective", "orpo" if preference else _OBJECTIVES[stage], _at(sheet, "stage"))
    if stage != "ppo":
        sheet.state("training.padding_side", "right")


def _packing(sheet: Sheet) -> None:
    """Not given, sequences are packed for pretraining alone."""
    read_rows(sheet, rows("training.", FLAG, "packing=sft_packing", "packing"))
    if parse_flag(sheet.get("neat_packing")):
        sheet.state("training.packing", True, ("neat_packing",))
    elif not sheet.is_decided("training.packing") and sheet.is_stated("training.objective"):
        sheet.state("training.packing", sheet.fact("training.objective") == "pretrain")


def _optimizer(sheet: Sheet) -> None:
    own = next((each for each in _OWN_OPTIMIZERS if parse_flag(sheet.get(each))), None)
    if own:
        sheet.unknown("training.optimizer", f"{own} replaces the value", (own,))


def _precision(sheet: Sheet) -> None:
    """``pure_bf16`` keeps trained weights in bfloat16 without autocast; the others are autocast over float32.

    The weights are loaded in the same dtype up to 0.9.3 (but for ZeRO-3 and FSDP), from 0.9.4 in the checkpoint's own.
    """
    sheet.unknown(
        "training.load_dtype",
        ("releases up to 0.9.3 load the model in the dtype of the run, later releases in the model's own dtype"),
    )
    if is_left_open(sheet, _PRECISIONS, "pure_bf16", "bf16", "fp16", kind=FLAG, words=("auto",)):
        return
    for name, short, dtype in (
        ("pure_bf16", "no", "bfloat16"),
        ("bf16", "bf16", "bfloat16"),
        ("fp16", "fp16", "float16"),
    ):
        if parse_flag(sheet.get(name)):
            sheet.state("training.dtype", dtype, (name,))
            if name != "pure_bf16" or not parse_flag(sheet.get("bf16")):
                sheet.state("training.mixed_precision", short, (name,))
            else:
                sheet.state("training.mixed_precision", "bf16", ("bf16",))
            return
    sheet.unknown("training.dtype", "no precision is set, so it follows the model's own dtype")


def _attention(sheet: Sheet) -> None:
    """A truth value is how releases before 0.7 had it, and how YAML reads a bare ``off``."""
    given = sheet.get("flash_attn")
    if given is None or given == "auto":
        sheet.default("training.attention_rule", "default", _at(sheet, "flash_attn"))
    elif isinstance(given, bool):
        sheet.state("training.attention", "flash_attention_2" if given else "eager", ("flash_attn",))
    elif isinstance(given, str) and (name := _ATTENTIONS.get(given) or attention_name(given)):
        sheet.state("training.attention", name, ("flash_attn",))
    else:
        sheet.leave_open("training.attention", ("flash_attn",), ATTENTION.mismatch)


def _checkpointing(sheet: Sheet) -> None:
    """On unless it is disabled, reentrant unless told otherwise; the cache is off with it."""
    switch = "disable_gradient_checkpointing"
    if is_left_open(sheet, ["training.gradient_checkpointing"], switch, kind=FLAG):
        return
    disabled = bool(parse_flag(sheet.get(switch)))
    sheet.state("training.gradient_checkpointing", not disabled, _at(sheet, switch))
    if not disabled:
        sheet.state("training.gradient_checkpointing_kwargs.use_reentrant", True)
        sheet.state("training.use_cache", False)
        keys = "gradient_checkpointing_kwargs.use_reentrant=use_reentrant_gc"
        read_rows(sheet, rows("training.", FLAG, keys))


def _quantization(sheet: Sheet, model: str | None) -> None:
    """bitsandbytes by default, NF4 with double quantization, computing in the dtype of the run."""
    if is_left_open(sheet, ["training.quantization"], "quantization_bit"):
        return
    if sheet.get("quantization_bit") is None:
        state_unquantized(sheet, model)
        return
    prefix = "training.quantization."
    read_rows(sheet, rows(prefix, WHOLE, "bits=quantization_bit"))
    if is_left_open(sheet, [prefix + "method"], "quantization_method", kind=TEXT):
        return
    method = sheet.get("quantization_method") or "bitsandbytes"
    sheet.state(prefix + "method", _BACKENDS.get(method, method), _at(sheet, "quantization_method"))
    if sheet.fact(prefix + "method") != "bitsandbytes" or sheet.fact(prefix + "bits") != 4:
        return
    sheet.state(prefix + "type", "nf4")
    sheet.state(prefix + "double_quant", True)
    read_rows(sheet, rows(prefix, TEXT, "type=quantization_type"))
    read_rows(sheet, rows(prefix, FLAG, "double_quant=double_quantization"))
    dtype = sheet.fact("training.dtype")
    if dtype is not None:
        sheet.state(prefix + "compute_dtype", dtype, ("quantization_bit",))


def _adapter(sheet: Sheet) -> None:
    kind = sheet.get("finetuning_type") or "lora"
    if kind not in _METHODS:
        for fact in ("training.method", "training.lora"):
            sheet.leave_open(fact, ("finetuning_type",), f"not one of {', '.join(_METHODS)}")
        return
    if isinstance(named := sheet.get("adapter_name_or_path"), str):
        sheet.name("adapter", named.split(",")[0].strip())
    if kind != "lora":
        sheet.state("training.method", kind, ("finetuning_type",))
        sheet.state("training.lora", None, ("finetuning_type",))
        return
    dora = parse_flag(sheet.get("use_dora"))
    quantized = sheet.fact("training.quantization.bits") == 4
    sheet.state("training.method", "qlora" if quantized else "dora" if dora else "lora", _at(sheet, "finetuning_type"))
    sheet.state("training.lora.r", 8)
    read_rows(sheet, rows("training.lora.", NUMBER, "r=lora_rank", "lora_alpha"))
    read_rows(sheet, rows("training.lora.", FLAG, "use_dora", "use_rslora"))
    read_rows(sheet, rows("training.lora.", LABELS, "target_modules=lora_target"))
    if sheet.fact("training.lora.target_modules") == ["all"]:
        sheet.state("training.lora.target_modules", ["all-linear"], ("lora_target",))
    read_rows(sheet, rows("training.lora.", LABELS, "modules_to_save=additional_target"))
    if not sheet.get("additional_target"):
        if parse_flag(sheet.get("resize_vocab")):
            sheet.unknown(
                "training.lora.modules_to_save", "newer releases also train the resized embeddings", ("resize_vocab",)
            )
        else:
            sheet.state("training.lora.modules_to_save", None)


def _parallel(sheet: Sheet) -> None:
    if not read_deepspeed(sheet, ("deepspeed",)):
        sheet.state("training.deepspeed", None)
    read_fsdp(sheet)
