"""Sequences that share a batch or a row, and padding.

The user's architecture in miniature, with random weights, gets the same sequences in several forms: one by one; padded
on the right; padded on the left (several sequences, and one alone); with other token ids under the padding; and packed
in one row whose position_ids restart, as padding-free collators send them, with and without an attention_mask of ones.

If packing is judged, the loss and every gradient of the packed row are also compared with the sequences one by one in
float64, because a backward pass has its own kernels.

Bound: the logits of each token are compared with the float64 logits of its sequence alone. They may differ by 64 u in
float32 and 16 u in 16 bits, with u the unit roundoff of the dtype (measured on 22 healthy families: at most 33 u and 5
u; qwen3_next 250 u), or by 4 times the error of the sequences one by one if this is larger. A failure means that
tokens see padding or another sequence. Leaks in a packed row are 8 % to 170 % of the logits. Losses and gradients have
the bounds of `_passes.py`.

Padding is always judged. Packing without a mask is judged if the training file packs: from 4.53.1 on, transformers
derives the sequences from position_ids, without flash attention. With a mask of ones, every release up to 5.23.0
treats the row as one sequence (huggingface/transformers#46634, closed: such a batch needs no mask). The probe cannot
see whether a trainer sends such a mask, so this is judged only on request. If the training file packs and the
framework is not TRL, which sends no mask, the outcome is a watch. Recurrent layers cannot separate sequences by
positions alone, so packing is only recorded for them.

Request: seed, device, dtype, config, training; packed ("positions" or "with mask": what the trainer sends).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Tuple

from compatcheck.probes._criterion import (
    Measured,
    Measuring,
    Module,
    Request,
    Row,
    Stage,
    Tensor,
    Tensors,
    judge_rows,
    verdict,
)
from compatcheck.probes._device import NO_DEVICE, device_of
from compatcheck.probes.training._batches import packed, padded, sequences, singles
from compatcheck.probes.training._exact import float64_everywhere
from compatcheck.probes.training._logits import attempted, deviation, logits_of, positions_of, singles_of, takes
from compatcheck.probes.training._model import Built, Unbuildable, build, exact_instance, instance
from compatcheck.probes.training._passes import Pass, compared, run, sums
from compatcheck.probes.training._recipe import Recipe, recipe_of

if TYPE_CHECKING:
    from compatcheck.results.findings import Outcome

NEEDS: Dict[str, str] = {"torch": ">=1.13", "transformers": ">=4.31"}
TIMEOUT: float = 120.0
PROFILE = "quick"
SECONDS: float = 1.5
ASKED_BY: Tuple[str, ...] = ("training.packing", "training.padding_free", "packed")

COUNT = 4
WITH_MASK = "with mask"
SENDS_NO_MASK = "trl"
FLASH = ("flash_attention_2", "flash_attention_3")
RECURRENT = ("linear", "mamba", "recurrent", "conv")
NOT_RUN = "this case cannot run here"
NOT_PACKING = "the training file does not pack sequences"
NOT_ASKED = "only some trainers send a mask with packed rows"
HAS_RECURRENCE = "recurrent layers cannot separate sequences by positions alone"


class Trial(NamedTuple):
    """One model at one dtype with one attention implementation; ``exact`` and ``alone`` are logits by sequence.

    ``whole``: the exact loss and gradients of all sequences, None where packing is not judged.
    """

    model: Module
    built: Built
    dtype: str
    attention: str
    device: str
    chosen: List[Tensor]
    exact: List[Tensor]
    alone: List[Tensor]
    whole: Optional[Pass]


def measure(request: Request, stage: Stage) -> Measuring:
    """A row for each dtype, attention implementation and way of batching."""
    device = device_of(request)
    if device is None:
        return {"unsupported": NO_DEVICE}
    stage("model")
    try:
        built = build(request)
    except Unbuildable as reason:
        return {"unsupported": str(reason)}
    training = request.get("training") or {}
    packs = bool(training.get("packing") or training.get("padding_free"))
    asked = str(request.get("packed") or "")
    chosen = sequences(built.vocabulary, built.special_ids, int(request["seed"]))[:COUNT]
    stage("float64")
    with float64_everywhere():
        reference = exact_instance(built)
        exact = singles_of(reference, chosen, "cpu")
        whole = sums(reference, singles(chosen), (COUNT,))[COUNT] if packs or asked else None
    for dtype in _dtypes(request, device):
        for attention in _attentions(request, built, dtype, device):
            stage(f"{dtype} {attention}")
            try:
                model = instance(built, dtype, attention).to(device)
            except (Unbuildable, ImportError):
                continue
            row = {"case": f"one by one, {dtype}", "variant": attention, "dtype": dtype, "recorded": NOT_RUN}
            alone, row = _alone(model, chosen, device, row)
            if not alone:
                yield row
                continue
            trial = Trial(model, built, dtype, attention, device, chosen, exact, alone, whole)
            yield from _padding_rows(trial)
            yield from _packing_rows(trial, _why_recorded(built, packs, asked))
    unknown = bool(training.get("packing")) and training.get("framework") != SENDS_NO_MASK and not asked
    return {"device": device, "mask_unknown": unknown, "model": built.facts}


def judge(measured: Measured) -> Tuple[Outcome, str]:
    """The worst judged row; a leak that only some trainers reach is watched where the training file packs."""
    if "unsupported" in measured:
        return "skip", str(measured["unsupported"])
    rows = measured["rows"]
    outcome, why = judge_rows(rows)
    silent = [row for row in rows if row.get("recorded") == NOT_RUN]
    if outcome == "pass" and silent:
        return "watch", f"{silent[0]['variant']} in {silent[0]['dtype']} does not run here: {silent[0]['error']}"
    unsure = [row for row in rows if row.get("recorded") == NOT_ASKED and "theta" in row]
    leaking = [row for row in unsure if verdict(row["theta"], row["rho"]) == "fail"]
    if outcome == "pass" and measured["mask_unknown"] and leaking:
        share = max(float(row["error_share"]) for row in leaking)
        return "watch", (
            f"a packed row that comes with a mask of ones is treated as one sequence (logits off by {share:.0%})"
        )
    return outcome, why


def _alone(model: Module, chosen: List[Tensor], device: str, row: Row) -> Tuple[List[Tensor], Row]:
    """Logits of the sequences one by one; where there are none, the row tells what was raised."""
    found: List[Tensor] = []

    def measured() -> Row:
        found.extend(singles_of(model, chosen, device))
        return {}

    return found, attempted(row, measured)


def _dtypes(request: Request, device: str) -> List[str]:
    """float32 and the user's dtype; float16 on a CPU is slow and shows nothing more."""
    own = recipe_of(request).dtype
    return ["float32"] if own == "float32" or (own == "float16" and device == "cpu") else ["float32", own]


