"""What is called or set on a model after its load: checkpointing, its dtype, its cache."""

from __future__ import annotations

from compatcheck.project.script_calls.calls import Call
from compatcheck.project.scripts._program import CALL, Program, argument, document, loaded, read_each
from compatcheck.project.training._sheet import Sheet
from compatcheck.project.training._values import DTYPE, FLAG
from compatcheck.project.training.document import Configuration

LAYER = 3
_DTYPES = {".half": "float16", ".bfloat16": "bfloat16", ".float": "float32"}
_KWARGS = "gradient_checkpointing_kwargs"


def read(program: Program) -> Configuration:
    """The last cast counts, and the last value of the cache."""
    checkpointing = read_each(program.methods("gradient_checkpointing_enable"), _read_checkpointing)
    casts = [call for call in program.methods("half", "bfloat16", "float", "to") if loaded(call.owner) and _dtype(call)]
    cache = read_each(program.last_assignment("use_cache"), _read_use_cache)
    return checkpointing.overlay(read_each(casts[-1:], _read_cast)).overlay(cache)


def _read_checkpointing(call: Call) -> Configuration:
    sheet = Sheet(document(call, _KWARGS))
    sheet.state("training.gradient_checkpointing", True, CALL)
    sheet.read(FLAG, f"training.{_KWARGS}.use_reentrant", _KWARGS, "use_reentrant")
    return sheet.configuration()


def _dtype(call: Call) -> str | None:
    value = argument(call, "dtype", 0)
    return _DTYPES.get(call.callee) or DTYPE.parse(value)


def _read_cast(call: Call) -> Configuration:
    sheet = Sheet(document(call))
    sheet.state("training.load_dtype", _dtype(call), CALL)
    return sheet.configuration()


def _read_use_cache(call: Call) -> Configuration:
    sheet = Sheet(document(call))
    sheet.read(FLAG, "training.use_cache", "use_cache")
    return sheet.configuration()
