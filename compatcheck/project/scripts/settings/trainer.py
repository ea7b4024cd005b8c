"""The Trainer that is made: whose it is, what it optimizes, and what older ones of TRL take themselves."""

from __future__ import annotations

import re

from compatcheck.project.scripts._program import CALL, Program, document, last_name, library, read_each
from compatcheck.project.scripts.calls import Call
from compatcheck.project.training._rows import read_model, read_rows, rows, state_unquantized
from compatcheck.project.training._sheet import Sheet
from compatcheck.project.training._values import FLAG, NUMBER
from compatcheck.project.training.document import Configuration

LAYER = 2
_FRAMEWORKS = {"sentence_transformers": "sentence-transformers", "unsloth": "trl"}
_ROWS = (*rows("training.", NUMBER, "max_length=max_seq_length"), *rows("training.", FLAG, "packing"))


def read(program: Program) -> Configuration:
    """Framework and objective, and the model that is named instead of loaded."""
    return read_each(program.trainers, _read, needed=True)


def _read(call: Call) -> Configuration:
    sheet = Sheet(document(call, "model", "args"))
    framework = _FRAMEWORKS.get(library(call), library(call))
    sheet.state("training.framework", framework, CALL)
    arguments, model = sheet.get("args"), read_model(sheet, "model")
    whole = isinstance(arguments, Call) and not arguments.gap and "model_init_kwargs" not in arguments.keywords
    if model and whole:
        state_unquantized(sheet, model)
    if framework == "trl":
        sheet.state("training.objective", _objective(last_name(call)), CALL)
        read_rows(sheet, _ROWS)
    return sheet.configuration()


def _objective(trainer: str) -> str:
    """As ``online_dpo`` for OnlineDPOTrainer."""
    name = "SFT" if trainer == "UnslothTrainer" else trainer.removesuffix("Trainer")
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
