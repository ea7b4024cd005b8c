"""Training under ZeRO reduces gradients on several ranks, and they do not all fit into one bucket."""

from __future__ import annotations

from compatcheck.environment import Environment, Unknown
from compatcheck.matrix._traits import Table
from compatcheck.matrix.matching.match import TraitVerdict
from compatcheck.matrix.traits._ranks import several_ranks

_LARGE_BUCKET = 1e8


def find(environment: Environment, table: Table) -> TraitVerdict:
    return TraitVerdict(False) if _fits_one_bucket(environment) else several_ranks(environment)


def _fits_one_bucket(environment: Environment) -> bool:
    """A LoRA of some millions of parameters beside a large bucket; layers that it trains whole may fill any bucket."""
    size = environment.get("training.deepspeed.reduce_bucket_size")
    large = isinstance(size, (int, float)) and size >= _LARGE_BUCKET
    whole_layers = environment.get("training.lora.modules_to_save")
    return large and _is_lora(environment) and (isinstance(whole_layers, Unknown) or not whole_layers)


def _is_lora(environment: Environment) -> bool:
    lora = environment.get("training.lora")
    stated = lora is not None and not isinstance(lora, Unknown)
    return stated or environment.get("training.method") in ("lora", "qlora")
