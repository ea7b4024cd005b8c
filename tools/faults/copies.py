"""Faults of copies between GPUs, planted in copies from the CPU to itself, which take the same way through torch."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from tools.faults._plant import Fault, Plant, replaced

PAIR = {"devices": ["cpu", "cpu"]}
MEBIBYTE = 2**20


def copies(name: str, change: Callable[[Any], None]) -> Plant:
    """``change(copied)`` alters in place what ``torch.Tensor.<name>`` has copied."""

    def plant() -> AbstractContextManager[None]:
        import torch

        def make(original: Any) -> Any:
            def candidate(self: Any, *args: Any, **options: Any) -> Any:
                found = original(self, *args, **options)
                change(found)
                return found

            return candidate

        return replaced(torch.Tensor, name, make)

    return plant


def zeros(found: Any) -> None:
    found.zero_()


def large_ones_zero(found: Any) -> None:
    if found.nbytes >= MEBIBYTE:
        found.zero_()


def first_zero() -> AbstractContextManager[None]:
    """As in pytorch/pytorch#56771: the first copy after the start gives zeros, the later ones do not."""
    calls: list[int] = []

    def change(found: Any) -> None:
        if not calls:
            found.zero_()
        calls.append(1)

    return copies("to", change)()


def last_word_unwritten(found: Any) -> None:
    found[-1] = -1


def one_bit(found: Any) -> None:
    if found.nbytes >= MEBIBYTE:
        found[len(found) // 2] ^= 1


def nothing_written(found: Any) -> None:
    found.fill_(-1)


def neighbours_exchanged(found: Any) -> None:
    if len(found) > 512:
        found[:512] = found[:512].flip(0)


def every_second_page_lost(found: Any) -> None:
    """512 words of 8 bytes make a page of 4 KiB."""
    if len(found) > 1024:
        found[: len(found) // 1024 * 1024].view(-1, 2, 512)[:, 1] = 0


FAULTS = (
    Fault("zeros arrive", "device_copies", copies("to", zeros), PAIR, quick=True),
    Fault("zeros arrive from 1 MiB on", "device_copies", copies("to", large_ones_zero), PAIR),
    Fault("zeros arrive the first time", "device_copies", first_zero, PAIR),
    Fault("last 8 bytes not written", "device_copies", copies("to", last_word_unwritten), PAIR),
    Fault("one bit of 1 MiB flipped", "device_copies", copies("to", one_bit), PAIR, quick=True),
    Fault("nothing written on a side stream", "device_copies", copies("copy_", nothing_written), PAIR),
    Fault("every second page of 4 KiB lost", "device_copies", copies("to", every_second_page_lost), PAIR),
    Fault("first 4 KiB in reverse order", "device_copies", copies("copy_", neighbours_exchanged), PAIR),
)
