"""Scaled dot-product attention in every kernel, forward and backward.

Padded batches pass an explicit mask to `scaled_dot_product_attention`, which changes the kernel that torch picks. This
probe builds the masks as transformers does (additive finfo.min, or bool), transposes the output as transformers does,
and sends a random gradient back. It compares the output and the gradients of q, k and v with float64 on the CPU, for
the kernel that torch picks by default and for every kernel that can be selected by name. Plain attention in float32 on
the same device is the control.

A failure means that one of these holds while another kernel or the control passes on the same inputs: an element is
further from the exact value than 4 times its rounding budget; the error is more than 4 times the error of plain
attention at the same precision; or the result is not finite. The budgets are sums of rounding bounds, derived in
`_attention.py`. Kernels that this machine cannot run are recorded and not judged.

Groups (`groups` in the request selects them; the default is all except fully_masked_rows, which affects few runs):

`unmasked`: no mask, and is_causal.

`padded_right`, `padded_left`: every query row that carries gradient has a key. Left padding is tested with unmasked
padding rows, and with padding rows that contain only finfo.min and carry no gradient, as in training.

`all_true`: a mask that masks nothing.

`transposed_inputs`: like padded_right, with q, k and v as views of (batch, length, heads, dim) storage.

`grouped_heads`: fewer heads of k and v than of q. The heads are repeated as transformers does, by enable_gqa if torch
has it, and as one head broadcast with stride 0.

`fully_masked_rows`: rows in which every key has finfo.min and which do carry gradient. In such a row, the softmax is
the softmax of equal numbers, and the output is the mean of v (some kernels define 0 instead, which is accepted). The
derivative is well defined too. CPU flash attention multiplies the gradient of such rows by the number of keys (right
in torch 2.2, wrong from 2.3 to at least 2.14). A training has such rows if a left-padded sequence keeps the label of
its first real token: the last row of padding predicts this token.

`shifted_logits`: scores near -120 under a mask, length 704 (pytorch#196678: NaN in the gradient of q from cuDNN on
compute capability 9.0). Lengths 640 and 768 are the controls. The gradients cancel in this case, so only theta
decides, as it does below 16 keys. Other GPUs skip this case; a CPU uses length 192. The math kernel before torch 2.5
stores scores in 16 bits, like eager attention (2.4.1: bit for bit). With scores near -120 this gives a watch (theta
1.1) and is recorded.

The lengths lie around the tile sizes 64 and 128. The smoke profile uses one or two lengths, on a CPU with the default
kernel only. The quick profile uses five lengths, and so does a request for groups. The deep profile uses ten.

Request: seed, device, groups, profile, head_dim, config (head_dim, num_attention_heads, num_key_value_heads). The
dtypes are float32 and bfloat16, on CUDA also float16.
"""

from __future__ import annotations

import contextlib
import math
import warnings
from typing import TYPE_CHECKING, Dict, Iterator, NamedTuple, Optional, Tuple

from compatcheck.probes._criterion import (
    TF32_ROUNDOFF,
    UNIT_ROUNDOFF,
    Measured,
    Measuring,
    Request,
    Row,
    Stage,
    Tensor,
    Tensors,
    judge_rows,
    verdict,
)
from compatcheck.probes._device import NO_DEVICE
from compatcheck.probes.operators._attention import Attention
from compatcheck.probes.operators._operator import CANNOT_RUN, attempt

if TYPE_CHECKING:
    from compatcheck.results.findings import Outcome

NEEDS: Dict[str, str] = {"torch": ">=2.0"}
TIMEOUT: float = 90.0
PROFILE: str = "smoke"
SECONDS: float = 2.0

MASKS = {
    "unmasked": ("none", "causal"),
    "padded_right": ("min-right", "bool-right"),
    "padded_left": ("min-left-unmasked", "bool-left-unmasked", "min-left-silent"),
    "all_true": ("bool-all",),
    "transposed_inputs": ("min-right", "min-left-unmasked"),
    "grouped_heads": ("bool-right",),
    "fully_masked_rows": ("min-left",),
    "shifted_logits": ("bool-all", "bool-causal"),
}
LAYOUTS = {"transposed_inputs": ("transposed",), "grouped_heads": ("repeated", "enable_gqa", "broadcast")}
DEFAULT_GROUPS = tuple(group for group in MASKS if group != "fully_masked_rows")
LENGTHS = {
    "smoke": (130,),
    "quick": (9, 64, 129, 130, 192),
    "deep": (9, 63, 64, 127, 128, 129, 130, 192, 257, 320),
}
FEW, MOST_GROUPED = 16, 8
NARROW_SCORES = "the math kernel of this torch stores scores in 16 bits, as eager attention does"
SHIFTED = {"cuda": (640, 704, 768), "cpu": (192,)}
BACKENDS = {
    "math": "MATH",
    "flash": "FLASH_ATTENTION",
    "efficient": "EFFICIENT_ATTENTION",
    "cudnn": "CUDNN_ATTENTION",
}


