"""Faults of the training loop: accumulation, labels, adapters."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from tools.faults._plant import WATCHED, Fault, Plant, replaced

STACK = ("transformers", "accelerate")
STEPS = 4
"""The micro-batches of a step unless a request says otherwise."""


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


def tokens_not_counted() -> AbstractContextManager[None]:
    """Every micro-batch counts alike, as before transformers 4.46."""
    import transformers

    def make(original: Any) -> Any:
        def get_batch_samples(self: Any, *args: Any, **options: Any) -> Any:
            return original(self, *args, **options)[0], None

        return get_batch_samples

    return replaced(transformers.Trainer, "get_batch_samples", make)


def changed_count(count: Callable[[Any], Any]) -> Plant:
    """``count(batches)`` in the place of the number of tokens of a step."""

    def plant() -> AbstractContextManager[None]:
        import transformers

        def make(original: Any) -> Any:
            def get_batch_samples(self: Any, *args: Any, **options: Any) -> Any:
                found = original(self, *args, **options)[0]
                return found, count(found)

            return get_batch_samples

        return replaced(transformers.Trainer, "get_batch_samples", make)

    return plant


def last_batch_counted(batches: Any) -> Any:
    return (batches[-1]["labels"] != -100).sum()


def padding_counted(batches: Any) -> Any:
    return sum(batch["labels"].numel() for batch in batches)


def divided_by_accelerate() -> AbstractContextManager[None]:
    """As transformers 5.2 to 5.5: accelerate divides what the Trainer or the model has divided."""
    import accelerate

    def make(original: Any) -> Any:
        def backward(self: Any, loss: Any, *args: Any, **options: Any) -> Any:
            return original(self, loss / STEPS, *args, **options)

        return backward

    return replaced(accelerate.Accelerator, "backward", make)


def labels_shifted_twice() -> AbstractContextManager[None]:
    import transformers

    def make(original: Any) -> Any:
        def compute_loss(self: Any, model: Any, inputs: Any, *args: Any, **options: Any) -> Any:
            labels = inputs["labels"].roll(-1, -1)
            labels[:, -1] = -100
            return original(self, model, {**inputs, "labels": labels}, *args, **options)

        return compute_loss

    return replaced(transformers.Trainer, "compute_loss", make)


def step_after_every_batch() -> AbstractContextManager[None]:
    import transformers

    def make(original: Any) -> Any:
        def training_step(self: Any, model: Any, *args: Any, **options: Any) -> Any:
            loss = original(self, model, *args, **options)
            number = self.planted = getattr(self, "planted", 0) + 1
            if number % self.args.gradient_accumulation_steps:
                self.accelerator.gradient_state._set_sync_gradients(True)
                self.optimizer.step()
                self.optimizer.zero_grad()
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
    Fault("micro-batches averaged with equal weight", "gradient_accumulation", tokens_not_counted, needs=STACK),
    Fault("divided by accelerate as well", "gradient_accumulation", divided_by_accelerate, needs=STACK),
    Fault(
        "tokens of the last micro-batch counted",
        "gradient_accumulation",
        changed_count(last_batch_counted),
        needs=STACK,
    ),
    Fault("padding counted among the tokens", "gradient_accumulation", changed_count(padding_counted), needs=STACK),
    Fault("labels shifted twice", "gradient_accumulation", labels_shifted_twice, needs=STACK),
    Fault("a step after every micro-batch", "gradient_accumulation", step_after_every_batch, needs=STACK),
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
