"""A quantised model is trained without prepare_model_for_kbit_training.

The plain Trainer leaves that call to the script, and most scripts that say nothing of it do without; LLaMA-Factory,
Axolotl and TRL's SFTTrainer make it themselves.
"""

from __future__ import annotations

from compatcheck.matrix._match import TraitVerdict
from compatcheck.matrix._traits import Table
from compatcheck.model import Environment, Unknown, lookup

_QUANTIZATION = "training.quantization"


def find(environment: Environment, table: Table) -> TraitVerdict:
    quantization = lookup(environment, _QUANTIZATION)
    if isinstance(quantization, Unknown):
        return TraitVerdict(None, missing=(_QUANTIZATION,))
    prepared = lookup(environment, "training.kbit_prepared")
    if quantization is None or prepared is True:
        return TraitVerdict(False)
    framework = lookup(environment, "training.framework")
    left_to_the_script = isinstance(framework, Unknown) or framework in ("transformers", "peft")
    return TraitVerdict(prepared is False or left_to_the_script)
