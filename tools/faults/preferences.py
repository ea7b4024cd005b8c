"""Faults of TRL's trainers: what is learned, what an answer is compared with, which tokens count."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from compatcheck.probes.training._trl import END_ID, PAD_ID
from tools.faults._plant import MISSED, Fault, Plant, replaced

NEEDS = ("trl", "datasets")
IGNORED = -100
Batch = dict[str, Any]


def batches(trainer: str, change: Callable[[Batch], Batch]) -> Plant:
    """``change(batch)`` before a trainer of TRL computes its loss."""

    def plant() -> AbstractContextManager[None]:
        import trl

        def make(original: Any) -> Any:
            def compute_loss(self: Any, model: Any, inputs: Any, *args: Any, **options: Any) -> Any:
                return original(self, model, change(dict(inputs)), *args, **options)

            return compute_loss

        return replaced(getattr(trl, trainer), "compute_loss", make)

    return plant


def relabelled(change: Callable[[Batch], Any]) -> Plant:
    """``change(batch)`` gives the labels of a supervised batch."""
    return batches("SFTTrainer", lambda batch: {**batch, "labels": change(batch)})


def end_not_learned(batch: Batch) -> Any:
    """The end of a sequence is padding to the collator, as where pad_token is eos_token."""
    return batch["labels"].masked_fill(batch["input_ids"] == END_ID, IGNORED)


def prompt_learned(batch: Batch) -> Any:
    return batch["input_ids"].masked_fill(batch["input_ids"] == PAD_ID, IGNORED)


def first_word_not_learned(batch: Batch) -> Any:
    labels = batch["labels"].clone()
    first = (labels != IGNORED).long().argmax(-1)
    labels[range(len(labels)), first] = IGNORED
    return labels


def positions_of_one_text(batch: Batch) -> Batch:
    if "position_ids" not in batch:
        return batch
    length = batch["input_ids"].shape[-1]
    return {**batch, "position_ids": batch["position_ids"].new_tensor(range(length))[None]}


def tokens_not_counted() -> AbstractContextManager[None]:
    import trl

    def make(original: Any) -> Any:
        def compute_loss(self: Any, *args: Any, **options: Any) -> Any:
            return original(self, *args, **{**options, "num_items_in_batch": None})

        return compute_loss

    return replaced(trl.SFTTrainer, "compute_loss", make)


def adapters_by_the_root() -> AbstractContextManager[None]:
    """alpha over the root of r, as rsLoRA has it, in place of alpha over r."""
    import trl

    def make(original: Any) -> Any:
        def build(self: Any, *args: Any, **options: Any) -> None:
            original(self, *args, **options)
            for module in self.model.modules():
                if isinstance(getattr(module, "scaling", None), dict):
                    module.scaling = {name: value * 2 for name, value in module.scaling.items()}

        return build

    return replaced(trl.SFTTrainer, "__init__", make)


def reference_with_adapters() -> AbstractContextManager[None]:
    from trl.trainer import dpo_trainer

    return replaced(dpo_trainer, "use_adapter", lambda original: lambda *args, **options: contextlib.nullcontext())


def ends_not_counted(batch: Batch) -> Batch:
    return {**batch, "completion_mask": batch["completion_mask"] * (batch["input_ids"] != END_ID)}


def prompt_counted(batch: Batch) -> Batch:
    """One token of the prompt counts as part of the answer: the boundary is off by one."""
    mask = batch["completion_mask"].clone()
    mask[:, :-1] |= mask[:, 1:]
    return {**batch, "completion_mask": mask}


def answers_exchanged(batch: Batch) -> Batch:
    def exchanged(value: Any) -> Any:
        import torch

        return torch.cat(value.chunk(2)[::-1]) if torch.is_tensor(value) and value.dim() == 2 else value

    return {name: exchanged(value) for name, value in batch.items()}


def another_pair_as_reference(batch: Batch) -> Batch:
    return {name: value.roll(1, 0) if name.startswith("ref_") else value for name, value in batch.items()}


def score_at_the_last_place(batch: Batch) -> Batch:
    """Padding is not told from words, so that the score is read at the end of the padding."""
    return {**batch, "input_ids": batch["input_ids"].masked_fill(batch["input_ids"] == PAD_ID, PAD_ID + 3)}


def end_cut_off(batch: Batch) -> Batch:
    cut = batch["input_ids"] == END_ID
    mask = batch["attention_mask"].masked_fill(cut, 0)
    return {**batch, "input_ids": batch["input_ids"].masked_fill(cut, PAD_ID), "attention_mask": mask}


def grouped(name: str, change: Callable[[Any], None]) -> Plant:
    """``change(trainer)`` while a method of GRPOTrainer runs; its attributes are as before afterwards."""

    @contextmanager
    def plant() -> Iterator[None]:
        import trl

        def make(original: Any) -> Any:
            def candidate(self: Any, *args: Any, **options: Any) -> Any:
                before = dict(self.__dict__)
                change(self)
                try:
                    return original(self, *args, **options)
                finally:
                    for key in ("scale_rewards", "loss_type"):
                        self.__dict__[key] = before[key]

            return candidate

        with replaced(trl.GRPOTrainer, name, make):
            yield

    return plant


def not_divided(trainer: Any) -> None:
    trainer.scale_rewards = "none"


def divided_by_the_batch(trainer: Any) -> None:
    trainer.scale_rewards = "batch"


def without_temperature() -> AbstractContextManager[None]:
    from trl.trainer import grpo_trainer

    def make(original: Any) -> Any:
        return lambda *args, **options: original(*args, **{**options, "temperature": 1.0})

    return replaced(grpo_trainer, "add_fused_lm_head", make)


def every_answer_alike(trainer: Any) -> None:
    trainer.loss_type = "grpo"


def after_the_end_counted(batch: Batch) -> Batch:
    return {**batch, "completion_mask": batch["completion_mask"] * 0 + 1}


def advantages_of_the_next(batch: Batch) -> Batch:
    return {**batch, "advantages": batch["advantages"].roll(1, 0)}


def planted(name: str, probe: str, plant: Plant, case: str) -> Fault:
    return Fault(name, probe, plant, {"cases": [case]}, needs=NEEDS)


SFT, DPO, REWARD, GRPO = "trl_sft", "trl_dpo", "trl_reward", "trl_grpo"
PADDED, BATCH = "one padded batch", "one batch"
SCORED = "_generate_and_score_completions"
FAULTS = (
    planted("end of sequence not learned", SFT, relabelled(end_not_learned), PADDED),
    planted("prompts learned with the completions", SFT, relabelled(prompt_learned), "completions alone"),
    planted("first word of a completion not learned", SFT, relabelled(first_word_not_learned), "completions alone"),
    planted("packed texts read as one", SFT, batches("SFTTrainer", positions_of_one_text), "packed in one row"),
    planted("micro-batches averaged with equal weight", SFT, tokens_not_counted, "micro-batches of one"),
    planted("adapters scaled by the root of their rank", SFT, adapters_by_the_root, "LoRA"),
    planted("reference with its adapters on", DPO, reference_with_adapters, "LoRA"),
    planted("end of an answer not counted", DPO, batches("DPOTrainer", ends_not_counted), PADDED),
    Fault(
        "last token of the prompt counted",
        DPO,
        batches("DPOTrainer", prompt_counted),
        {"cases": [PADDED]},
        MISSED,
        below="it is the same in both answers, and cancels",
        needs=NEEDS,
    ),
    planted("chosen and rejected exchanged", DPO, batches("DPOTrainer", answers_exchanged), PADDED),
    planted(
        "reference of the pair before",
        DPO,
        batches("DPOTrainer", another_pair_as_reference),
        "reference computed beforehand",
    ),
    planted("score read at the padding", REWARD, batches("RewardTrainer", score_at_the_last_place), PADDED),
    planted("end of sequence cut off", REWARD, batches("RewardTrainer", end_cut_off), PADDED),
    planted("chosen and rejected exchanged", REWARD, batches("RewardTrainer", answers_exchanged), PADDED),
    planted("advantages not divided by the deviation", GRPO, grouped(SCORED, not_divided), BATCH),
    planted("deviation of the batch, not of the group", GRPO, grouped(SCORED, divided_by_the_batch), BATCH),
    planted(
        "temperature left out of the log-probabilities",
        GRPO,
        without_temperature,
        "temperature",
    ),
    planted("every answer counts alike", GRPO, grouped("_compute_loss", every_answer_alike), BATCH),
    planted("tokens after the end counted", GRPO, batches("GRPOTrainer", after_the_end_counted), BATCH),
    planted("advantages of the answer before", GRPO, batches("GRPOTrainer", advantages_of_the_next), BATCH),
)
