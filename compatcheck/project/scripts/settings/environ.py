"""Variables that a script sets for itself, as ``os.environ["CUDA_VISIBLE_DEVICES"] = "0"``."""

from __future__ import annotations

from compatcheck.project.python_values import Reference
from compatcheck.project.script_calls.calls import Call
from compatcheck.project.scripts._program import NOTHING, Program, as_call, document, read_each
from compatcheck.project.training._environ import is_read
from compatcheck.project.training._sheet import Sheet
from compatcheck.project.training.document import Configuration

_OWNER = Reference("os.environ")


def read(program: Program) -> Configuration:
    """The last value of each."""
    result = NOTHING
    for each in program.script.assignments:
        if each.owner == _OWNER and is_read(each.name) and isinstance(each.value, str):
            result = result.overlay(read_each([as_call(each, each.name)], _read))
    return result


def _read(call: Call) -> Configuration:
    ((name, value),) = call.keywords.items()
    sheet = Sheet(document(call))
    sheet.state(f"environ.{name}", value, (name,))
    return sheet.configuration()
