"""Where a probe computes."""

from __future__ import annotations

from typing import Optional

from compatcheck.probes._criterion import Request

NO_DEVICE = "no CUDA device is usable from this interpreter"


def device_of(request: Request) -> Optional[str]:
    """``cpu`` or ``cuda``, or None where CUDA is asked for and unusable."""
    import torch

    asked, usable = str(request.get("device", "auto")), torch.cuda.is_available()
    if asked == "cuda" and not usable:
        return None
    return "cpu" if asked == "cpu" or not usable else "cuda"
