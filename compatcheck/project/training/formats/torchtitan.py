"""torchtitan's TOML: a table for each part of the run, and degrees of parallelism that multiply to the ranks.

Sources: ``torchtitan/config_manager.py`` and ``config/job_config.py``, ``distributed/`` and every
``train_configs/*.toml`` of 0.1.0 to 0.2.2, https://github.com/pytorch/torchtitan. Before 0.1.0 the batch was
``batch_size``; compile was a key of ``[training]`` until 0.2. The Python configurations that follow 0.2 are programs
and belong to no reader.
"""

from __future__ import annotations

import functools

from compatcheck.files.secrets import excerpt
from compatcheck.project.training._rows import is_left_open, read_rows, rows
from compatcheck.project.training._sheet import Sheet
from compatcheck.project.training._values import DTYPE, FLAG, LABELS, NUMBER, WHOLE, choice, parse_flag, parse_whole
from compatcheck.project.training.document import Configuration, Document, Keys

TITLE = "a torchtitan TOML"
SUFFIXES = (".toml",)
MARKS = ("batch_size",)

_CHECKPOINTING = choice({"none": False, "selective": True, "full": True})
_ROWS = (
    *rows("training.", WHOLE, "per_device_train_batch_size=batch_size", below=("training",)),
    *rows("training.", WHOLE, "per_device_train_batch_size=local_batch_size", below=("training",)),
    *rows("training.", WHOLE, "max_length=seq_len", "max_steps=steps", below=("training",)),
    *rows("training.", WHOLE, "warmup_steps", below=("lr_scheduler",)),
    *rows("training.", WHOLE, "per_device_eval_batch_size=local_batch_size", below=("validation",)),
    *rows("training.", NUMBER, "max_grad_norm=max_norm", below=("training",)),
    *rows("training.", NUMBER, "learning_rate=lr", below=("optimizer",)),
    *rows("training.", DTYPE, "load_dtype=dtype", below=("training",)),
    *rows("training.", FLAG, "deterministic", "torch_compile=compile", below=("training",)),
    *rows("training.", FLAG, "deterministic", below=("debug",)),
    *rows("training.", FLAG, "torch_compile=enable", below=("compile",)),
    *rows("training.", _CHECKPOINTING, "gradient_checkpointing=mode", below=("activation_checkpoint",)),
)
_SHARDS: Keys = ("parallelism", "data_parallel_shard_degree")
_REPLICAS, _TENSOR, _PIPELINE, _CONTEXT = (
    ("parallelism", f"{name}_degree")
    for name in ("data_parallel_replicate", "tensor_parallel", "pipeline_parallel", "context_parallel")
)
_DEGREES = (_REPLICAS, _TENSOR, _PIPELINE, _CONTEXT)
_FULLY_SHARD = ("llama3", "llama4", "deepseek_v3", "qwen3", "flux", "gpt_oss")
_ELASTIC = "torchft adds replica groups at run time"
_LEFTOVER = (
    "the model is sharded over the ranks that the other degrees of parallelism leave; the "
    "launcher sets the number of ranks"
)


def recognises(document: Document) -> bool:
    """Whether it has the tables of a job, a model and its training, as torchtitan calls what is in them."""
    value = document.value
    if not isinstance(value, dict):
        return False
    job, model, training = (value.get(name) for name in ("job", "model", "training"))
    if not isinstance(job, dict) or not isinstance(model, dict) or not isinstance(training, dict):
        return False
    return ("local_batch_size" in training or "batch_size" in training) and ("flavor" in model or "dump_folder" in job)


def read(document: Document) -> Configuration:
    """What the file decides, with what every release does where it is silent."""
    sheet = Sheet(document._replace(partial=document.partial or _own_settings(document)))
    sheet.state("training.framework", "torchtitan")
    sheet.state("training.deepspeed", None)
    sheet.state("training.method", "full")
    sheet.state("training.lora", None)
    read_rows(sheet, _ROWS)
    sheet.default("training.load_dtype", "float32")
    _compile(sheet)
    _optimizer(sheet)
    sheet.default("training.gradient_checkpointing", True)
    _parallelism(sheet)
    sheet.name("model", sheet.get("model", "hf_assets_path"), ("model", "hf_assets_path"))
    return sheet.configuration()


def _own_settings(document: Document) -> str:
    """Why any default may differ: a Python module of the user's own brings another ``JobConfig``."""
    for table, key in (("job", "custom_config_module"), ("experimental", "custom_args_module")):
        section = document.value.get(table)
        module = section.get(key) if isinstance(section, dict) else None
        if module:
            return f"{excerpt(str(module), 80)}, which {table}.{key} names, may change the defaults"
    return ""


def _compile(sheet: Sheet) -> None:
    key = ("compile", "components")
    sheet.default("training.torch_compile", False)
    if sheet.fact("training.torch_compile") and not is_left_open(sheet, ["training.torch_compile"], key, kind=LABELS):
        parts = sheet.get(*key)
        if parts is not None and "model" not in (LABELS.parse(parts) or ()):
            sheet.unknown("training.torch_compile", "the model is not among the components that are compiled", key)


def _optimizer(sheet: Sheet) -> None:
    """AdamW, and fused, unless the file says otherwise."""
    fact, name = "training.optimizer", ("optimizer", "name")
    how = next((key for key in (("optimizer", "implementation"), ("optimizer", "fused")) if sheet.has(*key)), None)
    named, way = sheet.get(*name), "fused" if how is None else sheet.get(*how)
    if named not in (None, "AdamW"):
        if isinstance(named, str):
            sheet.state(fact, named, name)
        else:
            sheet.leave_open(fact, name, "not the name of an optimizer")
    elif how and way not in ("fused", "foreach", "for-loop") and not isinstance(way, bool):
        sheet.leave_open(fact, how, "not fused, foreach or for-loop")
    else:
        place = name if sheet.has(*name) else how
        optimizer = "adamw_torch_fused" if way in ("fused", True) else "adamw_torch"
        if how and named:
            sheet.state(fact, optimizer, place)
        else:
            sheet.default(fact, optimizer, place)


