"""Training of the user's own architecture in miniature, compared with an exact reference.

The model's config.json is shrunk (heads, layers, width, experts and vocabulary; settings that select kernels stay).
The model gets random weights and is trained with the user's settings: dtype or autocast, attention, LoRA, quantised
base, gradient checkpointing, optimizer and scaler. Batches of 1, 2 and 8 sequences of unequal length (the deep profile
adds 4) are padded on either side. They use the user's attention or, if none is stated, sdpa and eager. The loss and
the gradients of each batch are compared with the same sequences one by one, without padding, entirely in float64, with
the loss computed by the probe. So a change caused by padding, masks, attention, the loss of the model's code or
rounding appears as a difference. Then the probe takes 12 optimizer steps on 4 batches, each used three times.

A failure means one of these. (1) A loss or gradient is not finite, or its error is above 4 times its bound or above 4
times the error of plain eager attention at the same precision, while another attention or precision is right on the
same batch. The bounds are relative, in the 2-norm of the tensor, with u the unit roundoff: 16 u in 16 bits and 64 u in
float32; for tensors with few elements, 32 u and 512 u; for the loss, 4 u and 16 u. (2) The loss does not fall, or no
step changes a parameter that half a step along its gradient would change in its own dtype, while the control trains.
The control is the same optimizer in float32 or, if that fails too, AdamW written out. The bounds are measured: see
`_passes.py`. If nothing is right, a last control computes the loss itself. (3) A parameter has no gradient in float64,
although differences of the loss show that the loss depends on it (`_unreached.py`). A quantised base is compared with
a dense model of the dequantised weights. The learning rate is the probe's own, 1e-3.

Every expert of a mixture gets every token, so that rounding cannot change the route.
With padding on the left and a label on the first real token, as collators label it, a row of attention without any key
predicts this token. CPU flash attention from torch 2.3 gives wrong gradients in this case if the mask is finfo.min, as
transformers 4.39 to 4.52 build it. This is compared with the math kernel. It is only recorded if the training file
pads on the right or if label_first_token is false. Model code whose exact result changes with padding on the left is
recorded, and judged only if the user pads on the left. An architecture that transformers does not know is not judged,
nor is an architecture whose code is remote and not trusted.

Request: seed, device, dtype, config, training, model_folder, trust_remote_code, profile, batch_sizes,
label_first_token.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Dict, List, Tuple

from compatcheck.probes._criterion import Measured, Measuring, Request, Stage, judge_rows, verdict
from compatcheck.probes._device import NO_DEVICE, device_of

if TYPE_CHECKING:
    from compatcheck.results.findings import Outcome

NEEDS: Dict[str, str] = {"torch": ">=1.13", "transformers": ">=4.31"}
TIMEOUT: float = 120.0
PROFILE: str = "quick"
SECONDS: float = 6.0
ASKED_BY: Tuple[str, ...] = ()

SIZES = {"quick": (1, 2, 8), "deep": (1, 2, 4, 8)}


def measure(request: Request, stage: Stage) -> Measuring:
    """Rows of one batch and variant each, with the worst tensor; then facts."""
    import torch

    from compatcheck.probes.training import _ramp as ramp
    from compatcheck.probes.training._model import Unbuildable

    device = device_of(request)
    if device is None:
        return {"unsupported": NO_DEVICE}
    torch.set_num_threads(1)
    sizes = tuple(request.get("batch_sizes") or SIZES["deep" if request.get("profile") == "deep" else "quick"])
    try:
        stage("model")
        trial = ramp.prepare(request, device)
        yield from ramp.batches(trial, sizes, request, stage)
        stage("optimiser steps")
        yield from ramp.steps(trial)
    except Unbuildable as error:
        return {"unsupported": str(error)}
    return {"device": device, **trial.facts()}


def judge(measured: Measured) -> tuple[Outcome, str]:
    """The worst row decides; a model that passes with another attention than the user's is not judged."""
    if "unsupported" in measured:
        return "skip", str(measured["unsupported"])
    rows: List[Measured] = list(measured["rows"])
    outcome, why = judge_rows(rows)
    if outcome == "pass" and measured.get("replaced"):
        return "skip", "; ".join(measured["replaced"])
    signs = [*_onset(rows), *_vanished(rows), *_descent(rows)] if outcome in ("fail", "watch") else []
    return outcome, "; ".join([*signs, why, *(f"not run: {what}" for what in measured.get("not_run", ()))])


def _onset(rows: List[Measured]) -> List[str]:
    """From which batch on a variant fails that is right for one sequence alone."""
    judged = [row for row in rows if "batch" in row and not row.get("control") and "recorded" not in row]
    words = []
    for variant in dict.fromkeys(row["variant"] for row in judged):
        mine = [row for row in judged if row["variant"] == variant]
        bad = [row for row in mine if "error" in row or verdict(row["theta"], row["rho"]) == "fail"]
        if not bad or any(row["batch"] == 1 for row in bad):
            continue
        first = min(row["batch"] for row in bad)
        sides = " and ".join(dict.fromkeys(row["side"] for row in bad if row["batch"] == first))
        how = "not finite" if any(row.get("nonfinite") for row in bad) else "wrong"
        words.append(
            f"{variant} is right at batch size 1, but {how} from batch size {first} on, with padding on the {sides}"
        )
    return words


def _vanished(rows: List[Measured]) -> List[str]:
    """Parameters that got no gradient, or one of zeros, where the exact one is not."""
    judged = [row for row in rows if not row.get("control") and "recorded" not in row and "says" not in row]
    lost = [name for row in judged for name in row.get("lost", ())]
    return [f"no gradient reaches {', '.join(list(dict.fromkeys(lost))[:3])}"] if lost else []


def _descent(rows: List[Measured]) -> List[str]:
    """The losses of optimiser steps that do not train, beside the control's."""
    taken = [row for row in rows if "losses" in row]
    control = next((row for row in reversed(taken) if row.get("control")), None)
    bad = next((row for row in taken if not row.get("control") and verdict(row["theta"]) == "fail"), None)
    if control is None or bad is None or "left_out" in bad:
        return []
    own, other = (", ".join(f"{float(loss):.3g}" for loss in row["losses"]) for row in (bad, control))
    return [
        (f"over {bad['case']}, the loss of {bad['variant']} is {own}, and the loss of {control['variant']} is {other}")
    ]