def _attentions(request: Request, built: Built, dtype: str, device: str) -> List[str]:
    """The one the user names, or all that the class offers; flash attention needs a GPU and 16 bits."""
    asked = recipe_of(request).attention
    if asked in FLASH:
        return [*built.attentions, asked] if device == "cuda" and dtype != "float32" else list(built.attentions)
    return [asked] if asked in built.attentions else list(built.attentions)


def _why_recorded(built: Built, packs: bool, asked: str) -> Tuple[Optional[str], Optional[str]]:
    """Why a packed row without and with a mask is only recorded; None: it is judged."""
    config = built.config.to_dict()
    kinds = [str(kind) for kind in config.get("layer_types") or []] + [str(config.get("model_type"))]
    if any(part in kind for kind in kinds for part in RECURRENT):
        return HAS_RECURRENCE, HAS_RECURRENCE
    return None if packs or asked else NOT_PACKING, None if asked == WITH_MASK else NOT_ASKED


def _padding_rows(trial: Trial) -> Iterator[Row]:
    plain, other = trial.built.pad_id, 3 if trial.built.pad_id != 3 else 4
    yield _row(trial, "padding", "one by one", lambda: trial.alone, control=True)
    for side in ("right", "left"):
        yield _row(trial, "padding", f"padded {side}", partial(_unpadded, trial, side, plain))
        yield _row(trial, "padding", f"other ids under {side} padding", partial(_unpadded, trial, side, other))
    yield _row(trial, "padding", "one alone, padded left", partial(_lonely, trial))


