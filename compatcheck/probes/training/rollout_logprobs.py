"""Logits with which transformers generates, compared with a forward pass over the same tokens.

The user's architecture in miniature, with random weights, continues prompts of unequal length: in one batch that is
padded on the left, with the default cache, with a static cache and without a cache, and each prompt alone. The logits
from which each token was drawn are compared with float64 logits of the same sequence alone. The logits of the forward
pass in which trl's GRPO trainer scores the completions are compared in the same way: prompts padded on the left,
completions padded on the right, without position_ids. This pass is judged if the objective draws completions, and
recorded otherwise.

Bound: the bound of `_logits.py`. A failure means that the model generates with different probabilities than it is
trained with: a cache that is read in the wrong place, positions that count padding, or a mask that is lost.

Request: seed, device, dtype, config, training (objective).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Callable, Dict, Iterator, List, NamedTuple, Sequence, Tuple

from compatcheck.probes._criterion import (
    UNIT_ROUNDOFF,
    Measured,
    Measuring,
    Module,
    Request,
    Row,
    Stage,
    Tensor,
    judge_rows,
    verdict,
)
from compatcheck.probes._device import NO_DEVICE, device_of
from compatcheck.probes.training._batches import padded, sequences
from compatcheck.probes.training._exact import float64_everywhere
from compatcheck.probes.training._logits import attempted, deviation, logits_of, singles_of
from compatcheck.probes.training._model import Built, Unbuildable, build, exact_instance, instance
from compatcheck.probes.training._recipe import recipe_of

if TYPE_CHECKING:
    from compatcheck.results.findings import Outcome

NEEDS: Dict[str, str] = {"torch": ">=1.13", "transformers": ">=4.31"}
TIMEOUT: float = 120.0
PROFILE = "deep"
SECONDS: float = 4.0
ASKED_BY: Tuple[str, ...] = ("training.sampling",)

COUNT, NEW_TOKENS = 4, 12
DRAWING = ("grpo", "rloo")
NOT_RUN = "this case cannot run here"
NOT_DRAWN = "the objective draws no completions"
DEFAULT = "default cache"
WAYS: Tuple[Tuple[str, Row], ...] = (
    (DEFAULT, {}),
    ("static cache", {"cache_implementation": "static"}),
    ("no cache", {"use_cache": False}),
)


class Trial(NamedTuple):
    """A model at one dtype, the float64 one of the same weights, and the prompts."""

    model: Module
    reference: Module
    built: Built
    dtype: str
    device: str
    prompts: List[Tensor]


class Drawn(NamedTuple):
    """Whole sequences by prompt, and for each the logits that its new tokens were drawn from."""

    sequences: List[Tensor]
    logits: List[Tensor]


def measure(request: Request, stage: Stage) -> Measuring:
    """A row for each dtype and way of generating, and for the trainer's pass."""
    device = device_of(request)
    if device is None:
        return {"unsupported": NO_DEVICE}
    stage("model")
    try:
        built = build(request)
    except Unbuildable as reason:
        return {"unsupported": str(reason)}
    if not callable(getattr(built.model_class, "generate", None)):
        return {"unsupported": f"{built.model_class.__name__} cannot generate"}
    objective = (request.get("training") or {}).get("objective")
    prompts = sequences(built.vocabulary, built.special_ids, int(request["seed"]))[:COUNT]
    reference = exact_instance(built).eval()
    if _looks_ahead(reference, prompts[0]):
        return {"unsupported": f"the logits of {built.model_class.__name__} depend on the tokens that follow"}
    for dtype in dict.fromkeys(("float32", recipe_of(request).dtype)):
        if dtype == "float16" and device == "cpu":
            continue
        stage(dtype)
        model = _ready(instance(built, dtype).to(device))
        trial = Trial(model, reference, built, dtype, device, prompts)
        yield from _generated_rows(trial, int(request["seed"]))
        yield from _trainer_rows(trial, objective in DRAWING)
    return {"device": device, "model": built.facts}


def judge(measured: Measured) -> Tuple[Outcome, str]:
    """The worst judged row decides; a model that does not generate by default, small as it is, is watched."""
    if "unsupported" in measured:
        return "skip", str(measured["unsupported"])
    rows = measured["rows"]
    outcome, why = judge_rows(rows)
    silent = [row for row in rows if "error" in row and row["variant"].startswith(DEFAULT)]
    if outcome == "pass" and silent:
        return "watch", f"{silent[0]['variant']} in {silent[0]['dtype']} does not run here: {silent[0]['error']}"
    return outcome, why


def _looks_ahead(reference: Module, tokens: Tensor) -> bool:
    """Whether more tokens change the logits of those before them, as in an encoder or by a length that scales RoPE."""
    with float64_everywhere():
        whole, part = singles_of(reference, [tokens, tokens[:-1]], "cpu")
    return float((whole[:-1] - part).norm()) > UNIT_ROUNDOFF["float32"] * float(part.norm())


def _ready(model: Module) -> Module:
    """For generation as it stands: no token ends a sequence, and nothing but the request warps a distribution."""
    from transformers import GenerationConfig

    model.generation_config = GenerationConfig()
    model.config.eos_token_id = None
    return model.eval()