class Case(NamedTuple):
    """One input: ``mask`` is its kind, ``layout`` that of q, k and v in memory."""

    group: str
    mask: str
    length: int
    layout: str = "contiguous"


class Prepared(NamedTuple):
    """A case's inputs at one dtype, float64 on the CPU, and the ``Attention`` of them."""

    inputs: Tensors
    mask: Tensor
    attention: Attention


class Place(NamedTuple):
    """Where candidates run; ``roundoff`` is that of the accumulator of float32 products.

    ``threads`` is for candidates alone: tiny float64 products are faster on one.
    """

    device: str
    backends: Tuple[str, ...]
    roundoff: float
    capability: Optional[Tuple[int, int]]
    threads: int


def measure(request: Request, stage: Stage) -> Measuring:
    """Rows of one case, dtype and kernel each, naming the tensor that came out worst; then facts."""
    import torch

    place = _place(str(request.get("device", "auto")))
    if place is None:
        return {"unsupported": NO_DEVICE}
    unknown = [group for group in request.get("groups") or () if group not in MASKS]
    if unknown:
        return {"unsupported": f"there is no group {unknown[0]}; choose from {', '.join(MASKS)}"}
    torch.set_num_threads(1)
    backends = () if place.device == "cpu" and _profile(request) == "smoke" else place.backends
    for case in _cases(request, place):
        if case.group == "shifted_logits" and place.capability not in (None, (9, 0)):
            yield {**_case_row(case), "variant": "default", "dtype": "", "recorded": "needs compute capability 9.0"}
            continue
        for dtype in _dtypes(case, place):
            stage(f"{_case_row(case)['case']} {dtype}")
            prepared = _prepare(case, dtype, request, place)
            for backend in ("plain attention", "default", *backends):
                yield _row(case, dtype, backend, prepared, place)
    torch.set_num_threads(place.threads)
    stage("facts")
    return {"device": _device_name(place), "facts": _facts(place)}


def judge(measured: Measured) -> Tuple[Outcome, str]:
    """The worst row decides; another kernel or the control must pass on the same case."""
    if "unsupported" in measured:
        return "skip", str(measured["unsupported"])
    rows = [row for row in measured["rows"] if "error" in row or "theta" in row]
    outcome, why = judge_rows(rows)
    if outcome == "skip":
        reasons = sorted({str(row["recorded"]) for row in measured["rows"] if "recorded" in row})
        why = "none of the chosen cases can run here: " + "; ".join(reasons or ["no case chosen"])
    return outcome, why


def _place(device: str) -> Optional[Place]:
    import torch

    usable, threads = torch.cuda.is_available(), torch.get_num_threads()
    if device == "cuda" and not usable:
        return None
    if device == "cpu" or not usable:
        return Place("cpu", ("math", "flash"), UNIT_ROUNDOFF["float32"], None, threads)
    tf32 = torch.backends.cuda.matmul.allow_tf32
    roundoff = TF32_ROUNDOFF if tf32 else UNIT_ROUNDOFF["float32"]
    return Place("cuda", tuple(BACKENDS), roundoff, torch.cuda.get_device_capability(), threads)


def _profile(request: Request) -> str:
    return "quick" if request.get("groups") else str(request.get("profile") or "quick")


def _cases(request: Request, place: Place) -> Iterator[Case]:
    for group in request.get("groups") or DEFAULT_GROUPS:
        lengths = LENGTHS.get(_profile(request), LENGTHS["quick"])
        if lengths == LENGTHS["smoke"] and group.startswith("padded"):
            lengths = (64, *lengths)
        for length in SHIFTED[place.device] if group == "shifted_logits" else lengths:
            for mask in MASKS[group]:
                for layout in LAYOUTS.get(group, ("contiguous",)):
                    yield Case(group, mask, length, layout)


def _case_row(case: Case) -> Row:
    layout = "" if case.layout in ("contiguous", "transposed") else f", {case.layout}"
    return {"case": f"{case.group}, {case.mask}{layout}, length {case.length}", **case._asdict()}


