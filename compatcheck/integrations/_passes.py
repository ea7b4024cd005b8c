"""Watch a model's forward passes and its memory without slowing them: results stay on the device until asked for."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from compatcheck.integrations._watch import Pass

_IGNORED = -100
_PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


class ForwardWatch:
    """A forward hook that notes, for each pass in training, whether its loss is a number and its labels teach anything.

    It hears nothing of a model that returns no loss. ``step`` is the optimizer step the passes belong to.
    """

    def __init__(self, model: Any) -> None:
        self.step = 0
        self.noted: list[tuple[int, object]] = []
        self.handle = model.register_forward_hook(self._note, with_kwargs=True)

    def _note(self, module: Any, args: Any, kwargs: Mapping[str, Any], output: Any) -> None:
        import torch

        labels: Any = kwargs.get("labels")
        loss: Any = output.get("loss") if isinstance(output, Mapping) else None
        if not module.training or type(loss) is not torch.Tensor or loss.numel() != 1:
            return
        found = loss.detach()
        bad = ~torch.isfinite(found).reshape(())
        masked = torch.zeros_like(bad)
        if type(labels) is torch.Tensor and labels.dim() == 2 and labels.shape[1] > 1:
            masked = ~(labels[:, 1:] != _IGNORED).any().to(bad.device)
        self.noted.append((self.step, torch.stack((bad, masked))))

    def drain(self) -> list[Pass]:
        """The passes since the last time; on a GPU this waits for them."""
        if not self.noted:
            return []
        import torch

        noted, self.noted = self.noted, []
        rows = torch.stack([flags for _, flags in noted]).tolist()
        return [Pass(step, nonfinite, masked) for (step, _), (nonfinite, masked) in zip(noted, rows)]

    def close(self) -> None:
        self.handle.remove()


def cuda_bytes() -> float:
    """Bytes that live tensors hold on the current GPU; the allocator's cache does not count."""
    import torch

    return float(torch.cuda.memory_allocated())


def process_bytes() -> float | None:
    """Bytes of anonymous memory of this process (mapped files left out), or None where the system does not tell."""
    try:
        with open("/proc/self/statm", encoding="ascii") as stream:
            _, resident, shared, *_ = map(int, stream.read().split())
    except OSError:
        return None
    return float((resident - shared) * _PAGE)
