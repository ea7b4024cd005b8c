"""What the checks of the guard share: the models, the optimizers, the step, and what could not be judged."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

from compatcheck.integrations._samples import Named, named_parameters, torch_optimizer, unwrapped

_OWN_COPIES = ("deepspeed", "apex", "colossalai", "megatron", "torch_xla", "fairscale")
"""Packages whose optimizers train copies of the parameters and write the results back."""


class TrainingRun:
    """The objects of a running training.

    ``trainable`` is what was asked: ``full``, ``lora``, a fraction of the elements, or None. ``replicated`` says that
    every rank of ``group`` holds the same values, None that the guard shall tell by itself.
    """

    def __init__(
        self, models: tuple[Any, ...], optimizers: tuple[Any, ...], trainable: Any, replicated: bool | None, group: Any
    ) -> None:
        self.models = models
        self.given = optimizers
        self.optimizers = tuple(map(torch_optimizer, optimizers))
        self.trainable, self.replicated, self.group = trainable, replicated, group
        self.step = 0
        self.unknown: dict[str, str] = {}
        self.notes: dict[str, str] = {}

    @property
    def roots(self) -> tuple[Any, ...]:
        """The models without wrappers."""
        return tuple(map(unwrapped, self.models))

    def parameters(self) -> list[Named]:
        """Every parameter of the models as they are now."""
        return list(named_parameters(self.models))

    def held(self) -> Iterator[Any]:
        """Every parameter of the optimizers."""
        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                yield from group["params"]

    def own_copies(self) -> str | None:
        """Why the parameters of an optimizer cannot be compared with the model's; None where they can."""
        for optimizer in (*self.given, *self.optimizers):
            package = type(optimizer).__module__.partition(".")[0]
            if package in _OWN_COPIES:
                return f"{type(optimizer).__name__} of {package} trains its own copies of the parameters"
        return None


def untraced(hook: Callable[..., Any]) -> Any:
    """The hook as something that torch.compile leaves alone where it compiles what calls the hook."""
    import torch

    def call(*arguments: Any, **options: Any) -> Any:
        return hook(*arguments, **options)

    leave: Any = getattr(torch, "_disable_dynamo", None)
    return hook if leave is None else leave(call)


def is_compiled(model: Any) -> bool:
    """Whether torch.compile has anything to do with the model, or with any function that already ran."""
    root = unwrapped(model)
    if root is not model and type(model).__name__ == "OptimizedModule":
        return True
    if getattr(root, "_compiled_call_impl", None) is not None:
        return True
    dynamo = sys.modules.get("torch._dynamo")
    counters: Any = getattr(getattr(dynamo, "utils", None), "counters", {})
    return bool(counters.get("stats"))
