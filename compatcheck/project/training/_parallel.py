"""What spreads a training over GPUs, in the words that several frameworks share: DeepSpeed and FSDP."""

from __future__ import annotations

import json
from typing import Any

from compatcheck.project.python_values import Open
from compatcheck.project.training._sheet import Sheet
from compatcheck.project.training._values import FLAG, NUMBER, TEXT, Kind
from compatcheck.project.training.document import Keys

_FSDP: tuple[tuple[str, Kind[Any], tuple[str, ...]], ...] = (
    ("version", NUMBER, ("fsdp_version", "version")),
    ("sharding_strategy", TEXT, ("fsdp_sharding_strategy", "sharding_strategy")),
    ("offload", FLAG, ("fsdp_offload_params", "offload_params")),
    ("cpu_ram_efficient_loading", FLAG, ("fsdp_cpu_ram_efficient_loading", "cpu_ram_efficient_loading")),
    ("use_orig_params", FLAG, ("fsdp_use_orig_params", "use_orig_params")),
    ("state_dict_type", TEXT, ("fsdp_state_dict_type", "state_dict_type")),
    ("auto_wrap_policy", TEXT, ("fsdp_auto_wrap_policy", "auto_wrap_policy")),
    ("activation_checkpointing", FLAG, ("fsdp_activation_checkpointing", "activation_checkpointing")),
    ("reshard_after_forward", FLAG, ("fsdp_reshard_after_forward", "reshard_after_forward")),
)
_STATE_DICT_TYPE = "training.fsdp.state_dict_type"


def read_deepspeed(sheet: Sheet, keys: Keys) -> bool:
    """Whether the value at these keys decides on DeepSpeed: a file or preset that is named, or what is written out."""
    value = sheet.get(*keys)
    if isinstance(value, str) and value.strip().startswith("{"):
        value = _object(value)
    if value in (None, "", False, {}):
        return False
    if isinstance(value, str) and value.strip():
        sheet.name("deepspeed", value, keys)
        sheet.unknown("training.deepspeed", f"{value} decides", keys)
    elif isinstance(value, dict):
        sheet.inline("deepspeed", keys, value)
    else:
        sheet.leave_open("training.deepspeed", keys, "not the path of a DeepSpeed JSON")
    return True


def _object(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def read_fsdp(sheet: Sheet, sections: Keys = (), *, sets_environment: bool = False) -> bool:
    """Whether the ``fsdp`` argument of the Trainer turns it on; its settings are stated then.

    A framework that ``sets_environment`` passes its fsdp_config to accelerate by itself. The Trainer does so for the
    kind of state dict since 5.10.1 only; before, accelerate's own file decides, which may be another.
    https://pypi.org/project/transformers/5.10.1/, ``_process_fsdp_args`` of ``training_args.py``; not in 5.9.0
    """
    keys = (*sections, "fsdp")
    value = sheet.get(*keys)
    words = value.split() if isinstance(value, str) else ["full_shard"] if value is True else value
    if not isinstance(words, list) or not words:
        if isinstance(value, Open):
            sheet.leave_open("training.fsdp", keys, "")
        return False
    sheet.state("training.fsdp.offload", "offload" in words, keys)
    strategy = next((each for each in words if each not in ("offload", "auto_wrap")), None)
    if isinstance(strategy, str):
        sheet.state("training.fsdp.sharding_strategy", strategy, keys)
    section: Keys = (*sections, "fsdp_config")
    read_fsdp_section(sheet, section)
    if not sets_environment and sheet.is_stated(_STATE_DICT_TYPE):
        why = "transformers before 5.10.1 ignores this setting in fsdp_config"
        sheet.unknown(_STATE_DICT_TYPE, why, section)
    return True


def read_fsdp_section(sheet: Sheet, keys: Keys) -> None:
    """The settings of an ``fsdp_config``, with or without ``fsdp_`` before their names."""
    section = sheet.get(*keys)
    if not isinstance(section, dict):
        return
    for fact, kind, names in _FSDP:
        name = next((each for each in names if section.get(each) is not None), None)
        if name is not None:
            sheet.read(kind, f"training.fsdp.{fact}", *keys, name)
