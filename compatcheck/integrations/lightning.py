"""A callback for the Trainer of Lightning that judges the environment before the first step and watches the run.

    from compatcheck.integrations.lightning import CompatGuard
    trainer = Trainer(..., callbacks=[CompatGuard()])

Works with lightning and pytorch_lightning 2.x.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any

from compatcheck.integrations._running import with_model
from compatcheck.integrations.guard import REPORT, Alarm, Guard, Host, require_options

if "pytorch_lightning" in sys.modules and "lightning.pytorch" not in sys.modules:
    from pytorch_lightning import Callback
else:
    from lightning.pytorch import Callback

__all__ = ["CompatGuard"]

_SCALER_PATIENCE = 24


class CompatGuard(Callback):  # type: ignore[misc]
    """Watches a run of Lightning's Trainer; ``options`` are those of `compatcheck.integrations.guard.Guard`.

    With ``on="stop"`` an alarm sets ``trainer.should_stop``. The report is written into ``default_root_dir``.
    """

    def __init__(self, **options: Any) -> None:
        stated = {"on": "warn", "fail_on": "affected", "window": 20, "every": 10, "share": 0.02, "trainable": None}
        require_options(**{name: options.get(name, value) for name, value in stated.items()})
        self.options = options
        self.guard: Guard | None = None

    @property
    def alarms(self) -> list[Alarm]:
        """Every alarm so far, the first of each signature."""
        return self.guard.alarms if self.guard is not None else []

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        stated = {"report": os.path.join(trainer.default_root_dir, REPORT), **self.options}
        scaled = str(getattr(trainer, "precision", "")).startswith("16")
        replicated = type(trainer.strategy).__name__ == "DDPStrategy" or None
        self.guard = Guard(
            pl_module,
            list(trainer.optimizers),
            **{"replicated": replicated, **stated},
            host=Host(
                lambda environment: with_model(environment, pl_module),
                bool(trainer.is_global_zero),
                int(trainer.world_size),
                _SCALER_PATIENCE if scaled else 1,
            ),
        )

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        guard = self.guard
        if guard is None:
            return
        loss: Any = outputs.get("loss") if isinstance(outputs, Mapping) else outputs
        guard.step(loss if hasattr(loss, "numel") and loss.numel() == 1 else None)
        if (batch_idx + 1) % guard.every == 0:
            guard.weigh(int(trainer.global_step))
        if guard.ended:
            trainer.should_stop = True

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        if self.guard is not None:
            self.guard.close()
