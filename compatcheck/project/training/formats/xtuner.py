"""XTuner's Python configurations, read from their syntax tree and never run; XTuner 0.1 and 0.2.

Sources: ``xtuner/tools/train.py`` and ``xtuner/model/sft.py`` of 0.1.0 to 0.2.0, https://github.com/InternLM/xtuner.
The configurations of XTuner 1.0 are programs and belong to no reader.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from compatcheck.errors import InputError
from compatcheck.project.python_values import Open, Reference
from compatcheck.project.training._python_config import evaluated
from compatcheck.project.training._rows import OPTIMIZERS, Row, read_model, read_rows, rows, state_unquantized
from compatcheck.project.training._sheet import Sheet
from compatcheck.project.training._values import (
    ATTENTION,
    DTYPE,
    FLAG,
    LABELS,
    NUMBER,
    SIDE,
    TEXT,
    WHOLE,
    Kind,
    dtype_name,
)
from compatcheck.project.training.document import Configuration, Document, Keys

TITLE = "an XTuner configuration"
SUFFIXES = (".py",)
MARKS = ("xtuner", "_base_", "read_base")

_PARTS = frozenset(
    ("model", "optim_wrapper", "train_dataloader", "train_cfg", "param_scheduler", "default_hooks", "custom_hooks")
    + ("strategy", "training_args", "trainer", "train_dataset", "tokenizer", "randomness")
)
_OBJECTIVES = {"SupervisedFinetune": "sft", "DPO": "dpo", "ORPO": "orpo", "RewardModel": "reward"}
_RUN = (
    *rows("training.", WHOLE, "per_device_train_batch_size=train_dataloader.batch_size"),
    *rows("training.", NUMBER, "num_train_epochs=train_cfg.max_epochs", "max_steps=train_cfg.max_iters"),
    *rows("training.", NUMBER, "learning_rate=optim_wrapper.optimizer.lr"),
    *rows("training.", NUMBER, "max_grad_norm=optim_wrapper.clip_grad.max_norm"),
    *rows("training.", WHOLE, "gradient_accumulation_steps=optim_wrapper.accumulative_counts"),
    *rows("training.", SIDE, "padding_side=tokenizer.padding_side"),
)
_TRAINER = (
    *rows("training.", WHOLE, "per_device_train_batch_size", "gradient_accumulation_steps", below=("training_args",)),
    *rows("training.", NUMBER, "learning_rate", "max_grad_norm", "num_train_epochs", below=("training_args",)),
    *rows("training.", WHOLE, "max_steps", "warmup_steps", below=("training_args",)),
    *rows("training.", TEXT, "optimizer=optim", below=("training_args",)),
    *rows("training.", FLAG, "gradient_checkpointing", below=("training_args",)),
    *rows("training.", SIDE, "padding_side=tokenizer.padding_side"),
)
_RULE = "XTuner uses bfloat16 if the GPUs support it, else float16"
_BY_LAUNCHER = f"{{}} in this file, and with --deepspeed {_RULE}"
_FLASH = "XTuner uses flash_attention_2 if flash-attn is installed"
_NOT_SAID = "XTuner reads the value from its command line, --deepspeed"


def recognises(document: Document) -> bool:
    """Whether a Python file assigns what XTuner builds, itself or in the files that it is based on."""
    if not isinstance(document.value, ast.Module):
        return False
    if "xtuner.v1" in document.text:
        return False
    names = set(_assigned_names(document.value.body))
    if "xtuner" in document.text:
        return len(names & _PARTS) >= 2 or (_is_based(document) and bool(names & _PARTS))
    if not _is_based(document):
        return False
    try:
        config = evaluated(document)
    except InputError:
        return False
    return _builds_xtuner(config.value) and len(_PARTS & config.value.keys()) >= 2


def _assigned_names(body: list[ast.stmt]) -> Iterator[str]:
    for statement in body:
        targets = statement.targets if isinstance(statement, ast.Assign) else ()
        yield from (each.id for each in targets if isinstance(each, ast.Name))


def _is_based(document: Document) -> bool:
    return "_base_" in _assigned_names(document.value.body) or "read_base" in document.text


def _builds_xtuner(value: dict[str, Any]) -> bool:
    """Whether the model, the trainer or the data is one of XTuner's own classes."""
    kinds = [part.get("type") for part in value.values() if isinstance(part, dict)]
    return any(isinstance(kind, Reference) and kind.name.startswith("xtuner.") for kind in kinds)


