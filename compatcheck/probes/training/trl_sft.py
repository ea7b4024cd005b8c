"""Loss and gradient of TRL's SFTTrainer.

The trainer of the installed release, built from texts as users build it, takes one step on a tiny random Llama. The
expected step is written out in float64: the negative log-probability of each trained token, given the earlier tokens
of its own sequence, averaged over all trained tokens of the step.

Cases, if the release has the setting: texts of unequal length in one padded batch; the same texts as four micro-
batches of one; packed in one row, also by the strategy that splits long texts; without padding; prompts with
completions, of which only the completions are trained; the template of an answer (`DataCollatorForCompletionOnlyLM`);
checkpointing, re-entrant and not; LoRA, plain and under re-entrant checkpointing. All other settings are the defaults
of the release, except bf16 and clipping, which are off, so that rounding is that of float32.

A failure means that the gradient differs by more than 4 x 64 u in the 2-norm, or that the reported loss differs by as
much, with u = 2^-24, while the formula in float32 agrees. transformers before 4.46 averages micro-batches of unequal
length with equal weight. The correct gradient is the gradient of the batch that the micro-batches form together.

Request: seed, cases (names of the cases to run).
"""

from __future__ import annotations

import tempfile
from functools import partial
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from compatcheck.probes._criterion import Measuring, Module, Request, Row, Stage, Tensor
from compatcheck.probes._criterion import judge as judge
from compatcheck.probes.training import _trl as trl_steps

NEEDS: Dict[str, str] = {"torch": ">=2.0", "transformers": ">=4.31", "trl": ">=0.7"}
TIMEOUT: float = 400.0
PROFILE = "deep"
SECONDS: float = 12.0

LENGTHS = (5, 9, 14, 7)
PROMPTS = (3, 6, 2, 4)
ANSWER = trl_steps.WORDS[-1]
CHECKPOINTED = {"gradient_checkpointing": True}


class Trial(NamedTuple):
    """``data``: texts, prompts with completions, or texts with an answer's template; ``needs``: its own settings."""

    data: str = "texts"
    settings: Mapping[str, Any] = {}
    needs: Sequence[str] = ()
    lora: bool = False


def _reentrant(flag: bool) -> Dict[str, Any]:
    return {**CHECKPOINTED, "gradient_checkpointing_kwargs": {"use_reentrant": flag}}


ONE_BATCH = {"per_device_train_batch_size": len(LENGTHS), "gradient_accumulation_steps": 1}
MICRO_BATCHES = {"per_device_train_batch_size": 1, "gradient_accumulation_steps": len(LENGTHS)}
PACKED = {"packing": True, "max_length": 64, "max_seq_length": 64, "per_device_train_batch_size": 1}
SPLIT = ("bfd_split", "bfd-requeue")
"""The strategy that splits long texts, as releases name it."""
TRIALS: Dict[str, Trial] = {
    "one padded batch": Trial(),
    "micro-batches of one": Trial(settings=MICRO_BATCHES),
    "packed in one row": Trial(
        settings=PACKED,
        needs=("packing_strategy",),
    ),
    "packed, long texts split": Trial(
        settings={**PACKED, "packing_strategy": SPLIT},
        needs=("packing_strategy",),
    ),
    "without padding": Trial(settings={"padding_free": True, "max_length": None}, needs=("padding_free",)),
    "completions alone": Trial("completions", needs=("completion_only_loss",)),
    "completions alone, micro-batches of one": Trial("completions", MICRO_BATCHES, ("completion_only_loss",)),
    "template of the answer": Trial("template"),
    "checkpointed": Trial(settings=_reentrant(False), needs=("gradient_checkpointing_kwargs",)),
    "checkpointed, re-entrant": Trial(settings=_reentrant(True), needs=("gradient_checkpointing_kwargs",)),
    "LoRA": Trial(lora=True),
    "LoRA, checkpointed, re-entrant": Trial(
        settings=_reentrant(True), needs=("gradient_checkpointing_kwargs",), lora=True
    ),
}


