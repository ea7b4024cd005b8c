"""TRL's ``ModelConfig``, and what its ``get_peft_config`` and ``get_quantization_config`` make of it."""

from __future__ import annotations

from compatcheck.project.scripts._program import Program, document, read_each
from compatcheck.project.training.document import Configuration
from compatcheck.project.training.formats import training_arguments

_CLASS = r"trl\.(?:[\w.]+\.)?ModelConfig"
_MADE = {
    "training.quantization": r"trl\.(?:[\w.]+\.)?get_quantization_config",
    "training.lora": r"trl\.(?:[\w.]+\.)?get_peft_config",
    "training.method": r"trl\.(?:[\w.]+\.)?get_peft_config",
}


def read(program: Program) -> Configuration:
    """What of its fields the script makes use of."""
    said = read_each(program.calls(_CLASS), lambda call: training_arguments.read_model_config(document(call)))
    unused = [fact for fact, maker in _MADE.items() if not program.calls(maker)]
    return said._replace(facts=said.facts.without("training.framework", *unused))
