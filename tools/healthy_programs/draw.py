"""What varies between one run of a program and another: seeded sizes, rates and options, and the guard's hooks."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import nn

from compatcheck.integrations.guard import Guard

T = TypeVar("T")
STEPS = 24


class Draw:
    """The choices of one run. ``watch`` makes the guard of a plain loop; every guard that was made is in ``guards``."""

    def __init__(self, seed: int, folder: Path) -> None:
        self.random = random.Random(seed)
        torch.manual_seed(seed)
        self.folder = folder
        self.guards: list[Any] = []
        self.steps = STEPS
        self.options: dict[str, Any] = {"check": False, "every": 1, "window": 9, "report": None, "share": 1.0}

    def of(self, *choices: T) -> T:
        return self.random.choice(choices)

    def watch(self, model: Any, optimizer: Any, **options: Any) -> Guard:
        guard = Guard(model, optimizer, **{**self.options, **options})
        self.guards.append(guard)
        return guard

    def mlp(self, inputs: int = 12, outputs: int = 4, *extra: nn.Module) -> nn.Sequential:
        width = self.of(16, 32, 48)
        return nn.Sequential(
            nn.Linear(inputs, width), self.of(nn.ReLU(), nn.GELU(), nn.Tanh()), *extra, nn.Linear(width, outputs)
        )

    def classes(self, inputs: int = 12, outputs: int = 4) -> Iterator[tuple[Any, Any]]:
        """Batches of a task that can be learnt: the class is where a random projection is largest."""
        truth = torch.randn(inputs, outputs)
        size = self.of(4, 8, 16)
        for _ in range(self.steps):
            batch = torch.randn(size, inputs)
            yield batch, (batch @ truth).argmax(1)

    def tokens(self, vocabulary: int = 40, length: int = 10, size: int = 4) -> Iterator[Any]:
        for _ in range(self.steps):
            yield torch.randint(3, vocabulary, (size, length))


Program = Callable[[Draw], None]
