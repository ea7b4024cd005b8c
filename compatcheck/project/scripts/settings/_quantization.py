"""The quantization that a model is loaded with: the configuration objects of transformers, and plain switches."""

from __future__ import annotations

import re

from compatcheck.project.python_values import Reference
from compatcheck.project.script_calls.calls import Call
from compatcheck.project.scripts._program import CALL, document, last_name
from compatcheck.project.training._sheet import Sheet
from compatcheck.project.training._values import DTYPE, FLAG, NUMBER, TEXT, parse_flag
from compatcheck.project.training.document import Configuration

_FACT = "training.quantization"
_WORDS = {"Gptq": "gptq", "Torchao": "torchao", "TorchAo": "torchao", "FbgemmFp8": "fbgemm_fp8"}
_OF_CLASS = re.compile(r"[A-Z]\w*Config")


def is_quantization(call: Call) -> bool:
    """Whether a call makes such an object itself, and is no function that may return one, or None."""
    return bool(_OF_CLASS.fullmatch(last_name(call)))


def read_quantization(call: Call) -> Configuration:
    """What a configuration as ``BitsAndBytesConfig`` says."""
    sheet = Sheet(document(call))
    if last_name(call) == "BitsAndBytesConfig":
        read_bits_and_bytes(sheet)
        return sheet.configuration()
    if sheet.get("dequantize") is True:
        sheet.state(_FACT, None, ("dequantize",))
        return sheet.configuration()
    name = re.sub("(?:Quant)?Config$", "", last_name(call))
    sheet.state(f"{_FACT}.method", _WORDS.get(name) or re.sub(r"(?<=[a-z\d])(?=[A-Z])", "-", name).lower(), CALL)
    sheet.read(NUMBER, f"{_FACT}.bits", "bits")
    return sheet.configuration()


def read_bits_and_bytes(sheet: Sheet) -> None:
    """Four bits are FP4, computed in float32, unless told otherwise, in every release of transformers."""
    for bits in (4, 8):
        key = f"load_in_{bits}bit"
        value = sheet.get(key)
        if value is not None and parse_flag(value) is None:
            sheet.leave_open(_FACT, (key,), FLAG.mismatch)
            return
        if parse_flag(value):
            sheet.state(f"{_FACT}.bits", bits, (key,))
            sheet.state(f"{_FACT}.method", "bitsandbytes", (key,))
            break
    if not sheet.is_stated(f"{_FACT}.bits"):
        sheet.default(_FACT, None, CALL)
        return
    if sheet.fact(f"{_FACT}.bits") == 8:
        return
    sheet.read(TEXT, f"{_FACT}.type", "bnb_4bit_quant_type")
    sheet.default(f"{_FACT}.type", "fp4", CALL)
    sheet.read(FLAG, f"{_FACT}.double_quant", "bnb_4bit_use_double_quant")
    sheet.default(f"{_FACT}.double_quant", False, CALL)
    storage = sheet.get("bnb_4bit_quant_storage")
    if isinstance(storage, (str, Reference)):
        name = storage.name if isinstance(storage, Reference) else storage
        sheet.state(f"{_FACT}.quant_storage", name.removeprefix("torch."), ("bnb_4bit_quant_storage",))
    sheet.read(DTYPE, f"{_FACT}.compute_dtype", "bnb_4bit_compute_dtype")
    sheet.default(f"{_FACT}.compute_dtype", "float32", CALL)
