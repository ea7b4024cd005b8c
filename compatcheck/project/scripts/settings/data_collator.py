"""What the labels are, by the data collator of transformers."""

from __future__ import annotations

from compatcheck.project.script_calls.calls import Call
from compatcheck.project.scripts._program import CALL, Program, document, read_each
from compatcheck.project.training._sheet import Sheet
from compatcheck.project.training.document import Configuration

_COLLATORS = r"transformers\.(?:[\w.]+\.)?DataCollatorForLanguageModeling"


def read(program: Program) -> Configuration:
    """Labels that are the input tokens; with ``mlm``, which is the default, they are masked tokens."""
    return read_each(program.calls(_COLLATORS), _read)


def _read(call: Call) -> Configuration:
    sheet = Sheet(document(call, "tokenizer", "mlm"))
    sheet.state("training.labels", "inputs" if sheet.get("mlm") is False else None, CALL)
    return sheet.configuration()
