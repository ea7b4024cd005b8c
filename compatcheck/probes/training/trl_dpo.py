"""Loss and gradient of TRL's DPOTrainer.

The trainer of the installed release, built from texts as users build it, takes one step on a tiny random Llama, with a
second one as reference. The expected step is written out in float64 (Rafailov et al. 2023,
https://arxiv.org/abs/2305.18290): minus the log-sigmoid of beta times the difference of the two log-ratios, averaged
over the pairs. The log-probability of an answer is the sum over its tokens and the end of sequence. Prompts may or may
not start with the beginning-of-sequence token, because releases differ in this; the closer of the two counts.

Cases, if the release has the setting: pairs of unequal length in one batch; the same pairs as micro-batches of one;
without padding; the log-probabilities of the reference computed beforehand; LoRA, where the model without the adapter
is the reference; and attention dropout, which `disable_dropout`, on by default, must turn off. The dropout case runs
if the user's model has attention dropout or if the request names the case. All other settings are the defaults of the
release, except bf16 and clipping, which are off.

A failure means that the gradient differs by more than 4 x 64 u in the 2-norm, or that the reported loss differs by as
much, with u = 2^-24, while the formula in float32 agrees.

Request: seed, config (its attention_dropout), cases (names of the cases to run).
"""

from __future__ import annotations

import tempfile
from functools import partial
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Sequence

from compatcheck.probes._criterion import Measuring, Module, Request, Row, Stage, Tensor
from compatcheck.probes._criterion import judge as judge
from compatcheck.probes.training import _trl as trl_steps

NEEDS: Dict[str, str] = {"torch": ">=2.0", "transformers": ">=4.31", "trl": ">=0.7"}
TIMEOUT: float = 400.0
PROFILE = "deep"
SECONDS: float = 10.0

BETA = 0.1
PROMPTS, CHOSEN, REJECTED = (3, 6, 2, 4), (5, 9, 14, 7), (8, 4, 3, 12)
DROPOUT = 0.1


class Trial(NamedTuple):
    """``needs``: the settings that the case is about; ``dropout``: that of the model's attention."""

    settings: Mapping[str, Any] = {}
    needs: Sequence[str] = ()
    dropout: float = 0.0
    lora: bool = False


class Pair(NamedTuple):
    """Tokens of a prompt and of the two answers, each with its end."""

    prompt: List[int]
    chosen: List[int]
    rejected: List[int]


ONE_BATCH = {"per_device_train_batch_size": len(PROMPTS), "gradient_accumulation_steps": 1}
MICRO_BATCHES = {"per_device_train_batch_size": 1, "gradient_accumulation_steps": len(PROMPTS)}
TRIALS: Dict[str, Trial] = {
    "one padded batch": Trial(),
    "micro-batches of one": Trial(MICRO_BATCHES),
    "without padding": Trial({"padding_free": True, "max_length": None}, ("padding_free",)),
    "reference computed beforehand": Trial({"precompute_ref_log_probs": True}, ("precompute_ref_log_probs",)),
    "attention dropout": Trial(needs=("disable_dropout",), dropout=DROPOUT),
    "LoRA": Trial(lora=True),
}


def measure(request: Request, stage: Stage) -> Measuring:
    """Rows of gradient and loss for each case, and of the formula in float32."""
    import torch

    torch.set_num_threads(1)
    dropout = float((request.get("config") or {}).get("attention_dropout") or 0)
    left_out: Row = {}
    for name in request.get("cases") or [each for each, trial in TRIALS.items() if dropout or not trial.dropout]:
        stage(name)
        found = trl_steps.measured(name, int(request["seed"]), partial(_rows, name, int(request["seed"])))
        if "left_out" in found:
            left_out[name] = found["left_out"]
        else:
            yield from found["rows"]
    return {"left_out": left_out}


def _rows(name: str, seed: int) -> Row:
    import torch

    trial = TRIALS[name]
    generator = torch.Generator().manual_seed(seed + 1)
    texts = [
        {
            "prompt": trl_steps.words(prompt, generator),
            "chosen": " " + trl_steps.words(chosen, generator),
            "rejected": " " + trl_steps.words(rejected, generator),
        }
        for prompt, chosen, rejected in zip(PROMPTS, CHOSEN, REJECTED)
    ]
    policy, reference = trl_steps.model(seed), trl_steps.model(seed if trial.lora else seed + 100)
    try:
        with tempfile.TemporaryDirectory() as folder:
            trainer = _trainer(trial, seed, texts, folder)
            if trial.lora:
                trl_steps.move_adapters(trainer.model, seed)
                policy = trl_steps.adapted(policy, trainer.model)
            told = trl_steps.step_of(trainer)
    except trl_steps.Refused as reason:
        return {"left_out": str(reason)}
    formulas = [partial(_loss, reference=reference, pairs=_pairs(texts, start)) for start in ([], [trl_steps.START_ID])]
    return {"rows": trl_steps.compared(name, told, policy, formulas)}


def _pairs(texts: Sequence[Mapping[str, str]], start: List[int]) -> List[Pair]:
    end = [trl_steps.END_ID]
    read: Callable[[str], List[int]] = trl_steps.ids_of
    return [Pair(start + read(row["prompt"]), read(row["chosen"]) + end, read(row["rejected"]) + end) for row in texts]


def _loss(policy: Module, reference: Module, pairs: Sequence[Pair]) -> Tensor:
    import torch
    from torch.nn.functional import logsigmoid

    with torch.no_grad():
        fixed = trl_steps.like(reference, policy)
        before = [_margin(fixed, pair) for pair in pairs]
    margins = [_margin(policy, pair) - each for pair, each in zip(pairs, before)]
    return -logsigmoid(BETA * torch.stack(margins)).mean()


def _margin(scored: Module, pair: Pair) -> Tensor:
    chosen, rejected = (
        trl_steps.log_probabilities(scored, pair.prompt + answer, len(pair.prompt)).sum()
        for answer in (pair.chosen, pair.rejected)
    )
    return chosen - rejected


def _trainer(trial: Trial, seed: int, texts: Sequence[Mapping[str, str]], folder: str) -> Any:
    import trl
    from datasets import Dataset
    from transformers import TrainingArguments

    lengths = {"max_length": 64, "max_prompt_length": 32, "max_target_length": 32, "remove_unused_columns": False}
    settings = {**trl_steps.settings(folder), **ONE_BATCH, "beta": BETA, **lengths, **trial.settings}
    return trl_steps.made(
        trl.DPOTrainer,
        getattr(trl, "DPOConfig", TrainingArguments),
        settings,
        trial.needs,
        model=trl_steps.model(seed, trial.dropout),
        ref_model=None if trial.lora else trl_steps.model(seed + 100, trial.dropout),
        train_dataset=Dataset.from_list([dict(row) for row in texts]),
        tokenizer=trl_steps.tokenizer(),
        peft_config=trl_steps.lora() if trial.lora else None,
    )
