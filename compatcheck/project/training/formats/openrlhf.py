"""The flags of OpenRLHF's commands; it has no configuration in a file.

Sources: ``openrlhf/cli`` of 0.5.4, 0.8.11 and 0.10.4, https://github.com/OpenRLHF/OpenRLHF; the last sets
sections before the names.
"""

from __future__ import annotations

from compatcheck.environment import Location
from compatcheck.project.training._rows import read_model, read_rows, rows
from compatcheck.project.training._sheet import Sheet
from compatcheck.project.training._values import (
    ATTENTION,
    DTYPE,
    FLAG,
    NUMBER,
    WHOLE,
    parse_flag,
    parse_number,
    parse_whole,
)
from compatcheck.project.training.document import Configuration, Document, Keys

TITLE = "the flags of OpenRLHF"
SUFFIXES: tuple[str, ...] = ()

_SECTIONS = ("ds", "model", "data", "actor", "train", "vllm")
_ARGUMENTS = (
    *rows("training.", FLAG, "packing=packing_samples", "gradient_checkpointing", "use_liger_kernel"),
    *rows("training.", FLAG, "gradient_checkpointing=gradient_checkpointing_enable"),
    *rows("training.", WHOLE, "per_device_train_batch_size=micro_train_batch_size", "max_length=max_len"),
    *rows("training.", WHOLE, "per_device_train_batch_size=micro_batch_size"),
    *rows("training.", NUMBER, "num_train_epochs=max_epochs", "max_grad_norm=max_norm", "learning_rate"),
    *rows("training.", WHOLE, "deepspeed.zero_stage=zero_stage"),
    *rows("training.", ATTENTION, "attention=attn_implementation"),
)


def recognises(document: Document) -> bool:
    """No document: `launch_script` hands over what stands in a command."""
    return False


def read(document: Document) -> Configuration:
    """What the flags decide."""
    flags = {_bare_name(name): value for name, value in document.value.items()}
    places: dict[Keys, Location] = {(_bare_name(str(keys[0])),): place for keys, place in document.origins.items()}
    sheet = Sheet(document._replace(value=flags, origins=places))
    sheet.state("training.framework", "openrlhf")
    read_rows(sheet, _ARGUMENTS)
    if parse_flag(sheet.get("flash_attn")):
        sheet.state("training.attention", "flash_attention_2", ("flash_attn",))
    if parse_flag(sheet.get("bf16")):
        sheet.state("training.dtype", "bfloat16", ("bf16",))
    sheet.read(DTYPE, "training.dtype", "param_dtype")
    if parse_flag(sheet.get("adam_offload")):
        sheet.state("training.deepspeed.offload_optimizer_device", "cpu", ("adam_offload",))
    _method(sheet)
    engines = parse_number(sheet.get("vllm_num_engines"))
    if engines is not None:
        sheet.state("training.use_vllm", engines > 0, ("vllm_num_engines",))
    read_model(sheet, "pretrain" if sheet.has("pretrain") else "model_name_or_path")
    each, nodes = (parse_whole(sheet.get(f"actor_num_{name}")) for name in ("gpus_per_node", "nodes"))
    if each and nodes:
        sheet.state("training.world_size", each * nodes, ("actor_num_gpus_per_node",))
    return sheet.configuration()


def _method(sheet: Sheet) -> None:
    """Without a rank above 0 all weights are trained."""
    rank, key = parse_number(sheet.get("lora_rank")), ("lora_rank",)
    if not rank:
        sheet.state("training.method", "full", key if sheet.has(*key) else None)
        sheet.state("training.lora", None)
        return
    quantised = bool(parse_flag(sheet.get("load_in_4bit")))
    sheet.state("training.method", "qlora" if quantised else "lora", key)
    if quantised:
        sheet.state("training.quantization.bits", 4, ("load_in_4bit",))
        sheet.state("training.quantization.method", "bitsandbytes", ("load_in_4bit",))
    sheet.state("training.lora.r", rank, key)
    sheet.read(NUMBER, "training.lora.lora_alpha", "lora_alpha")


def _bare_name(name: str) -> str:
    """``ds.zero_stage`` as ``zero_stage``, ``ds.lora.rank`` as ``lora_rank``."""
    section, dot, rest = name.partition(".")
    if not dot:
        return name
    joined = rest.replace(".", "_")
    kept = section in _SECTIONS and not joined.startswith(("num_nodes", "num_gpus", "num_engines"))
    return joined if kept else f"{section}_{joined}"
