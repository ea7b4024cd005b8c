"""``deepspeed.initialize`` with its configuration: a path, or a mapping in the code."""

from __future__ import annotations

from compatcheck.project.script_calls.calls import Call
from compatcheck.project.scripts._program import CALL, NOTHING, Program, document, read_each
from compatcheck.project.training._parallel import read_deepspeed
from compatcheck.project.training._sheet import Sheet
from compatcheck.project.training.document import Configuration

FROM_ARGUMENTS = "deepspeed.initialize takes the configuration from the command line"
_NAMES = ("config", "config_params")


def read(program: Program) -> Configuration:
    """The configuration of a loop of one's own."""
    if program.trainers or program.lightning:
        return NOTHING
    return read_each(program.calls(r"deepspeed\.(?:[\w.]+\.)?initialize"), _read, needed=True)


def _read(call: Call) -> Configuration:
    sheet = Sheet(document(call, "args", "model"))
    sheet.state("training.framework", "deepspeed", CALL)
    if not any(read_deepspeed(sheet, (name,)) for name in _NAMES if sheet.get(name) is not None):
        sheet.unknown("training.deepspeed", FROM_ARGUMENTS)
    return sheet.configuration()
