"""A quantised model is trained through adapters without prepare_model_for_kbit_training.

The plain Trainer leaves that call to the script, and most scripts that say nothing of it do without; LLaMA-Factory,
Axolotl and TRL's SFTTrainer make it themselves.
"""

from __future__ import annotations

from compatcheck.environment import Environment, Unknown
from compatcheck.matrix._traits import Table
from compatcheck.matrix.matching.match import TraitVerdict

_CONCERNED = ("training.quantization", "training.lora")


def find(environment: Environment, table: Table) -> TraitVerdict:
    concerned = {path: environment.get(path) for path in _CONCERNED}
    prepared = environment.get("training.kbit_prepared")
    if None in concerned.values() or prepared is True:
        return TraitVerdict(False)
    missing = tuple(path for path, value in concerned.items() if isinstance(value, Unknown))
    if missing:
        return TraitVerdict(None, missing=missing)
    framework = environment.get("training.framework")
    left_to_the_script = isinstance(framework, Unknown) or framework in ("transformers", "peft")
    return TraitVerdict(prepared is False or left_to_the_script, presumed=prepared is not False)
