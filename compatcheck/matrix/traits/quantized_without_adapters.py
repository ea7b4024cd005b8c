"""A quantized model is to be trained whole by the transformers Trainer, which refuses it.

LLaMA-Factory and others refuse it themselves, in words of their own.
"""

from __future__ import annotations

from compatcheck.environment import Environment, Unknown
from compatcheck.matrix._traits import Table
from compatcheck.matrix.matching.match import TraitVerdict

_WHERE: dict[str, tuple[str, ...]] = {
    "training.framework": ("transformers", "trl"),
    "training.quantization.method": ("bitsandbytes", "gptq", "awq"),
    "training.method": ("full", "freeze"),
}


def find(environment: Environment, table: Table) -> TraitVerdict:
    values = {path: environment.get(path) for path in _WHERE}
    missing = tuple(path for path, value in values.items() if isinstance(value, Unknown))
    if any(path not in missing and value not in _WHERE[path] for path, value in values.items()):
        return TraitVerdict(False)
    return TraitVerdict(None if missing else True, missing=missing, facts=("training.quantization.method",))
