"""Loss, gradient and advantages of TRL's GRPOTrainer.

The trainer of the installed release lets a tiny random Llama write several answers to each prompt, scores them with a
function of their words, and takes one step. The expected step for these answers is written out in float64 (Shao et al.
2024, https://arxiv.org/abs/2402.03300). The advantage of an answer is its reward minus the mean of its group, divided
by the standard deviation of the group plus 1e-4. The gradient of the step is the gradient of minus the advantage times
the log-probability of each token, at the temperature at which the token was drawn. The release's `loss_type` decides
how tokens are averaged: by answer and then over answers (grpo), over the tokens of a micro-batch (bnpo), or over the
tokens of the whole step (dapo). A release without this setting may do either of the first two.

Cases, if the release has the setting: one batch; two micro-batches; a temperature of 0.7; two steps for the answers of
one round. All other settings are the defaults of the release, except bf16 and clipping, which are off.

A failure means that the gradient differs by more than 4 x 64 u in the 2-norm, or that the reported loss or an
advantage differs by as much, with u = 2^-24, while the formula in float32 agrees.

Request: seed, cases (names of the cases to run).
"""

from __future__ import annotations

import tempfile
from functools import partial
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Sequence, Tuple

from compatcheck.probes._criterion import UNIT_ROUNDOFF, Measuring, Module, Request, Row, Stage, Tensor
from compatcheck.probes._criterion import judge as judge
from compatcheck.probes.training import _trl as trl_steps

NEEDS: Dict[str, str] = {"torch": ">=2.0", "trl": ">=0.15", "transformers": ">=4.46"}
TIMEOUT: float = 400.0
PROFILE = "deep"
SECONDS: float = 10.0

GROUP, ANSWERS, LONGEST = 4, 8, 10
PROMPTS = (3, 6, 2, 4)
ROUNDINGS = 64


class Trial(NamedTuple):
    """``needs``: the settings that the case is about."""

    settings: Mapping[str, Any] = {}
    needs: Sequence[str] = ()


class Answer(NamedTuple):
    """Tokens of a prompt and its answer, where this starts, and its advantage."""

    tokens: List[int]
    start: int
    advantage: float


class Round(NamedTuple):
    """The answers of one step by micro-batch, the tokens of a step on average, and how far advantages are off."""

    batches: List[List[Answer]]
    usual_tokens: float
    advantages: Row


TRIALS: Dict[str, Trial] = {
    "one batch": Trial({"per_device_train_batch_size": ANSWERS, "gradient_accumulation_steps": 1}),
    "two micro-batches": Trial({"per_device_train_batch_size": GROUP, "gradient_accumulation_steps": 2}),
    "temperature": Trial(
        {"per_device_train_batch_size": ANSWERS, "gradient_accumulation_steps": 1, "temperature": 0.7}, ("temperature",)
    ),
    "two steps for one round": Trial(
        {"per_device_train_batch_size": GROUP, "gradient_accumulation_steps": 1, "steps_per_generation": 2},
        ("steps_per_generation",),
    ),
}


def measure(request: Request, stage: Stage) -> Measuring:
    """Rows of gradient, loss and advantages for each case, and of the formula in float32."""
    import torch

    torch.set_num_threads(1)
    left_out: Row = {}
    for name in request.get("cases") or TRIALS:
        stage(name)
        found = trl_steps.measured(name, int(request["seed"]), partial(_rows, name, int(request["seed"])))
        if "left_out" in found:
            left_out[name] = found["left_out"]
        else:
            yield from found["rows"]
    return {"left_out": left_out}


def _rows(name: str, seed: int) -> Row:
    import torch

    generator = torch.Generator().manual_seed(seed + 1)
    prompts = [{"prompt": trl_steps.words(length, generator)} for length in PROMPTS]
    scored: List[Tuple[str, str, float]] = []

    def reward(prompts: Sequence[str], completions: Sequence[str], **others: Any) -> List[float]:
        rewards = [_reward(text) for text in completions]
        scored.extend(zip(prompts, completions, rewards))
        return rewards

    try:
        with tempfile.TemporaryDirectory() as folder:
            trainer = _trainer(TRIALS[name], seed, prompts, reward, folder)
            batches = _noted(trainer)
            told = trl_steps.step_of(trainer)
    except trl_steps.Refused as reason:
        return {"left_out": str(reason)}
    steps = _round(trainer, batches, scored)
    temperature = float(trainer.args.temperature)
    told_kind = getattr(trainer.args, "loss_type", None)
    kinds = (
        ("grpo", "bnpo") if told_kind is None else ("dapo", "dapo on average") if told_kind == "dapo" else (told_kind,)
    )
    formulas = [partial(_loss, steps=steps, kind=kind, temperature=temperature) for kind in kinds]
    common = {"case": name, "variant": "trainer", "dtype": "float32", "rho": 0.0}
    advantages = {**common, "tensor": "advantages", "nonfinite": 0, **steps.advantages}
    return {"rows": [*trl_steps.compared(name, told, trl_steps.model(seed), formulas), advantages]}


