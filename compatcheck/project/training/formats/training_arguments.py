"""The ``TrainingArguments`` of transformers and the configurations TRL builds on them, as YAML, JSON or flags.

Fields and defaults: ``training_args.py`` of transformers 4.30 to 5.x; ``trainer/*_config.py`` of TRL for lengths and
packing, and ``trainer/model_config.py`` for the model, quantisation and LoRA. Recipes of the alignment handbook and the
``training_args`` and ``peft_config`` sections of GLM-4's own demo are the same fields.
A ``training_args.bin`` is a pickle, which can run anything when it is loaded: it is never read.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from compatcheck.language import marked
from compatcheck.project.training._parallel import read_deepspeed, read_fsdp
from compatcheck.project.training._rows import is_left_open, rows
from compatcheck.project.training._sheet import Sheet
from compatcheck.project.training._trainer_arguments import read_arguments
from compatcheck.project.training._values import (
    ATTENTION,
    DTYPE,
    FLAG,
    LABELS,
    LOGGERS,
    NUMBER,
    RESUME,
    TEXT,
    WHOLE,
    attention_name,
    dtype_name,
    parse_flag,
)
from compatcheck.project.training.document import Configuration, Document, Keys

TITLE = "a file of TrainingArguments (transformers or TRL)"
SUFFIXES = (".yaml", ".yml", ".json")
ROLE = "config"
MARKS = ("per_device_train_batch_size", "gradient_accumulation_steps", "training_args")
NAMED_AS = ("training_args",)
GENERAL = True
"""What a reader of one framework recognises as well belongs to that reader."""

LAUNCHER_DECIDES = marked("no DeepSpeed JSON is set, but accelerate may bring its own")
"""Why DeepSpeed is unknown where the arguments are known whole and bring none."""

_SURE = ("per_device_train_batch_size", "gradient_accumulation_steps")
_USUAL = frozenset(
    (
        *("output_dir", "learning_rate", "num_train_epochs", "max_steps", "lr_scheduler_type", "warmup_ratio"),
        *("warmup_steps", "logging_steps", "save_steps", "save_strategy", "eval_strategy", "evaluation_strategy"),
        *("bf16", "fp16", "gradient_checkpointing", "optim", "report_to", "deepspeed", "fsdp", "max_grad_norm"),
        *("per_device_eval_batch_size", "weight_decay", "gradient_accumulation_steps"),
    )
)
_TRL = frozenset(
    (
        *("use_peft", "max_prompt_length", "packing", "padding_free", "beta", "dataset_mixture", "dataset_mixer"),
        *("num_generations", "dataset_text_field", "completion_only_loss", "assistant_only_loss"),
        "chat_template_path",
    )
)
_OF_SFT = frozenset(("packing", "dataset_text_field", "completion_only_loss", "assistant_only_loss"))
"""What only the arguments of TRL's SFTTrainer have, in one release or another."""
ANY_PLACES = -1
"""Nobody can tell which arguments are given by place."""
_ARGUMENTS = (
    *rows("training.", WHOLE, "per_device_train_batch_size", "per_device_eval_batch_size"),
    *rows("training.", WHOLE, "gradient_accumulation_steps", "steps_per_generation"),
    *rows("training.", TEXT, "packing_strategy", "loss_type"),
    *rows("training.", NUMBER, "learning_rate", "max_grad_norm", "num_train_epochs", "max_steps", "warmup_steps"),
    *rows("training.", NUMBER, "neftune_noise_alpha"),
    *rows("training.", FLAG, "gradient_checkpointing", "group_by_length", "torch_compile", "use_liger_kernel"),
    *rows("training.", FLAG, "use_liger_kernel=use_liger", "save_safetensors", "tf32", "packing", "padding_free"),
    *rows("training.", FLAG, "use_cache", "predict_with_generate", "use_vllm", "ddp_find_unused_parameters"),
    *rows("training.", FLAG, "average_tokens_across_devices", "deterministic=full_determinism"),
    *rows("training.", LOGGERS, "report_to"),
    *rows("training.", RESUME, "resume_from_checkpoint"),
    *rows("training.sampling.", NUMBER, "temperature", "top_p", "top_k", "min_p", "repetition_penalty"),
    *rows("training.sampling.", FLAG, "importance_correction=vllm_importance_sampling_correction"),
)
_ALWAYS = {
    "gradient_accumulation_steps": 1,
    "per_device_train_batch_size": 8,
    "max_grad_norm": 1.0,
    "ddp_find_unused_parameters": None,
}
_LENGTHS = ("max_length", "max_seq_length")
_ATTENTIONS = ("attn_implementation", "_attn_implementation", "use_flash_attention_2", "model_init_kwargs")
OBJECTIVES = ("sft", "dpo", "kto", "orpo", "grpo", "ppo", "reward", "rloo", "gkd")


