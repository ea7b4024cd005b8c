"""The side on which the tokenizer pads: given when it is loaded, or set later."""

from __future__ import annotations

from compatcheck.project.script_calls.calls import Call
from compatcheck.project.scripts._program import Program, document, read_each
from compatcheck.project.training._sheet import Sheet
from compatcheck.project.training._values import SIDE
from compatcheck.project.training.document import Configuration

_LOADS = r"(?:[\w.]+\.)?(?:\w*Tokenizer\w*|\w*Processor)\.from_pretrained"
_FACT = "training.padding_side"


def read(program: Program) -> Configuration:
    """What the loads of tokenizers say, and over it the last value that is set on them, unless that may not happen."""
    loads = [call for call in program.calls(_LOADS) if "padding_side" in call.keywords]
    return read_each(loads, _read).overlay(read_each(program.last_assignment("padding_side"), _read))


def _read(call: Call) -> Configuration:
    sheet = Sheet(document(call))
    sheet.read(SIDE, _FACT, "padding_side")
    return sheet.configuration()