def read(document: Document) -> Configuration:
    """What the configuration decides, whichever way it is launched.

    The dtype then hangs on ``--deepspeed``, so it stays unknown with a reason. Raises `InputError` where the file
    cannot be merged with its bases or a value has a wrong type.
    """
    sheet = Sheet(evaluated(document))
    _sections(sheet)
    if not _has_deepspeed(sheet):
        sheet.unknown("training.deepspeed", _NOT_SAID)
        _precision(sheet)
    return sheet.configuration()


def launched(document: Document, deepspeed: str | None) -> Configuration:
    """What the configuration decides when it is launched with ``--deepspeed``, or for ``None`` without.

    With DeepSpeed the dtype stays unknown until its configuration and the GPUs are known.
    """
    sheet = Sheet(evaluated(document))
    _sections(sheet)
    if deepspeed is not None:
        sheet.name("deepspeed", deepspeed)
        sheet.unknown("training.deepspeed", f"{deepspeed} decides")
        sheet.unknown("training.dtype", _RULE)
        if sheet.is_stated("training.quantization.compute_dtype") and "zero3" in deepspeed:
            sheet.unknown("training.quantization.compute_dtype", f"with ZeRO-3 {_RULE}")
    elif not _has_deepspeed(sheet):
        sheet.state("training.deepspeed", None)
        _amp(sheet)
    return sheet.configuration()


def _sections(sheet: Sheet) -> None:
    sheet.state("training.framework", "xtuner")
    trainer = sheet.get("framework") == "huggingface"
    read_rows(sheet, _TRAINER if trainer else _RUN)
    model: Keys = ("model",) if trainer else ("model", "llm")
    if not trainer:
        _optim_wrapper(sheet)
        _objective(sheet)
    _model(sheet, model)
    _adapter(sheet, ("lora",) if trainer else ("model", "lora"))
    _data(sheet)
    _strategy(sheet, trainer)


def _precision(sheet: Sheet) -> None:
    """Without a launcher's word the dtype is open, unless both ways lead to the same."""
    if sheet.get("framework") == "huggingface":
        _trainer_precision(sheet)
        return
    given = sheet.get("optim_wrapper", "dtype")
    named = given if isinstance(given, str) else "float32"
    sheet.unknown("training.dtype", _BY_LAUNCHER.format(named), ("optim_wrapper", "dtype"))


def _trainer_precision(sheet: Sheet) -> None:
    for name, dtype in (("bf16", "bfloat16"), ("fp16", "float16")):
        if sheet.get("training_args", name) is True:
            sheet.state("training.dtype", dtype, ("training_args", name))
            sheet.state("training.mixed_precision", name, ("training_args", name))
            return
    sheet.unknown("training.dtype", "neither fp16 nor bf16 is on in training_args")


def _amp(sheet: Sheet) -> None:
    """Without DeepSpeed the optimizer's wrapper decides: autocast to its dtype, else float32."""
    if sheet.get("framework") == "huggingface":
        _trainer_precision(sheet)
        return
    kind = sheet.get("optim_wrapper", "type")
    name = kind.name.rpartition(".")[2] if isinstance(kind, Reference) else kind
    if name == "AmpOptimWrapper" and sheet.has("optim_wrapper", "dtype"):
        read_rows(sheet, [Row("training.dtype", ("optim_wrapper", "dtype"), DTYPE)])
        if sheet.is_stated("training.dtype"):
            short = {"float16": "fp16", "bfloat16": "bf16"}.get(sheet.fact("training.dtype"), "no")
            sheet.state("training.mixed_precision", short, ("optim_wrapper", "dtype"))
    elif name == "OptimWrapper":
        sheet.state("training.dtype", "float32", ("optim_wrapper", "type"))
        sheet.state("training.mixed_precision", "no", ("optim_wrapper", "type"))
    else:
        sheet.unknown("training.dtype", "optim_wrapper sets no dtype")