def recognises(document: Document) -> bool:
    """Whether a mapping holds the arguments of the Trainer, by names that other formats do not share."""
    value = document.value
    if not isinstance(value, dict):
        return False
    names = set(_all_names(value))
    return any(sure in names for sure in _SURE) and len(names & _USUAL) >= 3


def read(document: Document, framework: str | None = None, *, complete: bool = False) -> Configuration:
    """What the arguments decide; a default is stated where every release shares it.

    ``framework`` is known where the arguments come from a command line, and ``complete`` says that no other code gives
    any.
    """
    sheet = Sheet(document)
    sections = ("training_args",) if isinstance(sheet.get("training_args"), dict) else ()
    if framework == "trl" and not any(sheet.has(name) for name in _ATTENTIONS):
        sheet.default("training.attention_rule", "default")
    framework = framework or ("trl" if _TRL & set(_all_names(document.value)) and not sections else "transformers")
    complete = complete or bool(sections)
    _arguments(sheet, framework, sections, complete)
    _model(sheet, sections)
    _quantization(sheet)
    _lora(sheet)
    _asks(sheet, framework, sections, complete)
    if complete and framework == "transformers":
        sheet.default("training.calls.transformers.Seq2SeqTrainingArguments", sorted(_all_names(document.value)))
    return sheet.configuration()


def _asks(sheet: Sheet, framework: str, sections: Keys, complete: bool) -> None:
    """What the names of the arguments ask of the classes that take them, each in the file where it is given."""
    given = sheet.get(*sections) if sections else sheet.document.value
    places = {name: sheet.document.place((*sections, name)) for name in given if _is_word(name)}
    classes = ["transformers.TrainingArguments"]
    if framework == "trl" and _OF_SFT & places.keys():
        classes.insert(0, "trl.SFTConfig")
    asks = [
        {
            "kind": "call",
            "target": target,
            "places": ANY_PLACES,
            "keywords": [name for name, at in places.items() if at.file == file],
            "lines": [at.line or 1 for at in places.values() if at.file == file],
            "file": file,
            "line": 1,
            **({} if complete else {"is_possible": True}),
        }
        for target in classes
        for file in dict.fromkeys(at.file for at in places.values())
    ]
    if asks:
        sheet.state("training.asks", asks)


def _is_word(name: object) -> bool:
    return isinstance(name, str) and name.isidentifier()


def read_call(document: Document, framework: str) -> Configuration:
    """What a call that makes the arguments decides, where other code makes the model and its adapters."""
    sheet = Sheet(document)
    _arguments(sheet, framework, (), not document.partial)
    _model(sheet)
    return sheet.configuration()


def read_model_config(document: Document) -> Configuration:
    """What TRL's ``ModelConfig`` says of the model, its quantization and its adapters."""
    sheet = Sheet(document)
    sheet.state("training.framework", "trl")
    _model(sheet)
    _quantization(sheet)
    _lora(sheet)
    return sheet.configuration()


def _arguments(sheet: Sheet, framework: str, sections: Keys, complete: bool) -> None:
    sheet.state("training.framework", framework)
    for row in _ARGUMENTS:
        sheet.read(row.kind, row.fact, *sections, *row.keys)
    for fact, default in _ALWAYS.items():
        if not sheet.has(*sections, fact):
            sheet.default(f"training.{fact}", default)
    _precision(sheet, sections, framework)
    read_arguments(sheet, sections, complete=complete or _is_trl_file(sheet))
    _optimizer(sheet, sections, complete)
    _checkpointing(sheet, sections)
    _parallel(sheet, sections)
    _data(sheet)
    _sampling(sheet, sections)


