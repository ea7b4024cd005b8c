"""The side on which the tokenizer pads: as it is loaded with, or is told later."""

from __future__ import annotations

from compatcheck.project.script_calls.calls import Assignment, Call
from compatcheck.project.scripts._program import Program, document, read_each
from compatcheck.project.training._sheet import Sheet
from compatcheck.project.training._values import SIDE
from compatcheck.project.training.document import Configuration

_LOADS = r"(?:[\w.]+\.)?(?:\w*Tokenizer\w*|\w*Processor)\.from_pretrained"
_FACT = "training.padding_side"


def read(program: Program) -> Configuration:
    """What the loads of tokenizers say, and over it what is set on them."""
    loads = [call for call in program.calls(_LOADS) if "padding_side" in call.keywords]
    return read_each(loads, _read).overlay(_assigned(program.assignments("padding_side")))


def _read(call: Call) -> Configuration:
    sheet = Sheet(document(call))
    sheet.read(SIDE, _FACT, "padding_side")
    return sheet.configuration()


def _assigned(assignments: tuple[Assignment, ...]) -> Configuration:
    """The last one counts, unless it may not happen."""
    calls = [
        Call("", each.at, (), {"padding_side": each.value}, {"padding_side": each.at}, doubt=each.doubt)
        for each in assignments
    ]
    return read_each(calls[-1:], _read)
