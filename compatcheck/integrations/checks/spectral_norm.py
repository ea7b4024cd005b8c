"""A layer under `torch.nn.utils.spectral_norm` has run in training mode before it is evaluated.

Its estimate of the largest singular value starts at random and is refined by passes in training only: a first pass in
evaluation divides the weight by a number that is far too small.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from compatcheck.integrations._samples import unwrapped
from compatcheck.integrations._training_run import TrainingRun, untraced
from compatcheck.integrations._watch import Alarm
from compatcheck.integrations.checks._check import QuietCheck
from compatcheck.language import gettext as _

_FACTOR = 0.5
"""The estimate is at least this part of the true value once a pass in training has refined it."""

_ROUNDS = 8


class Check(QuietCheck):
    def __init__(self, run: TrainingRun) -> None:
        super().__init__(run)
        self.found: list[Alarm] = []
        self.handles = [
            root.register_forward_pre_hook(untraced(self._look), with_kwargs=True)
            for root in map(unwrapped, run.models)
            if any(_norm_of(module) is not None for module in root.modules())
        ]

    def pending(self) -> Iterable[Alarm]:
        found, self.found = self.found, []
        return found

    def close(self) -> Iterable[Alarm]:
        for handle in self.handles:
            handle.remove()
        self.handles = []
        return ()

    def _look(self, module: Any, args: Any, kwargs: Mapping[str, Any]) -> None:
        import torch

        self.close()
        if module.training:
            return
        with torch.no_grad():
            raw = [name for name, each in module.named_modules() if _norm_of(each) is not None and _is_raw(each)]
        if raw:
            seen = _(
                "{count} layers under spectral_norm, such as {name}, are evaluated before any pass in "
                "training: their weights are divided by a random number; run one batch in training mode "
                "first, or use torch.nn.utils.parametrizations.spectral_norm"
            ).format(count=len(raw), name=raw[0])
            self.found.append(self.alarm("spectral-norm-not-initialised", seen, "wrong-output", stops=False))


def _norm_of(module: Any) -> Any:
    hooks = getattr(module, "_forward_pre_hooks", {}).values()
    return next((each for each in hooks if type(each).__name__ == "SpectralNorm"), None)


def _is_raw(module: Any) -> bool:
    """Whether the estimate is far below the largest singular value, found by a few rounds of power iteration."""
    import torch

    norm = _norm_of(module)
    weight = getattr(module, norm.name + "_orig").detach()
    u, v = getattr(module, norm.name + "_u"), getattr(module, norm.name + "_v")
    matrix = norm.reshape_weight_to_matrix(weight).float()
    estimate = float(torch.dot(u.float(), torch.mv(matrix, v.float())).abs())
    vector = v.float()
    for _round in range(_ROUNDS):
        vector = torch.nn.functional.normalize(matrix.T @ (matrix @ vector), dim=0)
    return estimate < _FACTOR * float(torch.linalg.vector_norm(matrix @ vector))
