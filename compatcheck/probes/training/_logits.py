"""Logits of a small model, token by token, against those of the same weights in float64.

theta: the worst token's error (2-norm over the vocabulary, in units of the root mean square token) over its bound: 64 u
in float32 and 16 u in 16 bits, or 4 times the worst error of the baseline where the architecture itself needs more.
The baseline is the sequences one by one in the same dtype. rho: the 2-norm of all errors over the baseline's, as in
`_criterion.py`. Measured on healthy models: at most 33 u in float32 (qwen3_next: 250 u) and 5 u in bfloat16.
"""

from __future__ import annotations

import inspect
from typing import Callable, List, Sequence

from compatcheck.probes._criterion import UNIT_ROUNDOFF, Module, Row, Tensor, Tensors, relative_rms
from compatcheck.probes.operators._operator import FATAL
from compatcheck.probes.training._model import BUILD_ERRORS

ROUNDINGS = {"float64": 64, "float32": 64, "bfloat16": 16, "float16": 16}


def takes(model: Module, name: str) -> bool:
    """Whether the model's forward names this argument."""
    return name in inspect.signature(model.forward).parameters


def positions_of(mask: Tensor) -> Tensor:
    """Positions that count the tokens a mask keeps, as generation computes them."""
    return (mask.cumsum(-1) - 1).clamp(min=0)


def logits_of(model: Module, batch: Tensors, device: str) -> Tensor:
    """Logits in float64 on the CPU, of shape (row, position, vocabulary)."""
    import torch

    inputs = {key: value.to(device) for key, value in batch.items() if key != "labels"}
    with torch.no_grad():
        return model(**inputs).logits.double().cpu()


def singles_of(model: Module, chosen: Sequence[Tensor], device: str) -> List[Tensor]:
    """Logits of each sequence by itself, with a mask of ones."""
    import torch

    batches = [{"input_ids": ids.reshape(1, -1), "attention_mask": torch.ones(1, len(ids)).long()} for ids in chosen]
    return [logits_of(model, batch, device)[0] for batch in batches]


def deviation(candidate: Sequence[Tensor], exact: Sequence[Tensor], baseline: Sequence[Tensor], dtype: str) -> Row:
    """theta, rho, the number of non-finite elements and the worst token's error as a share of the root mean square."""
    import torch

    value, truth, plain = (torch.cat(list(part)) for part in (candidate, exact, baseline))
    lost = int((~torch.isfinite(value)).sum())
    if lost:
        return {"theta": float("inf"), "rho": float("inf"), "nonfinite": lost, "error_share": float("inf")}
    unit = UNIT_ROUNDOFF[dtype]
    worst, usual = (
        float((part - truth).norm(dim=-1).max() / truth.norm(dim=-1).square().mean().sqrt()) for part in (value, plain)
    )
    return {
        "theta": worst / max(ROUNDINGS[dtype] * unit, 4 * usual),
        "rho": relative_rms(value, truth) / max(relative_rms(plain, truth), unit / 10),
        "nonfinite": 0,
        "error_share": worst,
    }


def attempted(row: Row, measured: Callable[[], Row]) -> Row:
    """The row with what was measured, or with what that raised; an error that spoils the process is raised on."""
    try:
        return {**row, **measured()}
    except BUILD_ERRORS as error:
        if any(part in str(error) for part in FATAL):
            raise
        lines = str(error).strip().splitlines()
        return {**row, "error": f"{type(error).__name__}: {lines[0][:160] if lines else ''}"}
