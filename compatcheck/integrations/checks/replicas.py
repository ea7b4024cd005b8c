"""Parameters that every rank holds are equal over the ranks.

A sample of each rank goes into the key-value store that the ranks met through; the first rank compares what has
arrived. No rank waits for another, so ranks that differ in their number of steps, or have left, hang nothing.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from compatcheck.integrations._samples import ELEMENTS, Named, is_readable, samples, spread
from compatcheck.integrations._training_run import TrainingRun
from compatcheck.integrations._watch import Alarm
from compatcheck.integrations.checks._check import QuietCheck
from compatcheck.language import gettext as _

_MOST_PARAMETERS = 64
_PERIOD = 256
_OF_UPDATE = 0.05
"""Part of the mean update by which replicas have to differ: rounding of unlike GPUs stays far below."""

_OF_VALUE = 1e-6
_SAFE_WAIT = 2.0
"""Seconds the first rank waits at the end for values of others that are on their way."""


class Check(QuietCheck):
    def __init__(self, run: TrainingRun) -> None:
        super().__init__(run)
        self.store: Any = None
        self.ranks: list[int] = []
        self.rank = 0
        self.steps = 0
        self.first: list[float] | None = None
        self.awaited: dict[int, tuple[bytes, list[float]]] = {}
        self.leading: Any = None
        self.decided = False

    def before_step(self, optimizer: Any, looks: bool) -> Iterable[Alarm]:
        if self.leading is None:
            self.leading = optimizer
        if optimizer is not self.leading:
            return
        if not self.decided:
            self.decided = True
            self._meet()
        if self.store is None:
            return
        if _is_due(self.steps):
            self._publish(self.steps)
        self.steps += 1
        yield from self._compare()

    def close(self) -> Iterable[Alarm]:
        import time

        if self.store is None:
            return
        self._publish(self.steps)
        found = list(self._compare())
        until = time.monotonic() + _SAFE_WAIT
        while self.awaited and not found and time.monotonic() < until:
            time.sleep(0.02)
            found.extend(self._compare())
        self.store = None
        yield from found

    def _meet(self) -> None:
        """Find the store and the ranks that hold the same values, or say why the ranks are not compared."""
        import torch

        distributed = torch.distributed
        if not (distributed.is_available() and distributed.is_initialized() and distributed.get_world_size() > 1):
            return
        group, reason = self._group()
        if reason:
            self.run.unknown["replicas"] = reason
            return
        try:
            from torch.distributed.distributed_c10d import _get_default_store

            self.ranks = list(distributed.get_process_group_ranks(group or distributed.group.WORLD))
            name = hashlib.sha256(repr(self.ranks).encode()).hexdigest()[:8]
            self.store = distributed.PrefixStore(f"compatcheck/replicas/{name}", _get_default_store())
        except (ImportError, AttributeError, RuntimeError, ValueError) as error:
            self.run.unknown["replicas"] = f"the ranks' store cannot be used: {error}"
            return
        self.rank = distributed.get_rank()

    def _group(self) -> tuple[Any, str]:
        """The ranks that hold the same values, and why that is unknown."""
        if self.run.replicated is False:
            return None, "the caller declares that the ranks hold different values"
        for model in self.run.models:
            if type(model).__name__ == "DistributedDataParallel":
                hooks = [getattr(hook, "__name__", "") for hook, _state in getattr(model, "_comm_hooks", ())]
                if any("local" in name.lower() for name in hooks):
                    return None, "a communication hook lets the ranks hold different parameters by design"
                return self.run.group or model.process_group, ""
        if self.run.replicated:
            return self.run.group, ""
        return None, (
            "the model is not in DistributedDataParallel; pass replicated=True if every rank holds the same values"
        )

    def _chosen(self) -> list[Named]:
        ignored: set[str] = set()
        for model in self.run.models:
            ignored |= set(getattr(model, "parameters_to_ignore", ()) or ())
        return spread(
            [
                each
                for each in self.run.parameters()
                if each.parameter.requires_grad and is_readable(each.parameter) and each.name not in ignored
                and not getattr(each.parameter, "tensor_model_parallel", False)
                and getattr(each.parameter, "allreduce", True) is not False
            ],
            _MOST_PARAMETERS,
        )  # fmt: skip

    def _publish(self, step: int) -> None:
        chosen = self._chosen()
        values = [value for row in samples(each.parameter for each in chosen) for value in row.tolist()]
        shapes = repr([(each.name, tuple(each.parameter.shape)) for each in chosen])
        self.names = [each.name for each in chosen]
        head = hashlib.sha256(shapes.encode()).digest()[:8]
        if self.first is None:
            self.first = values
        if self.rank == self.ranks[0]:
            self.awaited[step] = (head, values)
        elif self.rank in self.ranks:
            self.store.set(f"{step}/{self.rank}", head + struct.pack(f"<{len(values)}d", *values))

    def _compare(self) -> Iterator[Alarm]:
        """Compare each step of which every rank's values have arrived."""
        for step in sorted(self.awaited):
            keys = [f"{step}/{rank}" for rank in self.ranks[1:]]
            if not self.store.check(keys):
                continue
            head, own = self.awaited.pop(step)
            for key in keys:
                message = bytes(self.store.get(key))
                self.store.delete_key(key)
                if message[:8] != head:
                    self.run.unknown["replicas"] = "the ranks hold different parameters"
                    continue
                other = list(struct.unpack(f"<{(len(message) - 8) // 8}d", message[8:]))
                yield from self._differing(step, own, other, key.rpartition("/")[2])
            self.run.notes.setdefault("replicas", f"parameters were compared over {len(self.ranks)} ranks")

    def _differing(self, step: int, own: Sequence[float], other: Sequence[float], rank: str) -> Iterator[Alarm]:
        apart = [abs(a - b) for a, b in zip(own, other)]
        moved = _mean([abs(a - b) for a, b in zip(own, self.first or own)])
        size = _mean([abs(value) for value in own])
        if _mean(apart) <= max(_OF_UPDATE * moved, _OF_VALUE * size):
            return
        rows = [max(apart[at : at + ELEMENTS]) for at in range(0, len(apart), ELEMENTS)]
        worst = self.names[rows.index(max(rows))]
        seen = _(
            "replicas differ: rank {first} and rank {other} hold different values before step "
            "{step}, in {count} of {all} parameters that were read, with the largest difference in "
            "{name} ({size}); gradients are not averaged, or something changes parameters on one rank"
        ).format(
            first=self.ranks[0],
            other=rank,
            step=step + 1,
            count=sum(row > 0 for row in rows),
            all=len(rows),
            name=worst,
            size=f"{max(rows):.3g}",
        )
        yield self.alarm("replicas-differ", seen, "weights-differ", "loss-differs", stops=False)


def _is_due(steps: int) -> bool:
    """At steps 0, 1, 2, 4, 8 and so on up to the period, then at every period: the same on every rank."""
    return steps < 2 or (steps & (steps - 1) == 0 and steps < _PERIOD) or steps % _PERIOD == 0


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0