def _generated_rows(trial: Trial, seed: int) -> Iterator[Row]:
    batch = padded(trial.prompts, "left", trial.built.pad_id)
    row: Row = {"case": f"generation, {trial.dtype}", "dtype": trial.dtype, "tensor": "logits"}
    for variant, options in WAYS:
        found = _row(
            trial, {**row, "variant": f"{variant}, padded on the left"}, partial(_drawn, trial, batch, seed, options)
        )
        yield {**found, "recorded": NOT_RUN} if "error" in found else found
    alone = _row(trial, {**row, "variant": "default cache, one by one"}, partial(_drawn_alone, trial, seed))
    yield {**alone, "recorded": NOT_RUN} if "error" in alone else alone
    plain = _row(trial, {**row, "variant": "forward pass, one by one"}, partial(_scored_alone, trial))
    yield {**plain, "control": True}


def _trainer_rows(trial: Trial, judged: bool) -> Iterator[Row]:
    """The pass that scores completions, over prompts cut in two."""
    row: Row = {"case": f"scoring, {trial.dtype}", "dtype": trial.dtype, "tensor": "logits"}
    yield {
        **_row(trial, {**row, "variant": "forward pass, one by one"}, partial(_scored_alone, trial)),
        "control": True,
    }
    found = _row(trial, {**row, "variant": "forward pass, padded on both sides"}, partial(_scored, trial))
    yield found if judged else {**found, "recorded": NOT_DRAWN}


def _row(trial: Trial, row: Row, draw: Callable[[], Drawn]) -> Row:
    """The row with how far the logits are from the exact ones of the same tokens."""

    def measured() -> Row:
        drawn = draw()
        with float64_everywhere():
            exact = _tail(singles_of(trial.reference, drawn.sequences, "cpu"), drawn)
        plain = _tail(singles_of(trial.model, drawn.sequences, trial.device), drawn)
        return deviation(drawn.logits, exact, plain, trial.dtype)

    row = attempted(row, measured)
    if "theta" in row and not row["nonfinite"] and verdict(row["theta"], row["rho"]) == "fail":
        row["says"] = f"logits of a new token are off by {row['error_share']:.2g} of their size"
    return row


def _tail(logits: Sequence[Tensor], drawn: Drawn) -> List[Tensor]:
    """Of logits of whole sequences, those that predict the new tokens."""
    return [whole[len(whole) - 1 - len(part) : -1] for whole, part in zip(logits, drawn.logits)]


def _drawn(trial: Trial, batch: Row, seed: int, options: Row) -> Drawn:
    """New tokens for a batch, sampled from the plain distribution."""
    import torch
    from transformers import GenerationConfig

    torch.manual_seed(seed)
    plain = {"do_sample": True, "temperature": 1.0, "top_k": 0, "top_p": 1.0, "max_new_tokens": NEW_TOKENS}
    config = GenerationConfig(
        **plain, **options, pad_token_id=trial.built.pad_id, return_dict_in_generate=True, output_scores=True
    )
    inputs = {key: batch[key].to(trial.device) for key in ("input_ids", "attention_mask")}
    with torch.no_grad():
        found = trial.model.generate(**inputs, generation_config=config)
    scores = torch.stack([step.double().cpu() for step in found.scores], 1)
    tokens = found.sequences.cpu()
    kept = [row[batch["input_ids"].shape[1] :] for row in tokens]
    prompts = [ids[mask.bool()] for ids, mask in zip(batch["input_ids"], batch["attention_mask"])]
    return Drawn([torch.cat(pair) for pair in zip(prompts, kept)], list(scores))


def _drawn_alone(trial: Trial, seed: int) -> Drawn:
    """New tokens for each prompt in a batch of its own."""
    found = [_drawn(trial, padded([prompt], "left", trial.built.pad_id), seed, {}) for prompt in trial.prompts]
    return Drawn([each.sequences[0] for each in found], [each.logits[0] for each in found])


def _scored_alone(trial: Trial) -> Drawn:
    """Logits of the second half of each prompt, in a pass of its own."""
    drawn = Drawn(trial.prompts, [prompt[len(prompt) // 2 :] for prompt in trial.prompts])
    return drawn._replace(logits=_tail(singles_of(trial.model, trial.prompts, trial.device), drawn))


def _scored(trial: Trial) -> Drawn:
    """The same in one batch: first halves padded on the left, second halves on the right."""
    import torch

    halves = [(prompt[: len(prompt) // 2], prompt[len(prompt) // 2 :]) for prompt in trial.prompts]
    sides = [
        padded([half[number] for half in halves], side, trial.built.pad_id)
        for number, side in enumerate(("left", "right"))
    ]
    batch = {key: torch.cat([side[key] for side in sides], 1) for key in ("input_ids", "attention_mask")}
    logits = logits_of(trial.model, batch, trial.device)
    start = sides[0]["input_ids"].shape[1] - 1
    parts = [row[start : start + len(completion)] for row, (_, completion) in zip(logits, halves)]
    return Drawn(trial.prompts, parts)
