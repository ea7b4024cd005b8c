"""Masked scaled dot-product attention, forward and backward.

Padded batches hand `scaled_dot_product_attention` an explicit mask, which changes the kernel torch
picks. This probe builds the masks as transformers does (additive finfo.min, or bool), transposes the
output as transformers does, sends a random gradient back, and compares the output and the gradients
of q, k and v with float64 on the CPU, for the kernel torch picks by itself and for every kernel that
can be asked for by name.

A failure means: an element is further from the exact value than 4 times its rounding budget, or the
error is more than 4 times that of plain attention at the same precision, or it is not finite. The
budgets are derived in `_attention.py`. Kernels that this machine cannot run are recorded, not judged.

Groups (`groups` in the request chooses; default all but fully_masked_rows, which bites few):
padded_right, padded_left: every query row that carries gradient has a key. Left padding both with
  its rows unmasked and with rows of finfo.min alone that carry no gradient, as in training.
transposed_inputs: as padded_right, with q, k and v as views of (batch, length, heads, dim) storage.
fully_masked_rows: rows whose every key carries finfo.min and which do carry gradient. There the
  softmax is that of equal numbers, the output the mean of v (some kernels define 0 instead, which is
  accepted), and the derivative is as well defined. CPU flash attention is known (right in torch 2.2,
  wrong from 2.3 to at least 2.14) to multiply the gradient of such rows by the number of keys.
  Training meets it where a left-padded sequence keeps the label of its first real token: the last
  row of padding predicts it.
shifted_logits: scores near -120 under a mask, length 704 (pytorch#196678: NaN in the gradient of q
  from cuDNN); lengths 640 and 768 are its controls. CUDA compute capability 9.0 only.

Request: seed, device, groups, head_dim. Dtypes are float32 and bfloat16, on CUDA float16 too.
"""

from __future__ import annotations

import contextlib
import math
import warnings
from typing import (
    TYPE_CHECKING,
    Any,
    Callable,
    Dict,
    Generator,
    Iterator,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Tuple,
)

from compatcheck.probes._attention import Attention
from compatcheck.probes._criterion import RANK, TF32_ROUNDOFF, UNIT_ROUNDOFF, verdict

if TYPE_CHECKING:
    from compatcheck.model import Outcome

NEEDS: dict[str, str] = {"torch": ">=2.0"}
TIMEOUT: float = 90.0

DEFAULT_GROUPS = ("padded_right", "padded_left", "transposed_inputs", "shifted_logits")
LENGTHS = (9, 64, 129, 130, 192)
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

    inputs: Dict[str, Any]
    mask: Any
    attention: Any


class Place(NamedTuple):
    """Where candidates run; ``roundoff`` is that of the accumulator of float32 products.

    ``threads`` is for candidates alone: tiny float64 products are faster on one.
    """

    device: str
    backends: Tuple[str, ...]
    roundoff: float
    capability: Optional[Tuple[int, int]]
    threads: int


def measure(
    request: Mapping[str, Any], stage: Callable[[str], None]
) -> Generator[Dict[str, Any], None, Dict[str, Any]]:
    """Rows of one case, dtype and kernel each, naming the tensor that came out worst; then facts."""
    import torch

    place = _place(str(request.get("device", "auto")))
    if place is None:
        return {"unsupported": "no CUDA device is usable from this interpreter"}
    torch.set_num_threads(1)
    not_run: List[Dict[str, str]] = []
    for case in _cases(request.get("groups") or DEFAULT_GROUPS, place, not_run):
        for dtype in _dtypes(case, place):
            stage(f"{case.group} {case.mask} length {case.length} {dtype}")
            prepared = _prepare(case, dtype, request, place)
            for backend in ("default", *place.backends):
                row, reason = _row(case, dtype, backend, prepared, place)
                if reason:
                    not_run.append({"group": case.group, "backend": backend, "dtype": dtype, "why": reason})
                else:
                    yield row
    stage("facts")
    return {"device": _device_name(place), "facts": _facts(place), "not_run": _distinct(not_run)}