def _sampling(sheet: Sheet, sections: Keys) -> None:
    """What an online trainer of TRL that generates with vllm does where it is not told, in every release."""
    if sheet.fact("training.use_vllm") is not True:
        return
    for name, default in (("top_p", 1.0), ("min_p", None), ("repetition_penalty", 1.0)):
        if not sheet.has(*sections, name):
            sheet.default(f"training.sampling.{name}", default)
    if not sheet.has(*sections, "vllm_importance_sampling_correction"):
        sheet.default("training.sampling.importance_correction", None)


def _is_trl_file(sheet: Sheet) -> bool:
    return sheet.fact("training.framework") == "trl" and sheet.document.path.endswith(SUFFIXES)


def _all_names(value: Mapping[str, object]) -> list[str]:
    inner = value.get("training_args")
    return [*value, *(inner if isinstance(inner, dict) else ())]


def _precision(sheet: Sheet, sections: Keys, framework: str) -> None:
    """The dtype of autocast, float32 where there is none.

    A precision that is on wins over what accelerate was told; one that is off, or not spoken of, leaves it to that.
    """
    given = {name: parse_flag(sheet.get(*sections, name)) for name in ("fp16", "bf16")}
    for name, dtype in (("fp16", "float16"), ("bf16", "bfloat16")):
        if given[name]:
            sheet.state("training.mixed_precision", name, (*sections, name))
            sheet.state("training.dtype", dtype, (*sections, name))
            return
    names = [(*sections, name) for name in given]
    if is_left_open(sheet, ("training.mixed_precision", "training.dtype"), *names, kind=FLAG):
        return
    if given["bf16"] is False and (given["fp16"] is False or framework == "trl"):
        sheet.state("training.mixed_precision", "no", (*sections, "bf16"))
        sheet.state("training.dtype", "float32", (*sections, "bf16"))
        return
    why = marked("neither fp16 nor bf16 is on here, but accelerate's configuration may turn one on")
    if framework == "trl":
        why = marked("bf16 is not set, and newer TRL releases turn it on by default")
    sheet.unknown("training.mixed_precision", sheet.document.partial or why)
    sheet.unknown("training.dtype", sheet.document.partial or why)


def _optimizer(sheet: Sheet, sections: Keys, complete: bool) -> None:
    is_given = sheet.read(TEXT, "training.optimizer", *sections, "optim") is not None or sheet.has(*sections, "optim")
    if not is_given and (sheet.document.partial or not complete):
        why = marked("optim is not set, and its default changed between releases")
        sheet.unknown("training.optimizer", sheet.document.partial or why)


def _checkpointing(sheet: Sheet, sections: Keys) -> None:
    if sheet.has(*sections, "activation_checkpointing"):
        sheet.read(FLAG, "training.gradient_checkpointing", *sections, "activation_checkpointing")
    section, options = (
        (*sections, "gradient_checkpointing_kwargs"),
        sheet.get(*sections, "gradient_checkpointing_kwargs"),
    )
    if isinstance(options, str):
        options = _json(options)
    reentrant = parse_flag(options.get("use_reentrant")) if isinstance(options, dict) else None
    if reentrant is not None:
        sheet.state("training.gradient_checkpointing_kwargs.use_reentrant", reentrant, (*section, "use_reentrant"))
    elif options is None:
        sheet.default("training.gradient_checkpointing_kwargs.use_reentrant", None)


def _parallel(sheet: Sheet, sections: Keys) -> None:
    """DeepSpeed and FSDP, named or written out; without either, accelerate may still bring one of them, never both."""
    brought = read_deepspeed(sheet, (*sections, "deepspeed"))
    if not brought:
        sheet.unknown("training.deepspeed", sheet.document.partial or LAUNCHER_DECIDES)
    if read_fsdp(sheet, sections) and not brought:
        sheet.state("training.deepspeed", None, (*sections, "fsdp"))