def _dtypes(case: Case, place: Place) -> Tuple[str, ...]:
    narrow = ("bfloat16", "float16") if place.device == "cuda" else ("bfloat16",)
    return narrow if case.group == "shifted_logits" else (*narrow, "float32")


def _shape(case: Case, request: Request, place: Place) -> Tuple[int, int, int]:
    """Heads of q, heads of k and v, and their width, those of the user's model where it is known."""
    if case.group == "shifted_logits":
        return 1, 1, 64
    config = request.get("config") or {}
    heads = int(config.get("num_attention_heads") or 2)
    fewer = int(config.get("num_key_value_heads") or heads)
    width = request.get("head_dim") or config.get("head_dim") or int(config.get("hidden_size") or 0) // heads
    small = (4, 64) if place.device == "cuda" else (2, 16)
    width = int(width or small[1])
    if case.group != "grouped_heads":
        return small[0], small[0], width
    ratio = min(max(2, heads // fewer), MOST_GROUPED)
    return (ratio, 1, width) if case.layout == "broadcast" else (2 * ratio, 2, width)


def _prepare(case: Case, dtype: str, request: Request, place: Place) -> Prepared:
    """Inputs drawn in float64 on the CPU and rounded once to the dtype."""
    import torch

    heads, fewer, width = _shape(case, request, place)
    generator = torch.Generator().manual_seed(int(request.get("seed", 0)) * 1009 + case.length)
    inputs = {
        name: torch.randn(2, count, case.length, width, generator=generator, dtype=torch.float64)
        for name, count in (("q", heads), ("k", fewer), ("v", fewer), ("upstream", heads))
    }
    if case.group == "shifted_logits":
        for name, sign in (("q", -1), ("k", 1)):
            inputs[name] *= 0.1
            inputs[name][..., 0] = sign * math.sqrt(120 * math.sqrt(width))
    allowed, dead = _allowed(case)
    if case.mask.endswith("silent"):
        inputs["upstream"].masked_fill_(dead, 0.0)
    narrow = getattr(torch, dtype)
    mask = allowed
    if case.mask.startswith("min"):
        mask = torch.zeros(allowed.shape, dtype=torch.float64).masked_fill(~allowed, torch.finfo(narrow).min)
    inputs = {name: value.to(narrow).double() for name, value in inputs.items()}
    policy = place.roundoff == TF32_ROUNDOFF
    roundoff = place.roundoff if dtype == "float32" else UNIT_ROUNDOFF["float32"]
    tensor_cores = place.device == "cuda" and (dtype != "float32" or policy)
    return Prepared(inputs, mask, Attention(inputs, mask, dead, dtype, roundoff, tensor_cores))


def _allowed(case: Case) -> Tuple[Tensor, Tensor]:
    """Which keys each query may use, and the queries that may use none; the second sequence is padded.

    "unmasked" opens every key to a query that has none, as transformers does.
    """
    import torch

    length = case.length
    allowed = torch.ones(length, length, dtype=torch.bool)
    if case.mask not in ("bool-all", "none"):
        allowed = allowed.tril()
    allowed = allowed.expand(2, 1, length, length).clone()
    padding = max(1, length // 3)
    if "right" in case.mask:
        allowed[1, :, :, length - padding :] = False
    elif "left" in case.mask:
        allowed[1, :, :, :padding] = False
    dead = ~allowed.any(-1, keepdim=True)
    if case.mask.endswith("unmasked"):
        return allowed | dead, torch.zeros_like(dead)
    return allowed, dead


def _row(case: Case, dtype: str, backend: str, prepared: Prepared, place: Place) -> Row:
    """One kernel on one case; a kernel asked for by name that refuses is recorded, not judged."""
    row: Row = {**_case_row(case), "variant": backend, "dtype": dtype}
    if backend == "plain attention":
        row["control"] = True
        candidate, raised = attempt(lambda: prepared.attention.plain(place.device))
    else:
        candidate, raised = attempt(lambda: _candidate(case, dtype, backend, prepared, place, row))
        if raised and backend != "default":
            raised["recorded"] = CANNOT_RUN
    if raised:
        return {**row, **raised}
    theta_alone = case.group == "shifted_logits" or case.length < FEW
    found = prepared.attention.worst(candidate, case.mask.endswith("silent"), theta_alone)
    if case.group == "shifted_logits" and backend == "math" and _stores_narrow_scores(found):
        row["recorded"] = NARROW_SCORES
    return {**row, **found}


def _stores_narrow_scores(found: Measured) -> bool:
    """Whether a watch is that of the math kernel before torch 2.5."""
    import torch

    return (
        torch.__version__.startswith("2.")
        and int(torch.__version__.split(".")[1]) < 5
        and (verdict(found["theta"], found["rho"]) == "watch")
    )


def _candidate(case: Case, dtype: str, backend: str, prepared: Prepared, place: Place, row: Row) -> Tensors:
    """Output and gradients; ``row`` learns the autograd node that made them."""
    import torch
    import torch.nn.functional as F

    narrow = getattr(torch, dtype)

    def leaf(value: Tensor) -> Tensor:
        value = value.to(narrow).to(place.device)
        if case.layout == "transposed":
            value = value.transpose(1, 2).contiguous().transpose(1, 2)
        return value.requires_grad_()

    torch.set_num_threads(place.threads)
    try:
        q, k, v = (leaf(prepared.inputs[name]) for name in "qkv")
        with _kernel(backend):
            wide = [_spread(value, q.shape[1], case.layout) for value in (k, v)]
            out = F.scaled_dot_product_attention(q, *wide, **_options(case, prepared, narrow, place))
            upstream = prepared.inputs["upstream"].to(narrow).to(place.device)
            out.transpose(1, 2).contiguous().backward(upstream.transpose(1, 2).contiguous())
    finally:
        torch.set_num_threads(1)
    row["op"] = out.grad_fn.name()
    return {"out": out, "dq": q.grad, "dk": k.grad, "dv": v.grad}


def _spread(value: Tensor, heads: int, layout: str) -> Tensor:
    """k or v with as many heads as q, where the kernel is not left to do it."""
    batch, fewer, length, width = value.shape
    if fewer == heads or layout == "enable_gqa":
        return value
    wide = value[:, :, None].expand(batch, fewer, heads // fewer, length, width)
    return wide[:, 0] if layout == "broadcast" else wide.reshape(batch, heads, length, width)


def _options(case: Case, prepared: Prepared, narrow: Tensor, place: Place) -> Row:
    options: Row = {"is_causal": True} if case.mask == "causal" else {}
    if case.mask not in ("none", "causal"):
        mask = prepared.mask
        options["attn_mask"] = (mask if mask.dtype != prepared.inputs["q"].dtype else mask.to(narrow)).to(place.device)
    if case.layout == "enable_gqa":
        options["enable_gqa"] = True
    return options


@contextlib.contextmanager
def _kernel(backend: str) -> Iterator[None]:
    """Allow one kernel only; torch before 2.3 spells it differently."""
    import torch

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if backend == "default":
            yield
        elif hasattr(torch.nn, "attention") and hasattr(torch.nn.attention, "sdpa_kernel"):
            with torch.nn.attention.sdpa_kernel(getattr(torch.nn.attention.SDPBackend, BACKENDS[backend])):
                yield
        elif backend == "cudnn":
            raise RuntimeError("cuDNN attention is not supported by this torch")
        else:
            enabled = {f"enable_{name}": name == backend for name in ("math", "flash")}
            with torch.backends.cuda.sdp_kernel(enable_mem_efficient=backend == "efficient", **enabled):
                yield


def _facts(place: Place) -> Row:
    """The kernel torch would choose (0 math, 1 flash, 2 efficient, 3 cuDNN) and what empty bool rows give."""
    import torch
    import torch.nn.functional as F

    q = torch.randn(2, 8, 129, 64, generator=torch.Generator().manual_seed(0)).to(place.device, torch.bfloat16)
    mask = torch.zeros(2, 1, 129, 129, device=place.device, dtype=torch.bfloat16)
    facts: Row = {"policy_tf32": place.roundoff != 2.0**-24}
    choice = getattr(torch, "_fused_sdp_choice", None)
    if choice is not None:
        facts["choice_with_mask"] = int(choice(q, q, q, attn_mask=mask))
        facts["choice_without_mask"] = int(choice(q, q, q))
    nothing = torch.zeros(2, 1, 129, 129, device=place.device, dtype=torch.bool)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        out = F.scaled_dot_product_attention(q, q, q, attn_mask=nothing)
    facts["empty_bool_rows"] = "nan" if out.isnan().any() else "other" if out.any() else "zero"
    return facts


def _device_name(place: Place) -> Row:
    import torch

    if place.device == "cpu":
        return {
            "type": "cpu",
            "name": torch.backends.cpu.get_cpu_capability() if hasattr(torch.backends, "cpu") else "",
        }
    cudnn = torch.backends.cudnn.version()
    return {
        "type": "cuda",
        "name": torch.cuda.get_device_name(),
        "capability": place.capability,
        "cudnn": cudnn,
    }