def judge(measured: Mapping[str, Any]) -> tuple[Outcome, str]:
    """The worst row decides."""
    if "unsupported" in measured:
        return "skip", str(measured["unsupported"])
    rows = measured["rows"]
    if not rows:
        return "skip", "none of the chosen cases can run here: " + _why_nothing(measured)

    def severity(row: Mapping[str, Any]) -> tuple[int, float]:
        if "error" in row:
            return RANK["fail"], math.inf
        return RANK[verdict(row["theta"], row["rho"])], max(float(row["theta"]), float(row["rho"]) / 2)

    worst = max(rows, key=severity)
    outcome: Outcome = "fail" if "error" in worst else verdict(worst["theta"], worst["rho"])
    where = f"{worst['group']}, {worst['backend']} kernel, {worst['dtype']}, {worst['mask']}, length {worst['length']}"
    control = _controls(rows, worst, severity) if outcome == "fail" else ""
    return outcome, f"{_what(worst)} ({where}{control}; {len(rows)} cases)"


def _controls(rows: Any, worst: Mapping[str, Any], severity: Callable[[Mapping[str, Any]], tuple[int, float]]) -> str:
    """The kernels that pass in the failing group: the way round it, and proof that the inputs are sound."""
    ranks: dict[str, int] = {}
    for row in rows:
        if row["group"] == worst["group"]:
            ranks[row["backend"]] = max(ranks.get(row["backend"], 0), severity(row)[0])
    passing = sorted(backend for backend, rank in ranks.items() if rank == 0)
    return f"; passing there: {', '.join(passing)}" if passing else "; no kernel passes there"


def _what(row: Mapping[str, Any]) -> str:
    if "error" in row:
        return f"raised {row['error']}"
    if row["nonfinite"]:
        return f"{row['nonfinite']} elements of {row['tensor']} are not finite"
    return (
        f"{row['tensor']} errs by {float(row['theta']):.2g} of its rounding budget (bound 1, fails above 4) "
        f"and {float(row['rho']):.2g} times plain attention (bound 2, fails above 4)"
    )


def _why_nothing(measured: Mapping[str, Any]) -> str:
    return "; ".join(sorted({entry["why"] for entry in measured.get("not_run", ())})) or "no case chosen"


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


def _cases(groups: Any, place: Place, not_run: List[Dict[str, str]]) -> Iterator[Case]:
    for group in groups:
        if group == "shifted_logits" and place.capability != (9, 0):
            not_run.append({"group": group, "backend": "", "dtype": "", "why": "needs compute capability 9.0"})
            continue
        yield from _cases_of(group)


def _cases_of(group: str) -> Iterator[Case]:
    if group == "shifted_logits":
        yield from (Case(group, mask, length) for length in (640, 704, 768) for mask in ("bool-all", "bool-causal"))
        return
    masks = {
        "padded_right": ("min-right", "bool-right"),
        "padded_left": ("min-left-unmasked", "bool-left-unmasked", "min-left-silent"),
        "transposed_inputs": ("min-right", "min-left-unmasked"),
        "fully_masked_rows": ("min-left",),
    }[group]
    layout = "transposed" if group == "transposed_inputs" else "contiguous"
    yield from (Case(group, mask, length, layout) for length in LENGTHS for mask in masks)


def _dtypes(case: Case, place: Place) -> Tuple[str, ...]:
    narrow = ("bfloat16", "float16") if place.device == "cuda" else ("bfloat16",)
    return narrow if case.group == "shifted_logits" else (*narrow, "float32")


def _prepare(case: Case, dtype: str, request: Mapping[str, Any], place: Place) -> Prepared:
    """Inputs drawn in float64 on the CPU and rounded once to the dtype."""
    import torch

    shifted = case.group == "shifted_logits"
    on_cuda = place.device == "cuda"
    heads, head_dim = (4 if on_cuda else 2), int(request.get("head_dim") or (64 if on_cuda else 16))
    if shifted:
        heads, head_dim = 1, 64
    generator = torch.Generator().manual_seed(int(request["seed"]) * 1009 + case.length)
    shape = (2, heads, case.length, head_dim)
    inputs = {name: torch.randn(shape, generator=generator, dtype=torch.float64) for name in "qkv"}
    inputs["upstream"] = torch.randn(shape, generator=generator, dtype=torch.float64)
    if shifted:
        for name, sign in (("q", -1), ("k", 1)):
            inputs[name] *= 0.1
            inputs[name][..., 0] = sign * math.sqrt(120 * math.sqrt(head_dim))
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
    tensor_cores = on_cuda and (dtype != "float32" or policy)
    return Prepared(inputs, mask, Attention(inputs, mask, dead, dtype, roundoff, tensor_cores))


