"""Loss and gradient of TRL's RewardTrainer.

The trainer of the installed release takes one step on a tiny random Llama that gives each sequence one score. The
expected step is written out in float64: minus the log-sigmoid of the score of the chosen text minus the score of the
rejected text, averaged over the pairs (Ouyang et al. 2022, https://arxiv.org/abs/2203.02155, equation 1). Each text is
scored by itself, at its last token.

Cases: pairs of unequal length in one padded batch; the same pairs as micro-batches of one; and attention dropout,
which `disable_dropout`, on by default, must turn off. The dropout case runs if the user's model has attention dropout
or if the request names the case. All other settings are the defaults of the release, except bf16 and clipping, which
are off.

A failure means that the gradient differs by more than 4 x 64 u in the 2-norm, or that the reported loss differs by as
much, with u = 2^-24, while the formula in float32 agrees.

Request: seed, config (its attention_dropout), cases (names of the cases to run).
"""

from __future__ import annotations

import tempfile
from functools import partial
from typing import Any, Dict, List, Mapping, NamedTuple, Sequence

from compatcheck.probes._criterion import Measuring, Module, Request, Row, Stage, Tensor
from compatcheck.probes._criterion import judge as judge
from compatcheck.probes.training import _trl as trl_steps

NEEDS: Dict[str, str] = {"torch": ">=2.0", "transformers": ">=4.31", "trl": ">=0.7"}
TIMEOUT: float = 400.0
PROFILE = "deep"
SECONDS: float = 5.0

CHOSEN, REJECTED = (5, 9, 14, 7), (8, 4, 3, 12)
DROPOUT = 0.1


class Trial(NamedTuple):
    """``needs``: the settings that the case is about; ``dropout``: that of the model's attention."""

    settings: Mapping[str, Any] = {}
    needs: Sequence[str] = ()
    dropout: float = 0.0


ONE_BATCH = {"per_device_train_batch_size": len(CHOSEN), "gradient_accumulation_steps": 1}
MICRO_BATCHES = {"per_device_train_batch_size": 1, "gradient_accumulation_steps": len(CHOSEN)}
TRIALS: Dict[str, Trial] = {
    "one padded batch": Trial(),
    "micro-batches of one": Trial(MICRO_BATCHES),
    "attention dropout": Trial(needs=("disable_dropout",), dropout=DROPOUT),
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
            kind: trl_steps.words(length, generator) + trl_steps.END
            for kind, length in (("chosen", one), ("rejected", two))
        }
        for one, two in zip(CHOSEN, REJECTED)
    ]
    try:
        with tempfile.TemporaryDirectory() as folder:
            told = trl_steps.step_of(_trainer(trial, seed, texts, folder))
    except trl_steps.Refused as reason:
        return {"left_out": str(reason)}
    loss = partial(_loss, texts=texts)
    return {"rows": trl_steps.compared(name, told, trl_steps.model(seed, scores=True), [loss])}


def _loss(scored: Module, texts: Sequence[Mapping[str, str]]) -> Tensor:
    import torch
    from torch.nn.functional import logsigmoid

    margins = [_score(scored, row["chosen"]) - _score(scored, row["rejected"]) for row in texts]
    return -logsigmoid(torch.stack(margins)).mean()


def _score(scored: Module, text: str) -> Tensor:
    """The score of the last token, from the body and the head of the model."""
    import torch

    hidden = scored.model(input_ids=torch.tensor([trl_steps.ids_of(text)]))[0]
    return scored.score(hidden[0, -1])[0]


def _trainer(trial: Trial, seed: int, texts: Sequence[Mapping[str, str]], folder: str) -> Any:
    import inspect

    import trl
    from datasets import Dataset

    rows: List[Row] = [dict(row) for row in texts]
    if "processing_class" not in inspect.signature(trl.RewardTrainer.__init__).parameters:
        rows = [_tokenized(row) for row in rows]
    settings = {**trl_steps.settings(folder), **ONE_BATCH, "max_length": 64, "remove_unused_columns": False}
    return trl_steps.made(
        trl.RewardTrainer,
        trl.RewardConfig,
        {**settings, **trial.settings},
        trial.needs,
        model=trl_steps.model(seed, trial.dropout, scores=True),
        train_dataset=Dataset.from_list(rows),
        tokenizer=trl_steps.tokenizer(),
    )


def _tokenized(row: Mapping[str, str]) -> Row:
    """The columns that releases before 0.12 ask of their users."""
    columns: Row = {}
    for kind, text in row.items():
        columns[f"input_ids_{kind}"] = trl_steps.ids_of(text)
        columns[f"attention_mask_{kind}"] = [1] * len(columns[f"input_ids_{kind}"])
    return columns