def _optim_wrapper(sheet: Sheet) -> None:
    if sheet.has("optim_wrapper", "type") and not sheet.has("optim_wrapper", "accumulative_counts"):
        sheet.state("training.gradient_accumulation_steps", 1)
    kind = sheet.get("optim_wrapper", "optimizer", "type")
    if isinstance(kind, Reference):
        place = ("optim_wrapper", "optimizer", "type")
        sheet.state("training.optimizer", OPTIMIZERS.get(kind.name, kind.name.rpartition(".")[2]), place)


def _objective(sheet: Sheet) -> None:
    """XTuner's own models checkpoint their activations unless told not to."""
    kind = sheet.get("model", "type")
    name = kind.name.rpartition(".")[2] if isinstance(kind, Reference) else ""
    if name in _OBJECTIVES:
        pretrains = any(_is_named(each, "pretrain_map_fn") for each in _descendants(sheet.get("train_dataloader")))
        objective = "pretrain" if pretrains and name == "SupervisedFinetune" else _OBJECTIVES[name]
        sheet.state("training.objective", objective, ("model", "type"))
    if name in _OBJECTIVES or name == "LLaVAModel":
        sheet.state("training.gradient_checkpointing", True)
    read_rows(sheet, rows("training.", FLAG, "gradient_checkpointing=model.use_activation_checkpointing"))


def _model(sheet: Sheet, model: Keys) -> None:
    name = read_model(sheet, *model, "pretrained_model_name_or_path")
    if sheet.get("use_varlen_attn") is True or sheet.get("model", "use_varlen_attn") is True:
        key: Keys = ("use_varlen_attn",) if sheet.get("use_varlen_attn") is True else ("model", "use_varlen_attn")
        sheet.state("training.attention", "flash_attention_2", key)
    read_rows(sheet, [Row("training.attention", (*model, "attn_implementation"), ATTENTION)])
    given = sheet.get(*model, "torch_dtype")
    named = dtype_name(given.name) if isinstance(given, Reference) else dtype_name(given)
    own = model == ("model", "llm")
    if sheet.fact("training.attention") in ("eager", "sdpa") or not own:
        read_rows(sheet, [Row("training.load_dtype", (*model, "torch_dtype"), DTYPE)])
    elif named:
        why = f"the file sets {named}, but XTuner uses what the GPUs support if flash-attn is installed"
        sheet.unknown("training.load_dtype", why, (*model, "torch_dtype"))
    if own and not sheet.is_stated("training.attention"):
        sheet.unknown("training.attention", _FLASH)
    if isinstance(sheet.get(*model), dict):
        _quantization(sheet, model, name)


def _quantization(sheet: Sheet, model: Keys, name: str | None) -> None:
    section: Keys = (*model, "quantization_config")
    if not isinstance(sheet.get(*section), dict):
        section = model
    bits = next((each for each in (4, 8) if sheet.get(*section, f"load_in_{each}bit") is True), None)
    if bits is None:
        if sheet.has(*model, "quantization_config") and sheet.get(*model, "quantization_config") is not None:
            sheet.unknown(
                "training.quantization", "the quantization method is not read here", (*model, "quantization_config")
            )
        else:
            state_unquantized(sheet, name)
        return
    place = (*section, f"load_in_{bits}bit")
    sheet.state("training.quantization.bits", bits, place)
    sheet.state("training.quantization.method", "bitsandbytes", place)
    if bits == 4 and section != model:
        sheet.state("training.quantization.type", "fp4")
        sheet.state("training.quantization.compute_dtype", "float32")
        sheet.state("training.quantization.double_quant", False)
        names = "type=bnb_4bit_quant_type", "double_quant=bnb_4bit_use_double_quant"
        read_rows(sheet, rows("training.quantization.", TEXT, names[0], below=section))
        read_rows(sheet, rows("training.quantization.", FLAG, names[1], below=section))
        compute = "compute_dtype=bnb_4bit_compute_dtype"
        read_rows(sheet, rows("training.quantization.", DTYPE, compute, below=section))