def _allowed(case: Case) -> Tuple[Any, Any]:
    """Which keys each query may use, and the queries that may use none; the second sequence is padded.

    "unmasked" opens every key to a query that has none, as transformers does.
    """
    import torch

    length = case.length
    allowed = torch.ones(length, length, dtype=torch.bool)
    if case.mask != "bool-all":
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


def _row(case: Case, dtype: str, backend: str, prepared: Prepared, place: Place) -> Tuple[Dict[str, Any], str]:
    """A row, and the reason where the kernel cannot run."""
    row: Dict[str, Any] = {**case._asdict(), "backend": backend, "dtype": dtype}
    try:
        candidate, row["op"] = _candidate(case, dtype, backend, prepared, place)
    except (RuntimeError, AttributeError) as error:
        reason = str(error).strip().split("\n")[0][:160]
        if "CUDA error" in reason or "out of memory" in reason:
            raise
        if backend == "default" and "not implemented" not in reason:
            return {**row, "error": f"{type(error).__name__}: {reason}"}, ""
        return row, reason
    return {**row, **prepared.attention.worst(candidate, case.mask.endswith("silent"))}, ""


def _candidate(case: Case, dtype: str, backend: str, prepared: Prepared, place: Place) -> Tuple[Dict[str, Any], str]:
    """Output and gradients as float64 on the CPU, and the autograd node that made them."""
    import torch
    import torch.nn.functional as F

    narrow = getattr(torch, dtype)

    def leaf(value: Any) -> Any:
        value = value.to(narrow).to(place.device)
        if case.layout == "transposed":
            value = value.transpose(1, 2).contiguous().transpose(1, 2)
        return value.requires_grad_()

    torch.set_num_threads(place.threads)
    q, k, v = (leaf(prepared.inputs[name]) for name in "qkv")
    mask = prepared.mask if prepared.mask.dtype == torch.bool else prepared.mask.to(narrow)
    with _kernel(backend):
        out = F.scaled_dot_product_attention(q, k, v, attn_mask=mask.to(place.device))
        upstream = prepared.inputs["upstream"].to(narrow).to(place.device)
        out.transpose(1, 2).contiguous().backward(upstream.transpose(1, 2).contiguous())
    torch.set_num_threads(1)
    found = {"out": out.detach(), "dq": q.grad, "dk": k.grad, "dv": v.grad}
    return {name: value.double().cpu() for name, value in found.items()}, out.grad_fn.name()


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
            raise AttributeError("this torch has no cuDNN attention")
        else:
            enabled = {f"enable_{name}": name == backend for name in ("math", "flash")}
            with torch.backends.cuda.sdp_kernel(enable_mem_efficient=backend == "efficient", **enabled):
                yield


def _facts(place: Place) -> Dict[str, Any]:
    """The kernel torch would choose (0 math, 1 flash, 2 efficient, 3 cuDNN) and what empty bool rows give."""
    import torch
    import torch.nn.functional as F

    q = torch.randn(2, 8, 129, 64, generator=torch.Generator().manual_seed(0)).to(place.device, torch.bfloat16)
    mask = torch.zeros(2, 1, 129, 129, device=place.device, dtype=torch.bfloat16)
    facts: Dict[str, Any] = {"policy_tf32": place.roundoff != 2.0**-24}
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


def _device_name(place: Place) -> Dict[str, Any]:
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


def _distinct(not_run: List[Dict[str, str]]) -> List[Dict[str, str]]:
    """One entry per group, kernel and reason."""
    return list({(entry["group"], entry["backend"], entry["why"]): entry for entry in not_run}.values())
