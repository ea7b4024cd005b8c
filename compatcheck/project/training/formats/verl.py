"""verl's Hydra configuration: a YAML that holds all of it, or the overrides of a command.

Sources: ``verl/trainer/config`` of 0.2.0, 0.4.1 and 0.7.0, https://github.com/verl-project/verl. Only what all of them
read alike is a default here, and nothing is where the command names a configuration of its own.
"""

from __future__ import annotations

from fractions import Fraction

from compatcheck.project.training._interpolation import interpolate
from compatcheck.project.training._rows import read_model, read_rows, rows
from compatcheck.project.training._sheet import Sheet
from compatcheck.project.training._values import FLAG, NUMBER, WHOLE, parse_number, parse_whole
from compatcheck.project.training.document import Configuration, Document

TITLE = "a verl configuration"
SUFFIXES = (".yaml", ".yml")
MARKS = ("actor_rollout_ref",)

_ACTOR, _MODEL = ("actor_rollout_ref", "actor"), ("actor_rollout_ref", "model")
_ARGUMENTS = (
    *rows("training.", FLAG, "gradient_checkpointing=enable_gradient_checkpointing", below=_MODEL),
    *rows("training.", FLAG, "padding_free=use_remove_padding", below=_MODEL),
    *rows("training.", FLAG, "use_liger_kernel=use_liger", below=_MODEL),
    *rows("training.", NUMBER, "learning_rate=optim.lr", below=_ACTOR),
    *rows("training.", NUMBER, "num_train_epochs=trainer.total_epochs"),
    *rows("training.sampling.", NUMBER, "temperature", "top_p", "top_k", below=("actor_rollout_ref", "rollout")),
)
_SFT_ARGUMENTS = (
    *rows("training.", FLAG, "gradient_checkpointing=model.enable_gradient_checkpointing"),
    *rows("training.", FLAG, "padding_free=use_remove_padding", "use_liger_kernel=model.use_liger"),
    *rows("training.", WHOLE, "per_device_train_batch_size=data.micro_batch_size_per_gpu"),
    *rows("training.", WHOLE, "max_length=data.max_length"),
    *rows("training.", NUMBER, "learning_rate=optim.lr", "num_train_epochs=trainer.total_epochs"),
)
_ESTIMATORS = {"gae": "ppo", "grpo": "grpo", "rloo": "rloo"}
_STRATEGIES = {"fsdp": 1, "fsdp2": 2}


def recognises(document: Document) -> bool:
    """Whether a mapping is a training by reinforcement with verl."""
    value = document.value
    return isinstance(value, dict) and all(isinstance(value.get(each), dict) for each in ("actor_rollout_ref", "data"))


def read(document: Document, processes: int | None = None) -> Configuration:
    """What the configuration decides, in as many processes as the launcher starts."""
    whole = interpolate(document)
    sheet = Sheet(whole._replace(partial=whole.partial or _elsewhere(whole)))
    sheet.state("training.framework", "verl")
    sheet.state("training.deepspeed", None)
    tuned = sheet.has("model", "partial_pretrain")
    read_rows(sheet, _SFT_ARGUMENTS if tuned else _ARGUMENTS)
    if tuned:
        sheet.state("training.objective", "sft", ("model", "partial_pretrain"))
        read_model(sheet, "model", "partial_pretrain")
        _accumulation(sheet, processes)
    else:
        _objective(sheet)
        read_model(sheet, *_MODEL, "path")
    _sharding(sheet, *(("model", "strategy") if tuned else (*_ACTOR, "strategy")))
    _lora(sheet, *(("model",) if tuned else _MODEL))
    _processes(sheet)
    return sheet.configuration()


def _elsewhere(document: Document) -> str:
    return "the command names a folder of configurations" if "config_path" in document.value else ""


def _accumulation(sheet: Sheet, processes: int | None) -> None:
    """How many micro-batches of a rank make up its share of the whole batch (``_normalize_config_bsz``)."""
    fact, keys = "training.gradient_accumulation_steps", ("data", "train_batch_size")
    whole = _count(sheet, 256, *keys)
    each = _count(sheet, 4, "data", "micro_batch_size_per_gpu")
    ways = _count(sheet, 1, "ulysses_sequence_parallel_size")
    micro_batches = Fraction(whole * ways, each * processes) if whole and each and ways and processes else None
    if micro_batches and micro_batches.denominator == 1:
        sheet.state(fact, micro_batches.numerator, keys if sheet.has(*keys) else None)
    else:
        sheet.unknown(fact, "the value follows from the batch sizes and the number of ranks")


def _count(sheet: Sheet, default: int, *keys: str) -> int | None:
    if sheet.has(*keys):
        return parse_whole(sheet.get(*keys))
    return None if sheet.document.partial or sheet.has("config_name") else default


def _objective(sheet: Sheet) -> None:
    """The advantage estimator names the objective, GAE where none is given; the rollout may go through vllm."""
    keys = ("algorithm", "adv_estimator")
    named = sheet.get(*keys)
    if isinstance(named, str) and named in _ESTIMATORS:
        sheet.state("training.objective", _ESTIMATORS[named], keys)
    elif named is not None:
        sheet.leave_open("training.objective", keys, "not a known objective")
    elif not sheet.has("config_name"):
        sheet.default("training.objective", "ppo")
    engine = sheet.get("actor_rollout_ref", "rollout", "name")
    if isinstance(engine, str):
        sheet.state("training.use_vllm", engine == "vllm", ("actor_rollout_ref", "rollout", "name"))


def _sharding(sheet: Sheet, *keys: str) -> None:
    strategy = sheet.get(*keys)
    if isinstance(strategy, str) and strategy in _STRATEGIES:
        sheet.state("training.fsdp.version", _STRATEGIES[strategy], keys)
    elif isinstance(strategy, str) or "megatron" in str(sheet.get("config_name")):
        sheet.state("training.fsdp", None)


def _lora(sheet: Sheet, *above: str) -> None:
    """Without a rank above 0 all weights are trained; Megatron's own section has another form and is left."""
    keys = (*above, "lora_rank")
    rank = parse_number(sheet.get(*keys))
    if rank:
        sheet.state("training.method", "lora", keys)
        sheet.state("training.lora.r", rank, keys)
        sheet.read(NUMBER, "training.lora.lora_alpha", *above, "lora_alpha")
    elif not sheet.has(*above, "lora"):
        sheet.default("training.method", "full", keys if sheet.has(*keys) else None)
        sheet.default("training.lora", None)


def _processes(sheet: Sheet) -> None:
    """One process for each GPU of each node, of which there is one unless told otherwise."""
    keys = ("trainer", "n_gpus_per_node")
    each = parse_whole(sheet.get(*keys))
    nodes = parse_whole(sheet.get("trainer", "nnodes"))
    if each and nodes:
        sheet.state("training.world_size", each * nodes, keys)
    elif each and not sheet.has("trainer", "nnodes"):
        sheet.default("training.world_size", each, keys)
