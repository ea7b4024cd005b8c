"""The Trainer that is made: whose it is, what it optimizes, and what older ones of TRL take themselves."""

from __future__ import annotations

import re
from collections.abc import Mapping

from compatcheck.project.script_calls.calls import Call
from compatcheck.project.scripts._program import CALL, Program, document, framework, last_name, read_each
from compatcheck.project.training._rows import read_model, read_rows, rows, state_unquantized
from compatcheck.project.training._sheet import Sheet
from compatcheck.project.training._values import FLAG, NUMBER
from compatcheck.project.training.document import Configuration

LAYER = 2
_ATTENTION = {"attn_implementation", "_attn_implementation", "use_flash_attention_2"}
_ROWS = (*rows("training.", NUMBER, "max_length=max_seq_length"), *rows("training.", FLAG, "packing"))


def read(program: Program) -> Configuration:
    """Framework and objective, and the model that is named instead of loaded."""
    return read_each(program.trainers, _read, needed=True)


def _read(call: Call) -> Configuration:
    sheet = Sheet(document(call, "model", "args"))
    sheet.state("training.framework", framework(call), CALL)
    arguments, model = sheet.get("args"), read_model(sheet, "model")
    loading = _load_arguments(arguments) if model else None
    if loading is not None and "quantization_config" not in loading:
        state_unquantized(sheet, model)
    if loading is not None and framework(call) == "trl" and not _ATTENTION & loading.keys():
        sheet.default("training.attention_rule", "default", ("model",))
    if framework(call) == "trl":
        sheet.state("training.objective", _objective(last_name(call)), CALL)
        read_rows(sheet, _ROWS)
    return sheet.configuration()


def _load_arguments(arguments: object) -> Mapping[str, object] | None:
    """What the Trainer loads a model with that it is given by name; None where that is not seen whole."""
    if not isinstance(arguments, Call) or arguments.gap:
        return None
    given = arguments.keywords.get("model_init_kwargs", {})
    return given if isinstance(given, Mapping) else None


def _objective(trainer: str) -> str:
    """As ``online_dpo`` for OnlineDPOTrainer."""
    name = "SFT" if trainer == "UnslothTrainer" else trainer.removesuffix("Trainer")
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
