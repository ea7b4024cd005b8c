"""The ``from_pretrained`` of the model: its name, class, attention, dtype and quantization."""

from __future__ import annotations

from compatcheck.project.python_values import Open
from compatcheck.project.script_calls.calls import Call
from compatcheck.project.scripts._program import CALL, FAST_MODEL, NOTHING, Program, argument, document, read_each
from compatcheck.project.scripts.settings._quantization import is_quantization, read_bits_and_bytes, read_quantization
from compatcheck.project.training._rows import is_left_open, read_model, state_unquantized
from compatcheck.project.training._sheet import Sheet
from compatcheck.project.training._values import ATTENTION, DTYPE, FLAG, parse_flag
from compatcheck.project.training.document import Configuration

_PATH = "pretrained_model_name_or_path"
_ATTENTION = "training.attention"
_FLASH = "use_flash_attention_2"
_DTYPES = ("torch_dtype", "dtype")
_QUANTIZATION = "training.quantization"


def read(program: Program) -> Configuration:
    """What the loads of the model in training say."""
    return read_each([call for call in program.loads if not FAST_MODEL.fullmatch(call.callee)], _read, needed=True)


def _read(call: Call) -> Configuration:
    sheet = Sheet(document(call, _PATH))
    model = read_model(sheet, _PATH)
    if isinstance(sheet.get(_PATH), Open):
        sheet.leave_open("model.name", (_PATH,), "")
    sheet.state("training.model_class", call.callee.split(".")[-2], CALL)
    _dtype(sheet)
    sheet.read(FLAG, "training.use_cache", "use_cache")
    config = argument(call, "config")
    below = _attention(config) if isinstance(config, Call) else NOTHING
    said = below.overlay(_attention(call)).overlay(sheet.configuration())
    return said.overlay(_quantized(sheet, call, model))


def _attention(call: Call) -> Configuration:
    """What the model is given, or the configuration that it is given."""
    sheet = Sheet(document(call))
    if not is_left_open(sheet, (_ATTENTION,), _FLASH, kind=FLAG) and parse_flag(sheet.get(_FLASH)):
        sheet.state(_ATTENTION, "flash_attention_2", (_FLASH,))
    for name in ("_attn_implementation", "attn_implementation"):
        sheet.read(ATTENTION, _ATTENTION, name)
    return sheet.configuration()


def _dtype(sheet: Sheet) -> None:
    for name in _DTYPES:
        if sheet.get(name) == "auto":
            sheet.unknown("training.load_dtype", "the checkpoint's own dtype", (name,))
        elif sheet.has(name):
            sheet.read(DTYPE, "training.load_dtype", name)


def _quantized(sheet: Sheet, call: Call, model: str | None) -> Configuration:
    """Without a dtype, a quantized model is loaded in the one that its release of transformers takes."""
    config = argument(call, "quantization_config")
    if isinstance(config, Call) and is_quantization(config):
        said = read_quantization(config)
    elif config is not None:
        sheet.leave_open(_QUANTIZATION, ("quantization_config",), "which is not read")
        return sheet.configuration()
    else:
        own = Sheet(sheet.document)
        if any(sheet.has(f"load_in_{bits}bit") for bits in (4, 8)):
            read_bits_and_bytes(own)
        elif own.document.partial:
            own.unknown(_QUANTIZATION, own.document.partial)
        else:
            state_unquantized(own, model)
        said = own.configuration()
    is_given = any(sheet.has(name) and sheet.get(name) is not None for name in _DTYPES)
    if said.facts.section(_QUANTIZATION) and not is_given and not sheet.document.partial:
        absent = Sheet(sheet.document)
        absent.state("training.load_dtype", None, CALL)
        said = said.overlay(absent.configuration())
    return said
