"""The YAML that ``accelerate config`` writes: processes, precision, and its DeepSpeed, FSDP and dynamo sections.

Keys: ``commands/config/config_args.py`` and ``commands/launch.py`` of accelerate 0.20 to 1.15; what its DeepSpeed
section becomes: ``DeepSpeedPlugin`` in ``utils/dataclasses.py``.
"""

from __future__ import annotations

from typing import Any

from compatcheck.environment import Location
from compatcheck.project.training._contradiction import FACT as CONTRADICTIONS
from compatcheck.project.training._contradiction import Setting, contradiction
from compatcheck.project.training._parallel import read_fsdp_section
from compatcheck.project.training._rows import is_left_open
from compatcheck.project.training._sheet import Sheet
from compatcheck.project.training._values import FLAG, NUMBER, parse_number
from compatcheck.project.training.document import Configuration, Document, Keys

TITLE = "an accelerate config"
SUFFIXES = (".yaml", ".yml", ".json")
ROLE = "accelerate"
MARKS = ("compute_environment", "distributed_type")
NAMED_AS = ("accelerate_config", "default_config")

_DTYPES = {"bf16": "bfloat16", "fp16": "float16", "no": "float32"}
_ONE_PROCESS = ("NO",)
_REPEATED = "accelerate-repeats-deepspeed-file"
_OF_DEEPSPEED_FILE = (
    *("gradient_accumulation_steps", "gradient_clipping", "zero_stage", "zero3_save_16bit_model"),
    *("offload_optimizer_device", "offload_param_device", "offload_optimizer_nvme_path", "offload_param_nvme_path"),
)
"""What belongs into a DeepSpeed file that is named, and is refused beside it (``_deepspeed_config_checks``)."""


def recognises(document: Document) -> bool:
    """Whether a mapping is one that accelerate launches by."""
    value = document.value
    return isinstance(value, dict) and "compute_environment" in value and "distributed_type" in value


def read(document: Document) -> Configuration:
    """``training.world_size``, the precision, and what the DeepSpeed or FSDP section decides.

    A Trainer that turns on a precision of its own wins over the one here.
    """
    sheet = Sheet(document)
    if is_left_open(sheet, ["training.world_size", "training.deepspeed", "training.fsdp"], "distributed_type"):
        return sheet.configuration()
    kind = str(sheet.get("distributed_type")).upper()
    _processes(sheet, kind)
    precision = sheet.get("mixed_precision")
    precision = "no" if precision is False or (precision is None and sheet.has("mixed_precision")) else precision
    if isinstance(precision, str) and precision in _DTYPES:
        sheet.state("training.mixed_precision", precision, ("mixed_precision",))
        sheet.state("training.dtype", _DTYPES[precision], ("mixed_precision",))
    elif precision is not None:
        sheet.leave_open("training.dtype", ("mixed_precision",), "not a single dtype")
    section = sheet.get("deepspeed_config")
    if kind == "DEEPSPEED":
        _deepspeed(sheet, section if isinstance(section, dict) else {})
    else:
        sheet.state("training.deepspeed", None, ("distributed_type",))
    if kind == "FSDP":
        sheet.read(NUMBER, "training.fsdp.version", "fsdp_config", "fsdp_version")
        read_fsdp_section(sheet, ("fsdp_config",))
    else:
        sheet.state("training.fsdp", None, ("distributed_type",))
    _dynamo(sheet)
    sheet.read(FLAG, "training.downcast_bf16", "downcast_bf16")
    return sheet.configuration()


def _processes(sheet: Sheet, kind: str) -> None:
    """``num_processes`` counts those of all machines."""
    count = parse_number(sheet.get("num_processes"))
    if kind in _ONE_PROCESS:
        sheet.state("training.world_size", 1, ("distributed_type",))
    elif isinstance(count, int) and count > 0:
        sheet.state("training.world_size", count, ("num_processes",))
    else:
        sheet.unknown("training.world_size", "the number of processes is passed to accelerate at launch")


def _deepspeed(sheet: Sheet, section: dict[str, Any]) -> None:
    """A file that is named, else the JSON that accelerate makes of its own few settings."""
    keys = ("deepspeed_config",)
    named = section.get("deepspeed_config_file")
    if isinstance(named, str) and named.strip().lower() not in ("", "none"):
        sheet.name("deepspeed", named, (*keys, "deepspeed_config_file"))
        sheet.unknown("training.deepspeed", f"{named} decides", (*keys, "deepspeed_config_file"))
        _refused(sheet, named)
        return
    given = {name: sheet.get(*keys, name) for name in section}
    zero: dict[str, Any] = {"stage": 2 if given.get("zero_stage") is None else given["zero_stage"]}
    for name in ("optimizer", "param"):
        device = given.get(f"offload_{name}_device")
        zero[f"offload_{name}"] = {"device": device.lower() if isinstance(device, str) else device}
    zero["stage3_gather_16bit_weights_on_model_save"] = given.get("zero3_save_16bit_model")
    if section.get("deepspeed_moe_layer_cls_names"):
        zero["leaf_module"] = {"classes": section["deepspeed_moe_layer_cls_names"]}
    value: dict[str, Any] = {"zero_optimization": zero, "zero_allow_untested_optimizer": True}
    value["train_micro_batch_size_per_gpu"] = "auto"
    for name in ("gradient_clipping", "gradient_accumulation_steps"):
        value[name] = given.get(name, "auto")
    sheet.inline("deepspeed", keys, value)
    _own_places(sheet, section)


def _refused(sheet: Sheet, named: str) -> None:
    """Settings of the configuration itself beside a DeepSpeed file; flags of the launch are not compared."""
    paths: list[Keys] = [("deepspeed_config", name) for name in _OF_DEEPSPEED_FILE]
    paths += [("mixed_precision",)] if sheet.get("mixed_precision") is not None else []
    given = [path for path in paths if sheet.has(*path) and path not in sheet.document.origins]
    file = Setting("deepspeed_config_file", named, sheet.document.place(("deepspeed_config", "deepspeed_config_file")))
    found = [Setting(str(path[-1]), sheet.get(*path), sheet.document.place(path)) for path in given]
    if found:
        sheet.state(CONTRADICTIONS, [contradiction(_REPEATED, each, file) for each in found])


def _own_places(sheet: Sheet, section: dict[str, object]) -> None:
    """The lines of accelerate's own names for what DeepSpeed calls otherwise."""
    named = {
        ("zero_optimization", "stage"): "zero_stage",
        ("zero_optimization", "offload_optimizer"): "offload_optimizer_device",
        ("zero_optimization", "offload_param"): "offload_param_device",
        ("gradient_clipping",): "gradient_clipping",
        ("gradient_accumulation_steps",): "gradient_accumulation_steps",
    }
    places: dict[Keys, Location] = {
        ("deepspeed_config", *keys): sheet.document.place(("deepspeed_config", name))
        for keys, name in named.items()
        if name in section
    }
    sheet.place_inlined("deepspeed", places)


def _dynamo(sheet: Sheet) -> None:
    backend = sheet.get("dynamo_config", "dynamo_backend") or sheet.get("dynamo_backend")
    if isinstance(backend, str):
        nested = sheet.get("dynamo_config", "dynamo_backend") is not None
        keys = ("dynamo_config", "dynamo_backend") if nested else ("dynamo_backend",)
        sheet.state("training.torch_compile", backend.upper() != "NO", keys)
