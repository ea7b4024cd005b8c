"""Faults of the training loop: accumulation, labels, adapters."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from tools.faults._plant import WATCHED, Fault, replaced

STACK = ("transformers", "accelerate")


def loss_not_divided() -> AbstractContextManager[None]:
    import transformers

    def make(original: Any) -> Any:
        def compute_loss(self: Any, *args: Any, **options: Any) -> Any:
            return original(self, *args, **options) * self.args.gradient_accumulation_steps

        return compute_loss

    return replaced(transformers.Trainer, "compute_loss", make)


def first_micro_batch_lost() -> AbstractContextManager[None]:
    import transformers

    def make(original: Any) -> Any:
        def training_step(self: Any, model: Any, *args: Any, **options: Any) -> Any:
            loss = original(self, model, *args, **options)
            number = self.planted = getattr(self, "planted", 0) + 1
            if number % self.args.gradient_accumulation_steps == 1:
                model.zero_grad()
            return loss

        return training_step

    return replaced(transformers.Trainer, "training_step", make)


def adapters_in_base_dtype() -> AbstractContextManager[None]:
    import peft

    return replaced(
        peft, "get_peft_model", lambda original: lambda *args: original(*args, autocast_adapter_dtype=False)
    )


@contextmanager
def nothing() -> Iterator[None]:
    yield


FAULTS = (
    Fault("loss not divided by the number of micro-batches", "gradient_accumulation", loss_not_divided, needs=STACK),
    Fault("gradient of the first micro-batch lost", "gradient_accumulation", first_micro_batch_lost, needs=STACK),
    *(
        Fault(
            "adapters left in the dtype of the base",
            "low_precision_trainables",
            adapters_in_base_dtype,
            {"dtype": dtype},
            expect,
            dtype,
            needs=("transformers", "peft"),
        )
        for dtype, expect in (("float16", "caught"), ("bfloat16", WATCHED))
    ),
    Fault(
        "a batch whose labels are all -100",
        "labels_masked",
        nothing,
        {"samples": [[-100, 5, 6], [-100, -100, -100]], "batch_size": 1},
        quick=True,
    ),
)
