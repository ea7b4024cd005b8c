"""What spreads a training over GPUs, in the words that several frameworks share: DeepSpeed and FSDP."""

from __future__ import annotations

from typing import Any

from compatcheck.project.training._document import Keys
from compatcheck.project.training._python_value import Open
from compatcheck.project.training._readings import Sheet

_OF_FSDP = (
    ("version", "number", ("fsdp_version", "version")),
    ("sharding_strategy", "text", ("fsdp_sharding_strategy", "sharding_strategy")),
    ("offload", "flag", ("fsdp_offload_params", "offload_params")),
    ("cpu_ram_efficient_loading", "flag", ("fsdp_cpu_ram_efficient_loading", "cpu_ram_efficient_loading")),
    ("use_orig_params", "flag", ("fsdp_use_orig_params", "use_orig_params")),
    ("state_dict_type", "text", ("fsdp_state_dict_type", "state_dict_type")),
    ("auto_wrap_policy", "text", ("fsdp_auto_wrap_policy", "auto_wrap_policy")),
    ("activation_checkpointing", "flag", ("fsdp_activation_checkpointing", "activation_checkpointing")),
    ("reshard_after_forward", "flag", ("fsdp_reshard_after_forward", "reshard_after_forward")),
)


def deepspeed_given(sheet: Sheet, value: Any, keys: Keys) -> bool:
    """Whether the value at these keys brings DeepSpeed: a file or preset that is named, or what is written out."""
    if isinstance(value, str) and value.strip():
        sheet.name("deepspeed", value, keys)
        sheet.unknown("training.deepspeed", f"{value} decides", keys)
    elif isinstance(value, dict) and value:
        sheet.inline("deepspeed", keys, value)
    elif isinstance(value, Open):
        sheet.unknown("training.deepspeed", value.why, keys)
    else:
        return False
    return True


def fsdp_given(sheet: Sheet, sections: Keys = ()) -> bool:
    """Whether the ``fsdp`` argument of the Trainer turns it on; its settings are stated then."""
    keys = (*sections, "fsdp")
    value = sheet.given(*keys)
    words = value.split() if isinstance(value, str) else ["full_shard"] if value is True else value
    if not isinstance(words, list) or not words:
        return False
    sheet.state("training.fsdp.offload", "offload" in words, keys)
    strategy = next((each for each in words if each not in ("offload", "auto_wrap")), None)
    if isinstance(strategy, str):
        sheet.state("training.fsdp.sharding_strategy", strategy, keys)
    fsdp_section(sheet, (*sections, "fsdp_config"))
    return True


def fsdp_section(sheet: Sheet, keys: Keys) -> None:
    """The settings of an ``fsdp_config``, with or without ``fsdp_`` before their names."""
    section = sheet.given(*keys)
    if not isinstance(section, dict):
        return
    for fact, kind, names in _OF_FSDP:
        name = next((each for each in names if section.get(each) is not None), None)
        if name is not None:
            getattr(sheet, kind)(f"training.fsdp.{fact}", *keys, name)