def _model(sheet: Sheet, sections: Keys = ()) -> None:
    options = sheet.get(*sections, "model_init_kwargs")
    inits: Keys = (*sections, "model_init_kwargs") if isinstance(options, dict) else ()
    for keys in ((), inits):
        for name in ("attn_implementation", "_attn_implementation"):
            if attention_name(sheet.get(*keys, name)):
                sheet.read(ATTENTION, "training.attention", *keys, name)
        if parse_flag(sheet.get(*keys, "use_flash_attention_2")) and not sheet.is_stated("training.attention"):
            sheet.state("training.attention", "flash_attention_2", (*keys, "use_flash_attention_2"))
        for name in ("torch_dtype", "dtype"):
            if dtype_name(sheet.get(*keys, name)):
                sheet.read(DTYPE, "training.load_dtype", *keys, name)
            elif sheet.get(*keys, name) == "auto":
                sheet.unknown("training.load_dtype", "the checkpoint's own dtype", (*keys, name))
    for name in ("model_name_or_path", "model_id_or_path"):
        sheet.name("model", sheet.get(name))


def _quantization(sheet: Sheet) -> None:
    if is_left_open(sheet, ["training.quantization"], "load_in_4bit", "load_in_8bit", kind=FLAG):
        return
    bits = [number for number in (4, 8) if parse_flag(sheet.get(f"load_in_{number}bit"))]
    if not bits:
        if sheet.has("load_in_4bit") or sheet.fact("training.framework") == "trl":
            sheet.default("training.quantization", None)
        return
    sheet.state("training.quantization.bits", bits[0], (f"load_in_{bits[0]}bit",))
    sheet.state("training.quantization.method", "bitsandbytes", (f"load_in_{bits[0]}bit",))
    if bits == [8]:
        return
    sheet.read(TEXT, "training.quantization.type", "bnb_4bit_quant_type")
    for name in ("use_bnb_nested_quant", "bnb_4bit_use_double_quant"):
        sheet.read(FLAG, "training.quantization.double_quant", name)
    sheet.read(TEXT, "training.quantization.quant_storage", "bnb_4bit_quant_storage")
    if sheet.read(DTYPE, "training.quantization.compute_dtype", "bnb_4bit_compute_dtype") is None:
        load = sheet.fact("training.load_dtype")
        if load is not None and sheet.fact("training.framework") == "trl":
            key = "torch_dtype" if sheet.has("torch_dtype") else "dtype"
            sheet.state("training.quantization.compute_dtype", load, (key,))


def _lora(sheet: Sheet) -> None:
    """TRL's ``lora_*`` behind ``use_peft``, or a section in the words of PEFT itself."""
    section = sheet.get("peft_config")
    keys: Keys = ()
    prefix = ""
    if isinstance(section, dict) and str(section.get("peft_type", "LORA")).upper() == "LORA":
        keys = ("peft_config",)
    elif parse_flag(sheet.get("use_peft")):
        prefix = "lora_"
    else:
        if sheet.fact("training.framework") == "trl" and not isinstance(section, dict):
            sheet.default("training.method", "full")
            sheet.default("training.lora", None)
        return
    quantised = sheet.is_stated("training.quantization.bits")
    sheet.state("training.method", "qlora" if quantised else "lora", keys or ("use_peft",))
    sheet.read(NUMBER, "training.lora.r", *keys, prefix + "r")
    sheet.read(NUMBER, "training.lora.lora_alpha", *keys, "lora_alpha")
    sheet.read(LABELS, "training.lora.target_modules", *keys, prefix + "target_modules")
    sheet.read(LABELS, "training.lora.modules_to_save", *keys, prefix + "modules_to_save")
    if not sheet.has(*keys, prefix + "modules_to_save"):
        sheet.state("training.lora.modules_to_save", None)
    for name in ("use_dora", "use_rslora"):
        sheet.read(FLAG, f"training.lora.{name}", *keys, name)


def _data(sheet: Sheet) -> None:
    for name in reversed(_LENGTHS):
        sheet.read(NUMBER, "training.max_length", name)
    named = sheet.get("objective") or sheet.get("trainer_type")
    if isinstance(named, str) and named.lower() in OBJECTIVES:
        sheet.state("training.objective", named.lower(), ("objective" if sheet.has("objective") else "trainer_type",))


def _json(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
