"""Faults that end or stop the process that measures; planted in the stack, found through the real runner."""

from __future__ import annotations

from tools.faults._plant import Fault

WHERE = "torch.nn.functional"
SEGMENTATION = """
    import ctypes
    torch.nn.functional.softmax = lambda *args, **options: ctypes.string_at(0)
"""
ABORT = """
    import os
    torch.nn.functional.softmax = lambda *args, **options: os.abort()
"""
HANG = """
    import time
    torch.nn.functional.softmax = lambda *args, **options: time.sleep(600)
"""
LEAVES = """
    import os
    torch.nn.functional.softmax = lambda *args, **options: os._exit(0)
"""
NO_MEMORY = """
    import torch
    torch.nn.functional.softmax = lambda *args, **options: torch.empty(1 << 60, dtype=torch.uint8)
"""


def planted(code: str) -> tuple[str, str]:
    return "torch", "import torch" + code.replace("\n    ", "\n")


FAULTS = (
    Fault("segmentation fault", "softmax", start_up=planted(SEGMENTATION), quick=True),
    Fault("abort", "softmax", start_up=planted(ABORT)),
    Fault("hang", "softmax", start_up=planted(HANG), seconds=4.0),
    Fault("process left in the middle with exit status 0", "softmax", start_up=planted(LEAVES)),
    Fault(
        "a package with an undefined symbol",
        "package_imports",
        None,
        {"packages": ["peft"]},
        start_up=("peft", "raise ImportError('planted.so: undefined symbol: planted')"),
        needs=("peft",),
    ),
    Fault("out of memory", "softmax", expect="skipped", below="told as memory", start_up=planted(NO_MEMORY)),
)