def _reward(text: str) -> float:
    """A number that depends on the words of an answer."""
    return float(sum(trl_steps.ids_of(text)) % 7)


def _trainer(trial: Trial, seed: int, prompts: Sequence[Row], reward: Callable[..., Any], folder: str) -> Any:
    import trl
    from datasets import Dataset

    lengths = {"num_generations": GROUP, "max_completion_length": LONGEST, "max_prompt_length": 32}
    return trl_steps.made(
        trl.GRPOTrainer,
        trl.GRPOConfig,
        {**trl_steps.settings(folder), **lengths, **trial.settings},
        trial.needs,
        model=trl_steps.model(seed),
        reward_funcs=reward,
        train_dataset=Dataset.from_list(list(prompts)),
        tokenizer=trl_steps.tokenizer(),
    )


def _noted(trainer: Any) -> List[Row]:
    """A list to which each micro-batch comes that the trainer prepares."""
    seen: List[Row] = []
    prepare = trainer._prepare_inputs

    def noting(inputs: Any) -> Any:
        seen.append(prepare(inputs))
        return seen[-1]

    trainer._prepare_inputs = noting
    return seen


def _round(trainer: Any, batches: Sequence[Row], scored: Sequence[Tuple[str, str, float]]) -> Round:
    known = _advantages(scored)
    tokenizer = trl_steps.tokenizer()
    answers: List[List[Answer]] = []
    worst = 0.0
    for batch in batches:
        answers.append([])
        for row in range(len(batch["completion_ids"])):
            prompt, answer = (
                batch[f"{part}_ids"][row][batch[f"{part}_mask"][row].bool()].tolist()
                for part in ("prompt", "completion")
            )
            advantage = float(batch["advantages"][row].flatten()[0])
            texts = [tokenizer.decode(part, skip_special_tokens=True) for part in (prompt, answer)]
            exact = known.get((texts[0], texts[1]))
            if exact is not None:
                worst = max(worst, abs(advantage - exact) / max(1.0, abs(exact)))
            answers[-1].append(Answer(prompt + answer, len(prompt), advantage))
    held = getattr(trainer, "_buffered_inputs", None) or list(batches)
    tokens = [int(batch["completion_mask"].sum()) for batch in held if batch is not None]
    usual = sum(tokens) / len(tokens) * trainer.args.gradient_accumulation_steps
    off: Row = {"theta": worst / (ROUNDINGS * UNIT_ROUNDOFF["float32"])}
    if off["theta"] > 1:
        off["says"] = f"an advantage is off by {worst:.2g}"
    return Round(answers, usual, off)


def _advantages(scored: Sequence[Tuple[str, str, float]]) -> Dict[Tuple[str, str], float]:
    """By prompt and answer; groups are scored one after another."""
    import torch

    found = {}
    for first in range(0, len(scored), GROUP):
        group = scored[first : first + GROUP]
        rewards = torch.tensor([reward for _, _, reward in group], dtype=torch.float64)
        values = (rewards - rewards.mean()) / (rewards.std() + 1e-4)
        found.update({(prompt, answer): float(value) for (prompt, answer, _), value in zip(group, values)})
    return found


def _loss(policy: Module, steps: Round, kind: str, temperature: float) -> Tensor:
    import torch

    batches = [[_terms(policy, answer, temperature) for answer in batch] for batch in steps.batches]
    if kind == "grpo":
        return torch.stack([torch.stack([terms.mean() for terms in batch]).mean() for batch in batches]).mean()
    if kind == "bnpo":
        return torch.stack([torch.cat(batch).mean() for batch in batches]).mean()
    every = torch.cat([terms for batch in batches for terms in batch])
    return every.sum() / (steps.usual_tokens if kind == "dapo on average" else len(every))


def _terms(policy: Module, answer: Answer, temperature: float) -> Tensor:
    """What each token of an answer adds; the ratio to the policy that drew it is 1, its gradient that of the log."""
    values = trl_steps.log_probabilities(policy, answer.tokens, answer.start, temperature)
    return -answer.advantage * (values - values.detach()).exp()