def measure(request: Request, stage: Stage) -> Measuring:
    """Rows of gradient and loss for each case, and of the formula in float32."""
    import torch

    torch.set_num_threads(1)
    left_out: Row = {}
    for name in request.get("cases") or TRIALS:
        stage(name)
        found = trl_steps.measured(name, int(request["seed"]), partial(_rows, name, request))
        if "left_out" in found:
            left_out[name] = found["left_out"]
        else:
            yield from found["rows"]
    return {"left_out": left_out}


def _rows(name: str, request: Request) -> Row:
    trial, seed = TRIALS[name], int(request["seed"])
    try:
        texts, learned = _data(trial.data, seed)
        reference = trl_steps.model(seed)
        with tempfile.TemporaryDirectory() as folder:
            trainer = _trainer(trial, seed, texts, folder)
            if trial.lora:
                reference = trl_steps.adapted(reference, trainer.model)
            told = trl_steps.step_of(trainer)
    except trl_steps.Refused as reason:
        return {"left_out": str(reason)}
    return {"rows": trl_steps.compared(name, told, reference, [lambda scored: _loss(scored, learned)])}


def _data(kind: str, seed: int) -> Tuple[List[Dict[str, str]], List[Tuple[List[int], int]]]:
    """Rows of a data set, and for each its tokens and the place of the first that is learned."""
    import torch

    generator = torch.Generator().manual_seed(seed + 1)
    rows, learned = [], []
    for length, before in zip(LENGTHS, PROMPTS):
        prompt, answer = trl_steps.words(before, generator), trl_steps.words(length, generator) + trl_steps.END
        if kind == "completions":
            rows.append({"prompt": prompt, "completion": " " + answer})
            start = before
        elif kind == "template":
            rows.append({"text": f"{prompt} {ANSWER} {answer}"})
            start = before + 1
        else:
            rows.append({"text": f"{prompt} {answer}"})
            start = 1
        whole = rows[-1].get("text") or f"{prompt} {answer}"
        learned.append((trl_steps.ids_of(whole), start))
    return rows, learned


def _loss(scored: Module, learned: Sequence[Tuple[List[int], int]]) -> Tensor:
    import torch

    return -torch.cat([trl_steps.log_probabilities(scored, tokens, start) for tokens, start in learned]).mean()


def _trainer(trial: Trial, seed: int, texts: Sequence[Mapping[str, str]], folder: str) -> Any:
    import trl
    from datasets import Dataset
    from transformers import TrainingArguments

    tokenizer = trl_steps.tokenizer()
    settings = {**trl_steps.settings(folder), **ONE_BATCH, "dataset_text_field": "text", **trial.settings}
    config = getattr(trl, "SFTConfig", TrainingArguments)
    if settings.get("packing_strategy") == SPLIT:
        settings["packing_strategy"] = _splitting(config)
    return trl_steps.made(
        trl.SFTTrainer,
        config,
        settings,
        trial.needs,
        model=trl_steps.model(seed),
        train_dataset=Dataset.from_list([dict(row) for row in texts]),
        tokenizer=tokenizer,
        data_collator=_collator(trial.data, tokenizer),
        peft_config=trl_steps.lora() if trial.lora else None,
    )


def _splitting(config: Any) -> str:
    field = getattr(config, "__dataclass_fields__", {}).get("packing_strategy")
    choices = field.metadata.get("choices") or () if field else ()
    found = [name for name in SPLIT if name in choices]
    if not found:
        raise trl_steps.Refused("this release has no strategy that splits long texts")
    return found[0]


def _collator(kind: str, tokenizer: Any) -> Optional[Any]:
    if kind != "template":
        return None
    try:
        from trl import DataCollatorForCompletionOnlyLM
    except ImportError:
        raise trl_steps.Refused("this release has no DataCollatorForCompletionOnlyLM") from None
    return DataCollatorForCompletionOnlyLM(response_template=trl_steps.ids_of(ANSWER), tokenizer=tokenizer)