def _adapter(sheet: Sheet, keys: Keys) -> None:
    """With LoRA XTuner prepares the model for k-bit training, quantized or not."""
    if isinstance(sheet.get("model", "llm_lora"), dict):
        keys = ("model", "llm_lora")
    value = sheet.get(*keys)
    if isinstance(value, Open) or not isinstance(sheet.get("model"), dict):
        return
    if not isinstance(value, dict):
        frozen = sheet.get("model", "freeze_llm") is True
        sheet.state("training.method", "freeze" if frozen else "full")
        sheet.state("training.lora", None)
        return
    quantized = sheet.fact("training.quantization.bits") == 4
    sheet.state("training.method", "qlora" if quantized else "dora" if value.get("use_dora") is True else "lora", keys)
    sheet.state("training.kbit_prepared", True, keys)
    read_rows(sheet, rows("training.lora.", NUMBER, "r", "lora_alpha", below=keys))
    read_rows(sheet, rows("training.lora.", FLAG, "use_dora", "use_rslora", below=keys))
    read_rows(sheet, rows("training.lora.", TEXT, "bias", below=keys))
    sheet.state("training.lora.target_modules", ["all-linear"])
    sheet.state("training.lora.modules_to_save", None)
    read_rows(sheet, rows("training.lora.", LABELS, "target_modules", "modules_to_save", below=keys))


def _data(sheet: Sheet) -> None:
    """Lengths and packing as the data set of the run has them, where all of its parts agree."""
    top: Keys = ("train_dataset",) if sheet.get("framework") == "huggingface" else ("train_dataloader", "dataset")
    sought: tuple[tuple[str, str, Kind[Any]], ...]
    sought = (("max_length", "max_length", WHOLE), ("packing", "pack_to_max_length", FLAG))
    for fact, name, kind in sought:
        places = list(_places(sheet.get(*top), top, name))
        values = [sheet.get(*place) for place in places]
        if values and all(value == values[0] for value in values):
            read_rows(sheet, [Row(f"training.{fact}", places[0], kind)])
        elif values:
            sheet.unknown(f"training.{fact}", "the parts of the data set have different values", places[0])
    for place in _places(sheet.get(*top), top, "template"):
        value = sheet.get(*place)
        if isinstance(value, Reference) and ".PROMPT_TEMPLATE." in value.name:
            sheet.state("training.template", value.name.rpartition(".")[2], place)


def _has_deepspeed(sheet: Sheet) -> bool:
    config = sheet.configuration()
    return "deepspeed" in config.names or "deepspeed" in config.inlined or "training.deepspeed" in config.facts.reasons


def _strategy(sheet: Sheet, trainer: bool) -> None:
    """DeepSpeed that the file itself brings: mmengine's strategy, or the Trainer's argument."""
    keys: Keys = ("training_args", "deepspeed") if trainer else ("strategy", "config")
    if isinstance(sheet.get("strategy", "zero_optimization"), dict):
        keys = ("strategy",)
    value = sheet.get(*keys)
    if isinstance(value, str):
        sheet.name("deepspeed", value)
        sheet.unknown("training.deepspeed", f"{value} decides", keys)
    elif isinstance(value, dict) and not any(isinstance(each, Open) for each in _descendants(value)):
        sheet.inline("deepspeed", keys, value)
    elif value is not None:
        sheet.unknown("training.deepspeed", "the value is computed by code, which is not run", keys)
    if sheet.get("resume") is True:
        sheet.state("training.resume_from_checkpoint", True, ("resume",))


def _descendants(value: object) -> Iterator[Any]:
    yield value
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for each in inner:
        yield from _descendants(each)


def _places(value: object, keys: Keys, name: str) -> Iterator[Keys]:
    """Where a key of this name is given, anywhere below."""
    if isinstance(value, dict):
        for key, each in value.items():
            if key == name and each is not None and not isinstance(each, dict):
                yield (*keys, key)
            else:
                yield from _places(each, (*keys, key), name)
    elif isinstance(value, list):
        for i, each in enumerate(value):
            yield from _places(each, (*keys, i), name)


def _is_named(value: object, name: str) -> bool:
    return isinstance(value, Reference) and value.name.endswith(f".{name}")