def _parallelism(sheet: Sheet) -> None:
    """The degrees multiply to the number of ranks, but for a shard degree of -1, which takes those that are left."""
    open_facts = (
        *("training.world_size", "training.fsdp", "training.several_ranks", "training.gradient_accumulation_steps"),
        *("training.dtype", "training.mixed_precision"),
    )
    degrees = {key: _degree(sheet, key, 1) for key in _DEGREES}
    shards = _degree(sheet, _SHARDS, -1)
    odd = next((key for key in _DEGREES if degrees[key] is None), _SHARDS if shards is None else None)
    if odd:
        for fact in open_facts:
            sheet.leave_open(fact, odd, "not a degree of parallelism")
        return
    replicas, tensor, pipeline, context = (degrees[key] or 1 for key in _DEGREES)
    place = _SHARDS if sheet.has(*_SHARDS) else None
    known = shards if shards and shards > 0 else None
    if replicas * tensor * pipeline * context > 1 or (known or 1) > 1:
        largest = next((key for key in _DEGREES if (degrees[key] or 1) > 1), _SHARDS)
        sheet.state("training.several_ranks", True, largest)
    if sheet.document.partial and not all(sheet.has(*key) for key in (*_DEGREES, _SHARDS)):
        for fact in open_facts:
            if fact != "training.several_ranks":
                sheet.unknown(fact, sheet.document.partial)
        return
    is_elastic = parse_flag(sheet.get("fault_tolerance", "enable") or False) is not False
    if known is None:
        sheet.unknown("training.world_size", _LEFTOVER, place)
    elif is_elastic:
        sheet.unknown("training.world_size", _ELASTIC, ("fault_tolerance", "enable"))
    else:
        sheet.state("training.world_size", replicas * known * tensor * pipeline * context, place)
    shares = True if context > 1 else None if known is None else known > 1
    _sharding(sheet, shares, _CONTEXT if context > 1 else place)
    _precision(sheet, shares, tensor * pipeline > 1, place)
    _accumulation(sheet, None if is_elastic or known is None else replicas * known)


def _degree(sheet: Sheet, key: Keys, silent: int) -> int | None:
    value = sheet.get(*key)
    degree = silent if value is None else parse_whole(value)
    return degree if degree is not None and (0 < degree < 10**6 or degree == silent) else None


def _sharding(sheet: Sheet, shares: bool | None, place: Keys | None) -> None:
    """``fully_shard``, FSDP 2, where parameters are sharded or the context is split."""
    model, experts = ("model", "name"), ("parallelism", "expert_parallel_degree")
    if sheet.get(*model) not in (None, *_FULLY_SHARD):
        sheet.leave_open("training.fsdp", model, "not a model that torchtitan itself shards")
    elif not shares and sheet.get(*experts) not in (None, 1):
        sheet.unknown("training.fsdp", "some models are sharded if their experts are parallel", experts)
    elif shares is None:
        sheet.unknown("training.fsdp", _LEFTOVER, place)
    elif not shares:
        sheet.state("training.fsdp", None, place)
    else:
        sheet.state("training.fsdp.version", 2, place)
        read_rows(sheet, rows("training.fsdp.", FLAG, "offload=enable_cpu_offload", below=("training",)))
        key = ("parallelism", "fsdp_reshard_after_forward")
        if sheet.get(*key) in ("always", "never"):
            sheet.state("training.fsdp.reshard_after_forward", sheet.get(*key) == "always", key)


def _precision(sheet: Sheet, shares: bool | None, is_split: bool, place: Keys | None) -> None:
    """FSDP or autocast compute in ``mixed_precision_param``; where a model is split without FSDP, neither does."""
    facts = ("training.dtype", "training.mixed_precision")
    if is_split and shares is None:
        for fact in facts:
            sheet.unknown(fact, f"mixed precision needs FSDP here, and {_LEFTOVER}", place)
        return
    mixed = not is_split or shares
    key = ("training", "mixed_precision_param" if mixed else "dtype")
    if is_left_open(sheet, facts, key, kind=DTYPE):
        return
    given = DTYPE.parse(sheet.get(*key))
    dtype = given or ("bfloat16" if mixed else "float32")
    state = functools.partial(sheet.state, keys=key) if given else sheet.default
    state("training.dtype", dtype)
    state("training.mixed_precision", "bf16" if mixed and dtype == "bfloat16" else "no")


def _accumulation(sheet: Sheet, copies: int | None) -> None:
    """What the whole batch asks for beyond one step of every copy of the data; one step where it is not given."""
    fact, key = "training.gradient_accumulation_steps", ("training", "global_batch_size")
    if is_left_open(sheet, [fact], key, kind=WHOLE):
        return
    whole, each = WHOLE.parse(sheet.get(*key)), sheet.fact("training.per_device_train_batch_size")
    if whole is None:
        sheet.default(fact, 1)
    elif whole < 0:
        sheet.state(fact, 1, key)
    elif copies and each and each > 0 and whole and whole % (each * copies) == 0:
        sheet.state(fact, whole // (each * copies), key)
    else:
        sheet.unknown(fact, "the value follows from the number of ranks", key)