def _packing_rows(trial: Trial, recorded: Tuple[Optional[str], Optional[str]]) -> Iterator[Row]:
    if not takes(trial.model, "position_ids"):
        return
    yield _row(trial, "packing", "one by one", lambda: trial.alone, control=True)
    for with_mask, variant in ((False, "packed row"), (True, "packed row with a mask of ones")):
        why = recorded[with_mask]
        notes = {} if why is None else {"recorded": why}
        yield _row(trial, "packing", variant, partial(_packed, trial, with_mask), **notes)
        if trial.whole is not None and why is None:
            yield from _gradient_rows(trial, trial.whole, with_mask, variant)


def _gradient_rows(trial: Trial, whole: Pass, with_mask: bool, variant: str) -> Iterator[Row]:
    """Loss and gradients of a packed row, and of the sequences one by one as the control."""
    recipe = Recipe(trial.dtype, trial.dtype)
    row = {"case": f"packing, loss and gradients, {trial.dtype}", "dtype": trial.dtype}
    alone = run(trial.model, recipe, singles(trial.chosen), trial.device)
    control = f"one by one, {trial.attention}"
    yield {**row, "variant": control, "control": True, **compared(alone, whole, None, trial.dtype)}

    def measured() -> Row:
        found = run(trial.model, recipe, [packed(trial.chosen, with_mask)], trial.device)
        return compared(found, whole, alone, trial.dtype)

    yield attempted({**row, "variant": f"{variant}, {trial.attention}"}, measured)


def _packed(trial: Trial, with_mask: bool) -> List[Tensor]:
    """Logits of one packed row, by sequence."""
    logits = logits_of(trial.model, packed(trial.chosen, with_mask), trial.device)[0]
    return list(logits.split([len(ids) for ids in trial.chosen]))


def _row(trial: Trial, case: str, variant: str, logits: Callable[[], Tensor], **notes: Any) -> Row:
    row = {
        "case": f"{case}, {trial.dtype}",
        "variant": f"{variant}, {trial.attention}",
        "dtype": trial.dtype,
        "tensor": "logits",
        **notes,
    }
    row = attempted(row, lambda: deviation(logits(), trial.exact, trial.alone, trial.dtype))
    if "theta" in row and not row["nonfinite"] and verdict(row["theta"], row["rho"]) == "fail":
        row["says"] = f"logits of a token are off by {row['error_share']:.0%} of their size"
    return row


def _unpadded(trial: Trial, side: str, pad_id: int) -> List[Tensor]:
    """Logits of the real tokens of one padded batch, by sequence."""
    return _real(trial, padded(trial.chosen, side, pad_id))


def _lonely(trial: Trial) -> List[Tensor]:
    """Each sequence in a batch of its own, padded on the left to one and a half times its length."""
    import torch

    found = []
    for ids in trial.chosen:
        filler = torch.zeros(len(ids) // 2 + 1, dtype=torch.long)
        batch = padded([ids, torch.cat([ids, filler])], "left", trial.built.pad_id)
        found += _real(trial, {key: value[:1] for key, value in batch.items()})
    return found


def _real(trial: Trial, batch: Tensors) -> List[Tensor]:
    if takes(trial.model, "position_ids"):
        batch = {**batch, "position_ids": positions_of(batch["attention_mask"])}
    logits = logits_of(trial.model, batch, trial.device)
    return [row[kept.bool()] for row, kept in zip(logits, batch["attention_mask"])]
