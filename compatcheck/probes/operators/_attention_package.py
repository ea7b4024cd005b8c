"""Cases and rows of attention packages beside torch: dense, causal, grouped heads, several sequences in one row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Callable, Iterator, Mapping, NamedTuple, Sequence, Tuple

from compatcheck.probes._criterion import UNIT_ROUNDOFF, Measured, Request, Row, Stage, Tensor, Tensors, judge_rows
from compatcheck.probes.operators._attention import Attention
from compatcheck.probes.operators._operator import attempt, draw, rounded

if TYPE_CHECKING:
    from compatcheck.results.findings import Outcome

DIMENSIONS = (64, 128, 256)
SEQUENCES = (7, 64, 1, 130)
BEYOND = 2
UNUSED_ROWS = "rows beyond the last sequence are rare; judged only if the request sets rows_beyond"


class Case(NamedTuple):
    """One input. ``causal`` aligns the last query with the last key, or the first ones where ``upper_left``.

    ``sequences`` are the lengths of several in one row, in which each sees itself alone; the tensors then have
    ``beyond`` rows more than the sequences, whose output means nothing.
    """

    name: str
    queries: int
    keys: int
    head_dim: int = 64
    heads: int = 4
    kv_heads: int = 4
    batch: int = 2
    causal: bool = False
    upper_left: bool = False
    sequences: Tuple[int, ...] = ()
    beyond: int = 0


Run = Callable[[Case, Tensor, Tensor, Tensor], Tensor]


def cases(upper_left: bool) -> Iterator[Case]:
    """The default cases; ``upper_left`` is the package's way to align a causal mask."""
    for head_dim in DIMENSIONS:
        yield Case(f"dense, head_dim {head_dim}", 129, 129, head_dim)
        yield Case(f"causal, head_dim {head_dim}", 192, 192, head_dim, causal=True)
    yield Case("grouped heads", 130, 130, heads=8, kv_heads=2, causal=True)
    yield Case("causal, fewer queries than keys", 33, 97, causal=True, upper_left=upper_left)
    yield Case("causal, more queries than keys", 97, 33, causal=True, upper_left=upper_left)
    yield Case("33728 keys", 8, 33728, heads=1, kv_heads=1, batch=1)
    total = sum(SEQUENCES)
    yield Case("sequences in one row", total, total, batch=1, causal=True, sequences=SEQUENCES)
    unused = "sequences in one row and rows beyond them"
    yield Case(unused, total, total, batch=1, causal=True, sequences=SEQUENCES, beyond=BEYOND)


def rows(
    request: Request,
    chosen: Sequence[Case],
    dtype: str,
    device: str,
    kernels: Mapping[str, Run],
    stage: Stage,
) -> Iterator[Row]:
    """A row of every kernel and of plain attention for each case; what cannot run is recorded with the reason.

    A kernel takes the case and q, k and v of shape (batch, length, heads, head_dim), and returns the output likewise.
    """
    asked = request.get("cases") or [case.name for case in chosen]
    for case in (case for case in chosen if case.name in asked):
        stage(f"{case.name} {dtype}")
        inputs, attention = _problem(request, case, dtype, device)
        row = {"case": case.name, "dtype": dtype}
        plain = attention.worst(attention.plain(device), False)
        yield {**row, "variant": "plain attention", "control": True, **plain}
        for name, kernel in kernels.items():
            beyond: Row = {}

            def run(kernel: Run = kernel, case: Case = case, inputs: Tensors = inputs, out: Tensor = beyond) -> Tensors:
                return _candidate(kernel, case, inputs, dtype, device, out)

            found, raised = attempt(run)
            if raised:
                yield {**row, "variant": name, "recorded": "cannot run here", **raised}
                continue
            result = {**row, "variant": name, **attention.worst(found, False)}
            yield result
            if case.beyond:
                lost = beyond["lost"]
                unused = {
                    "tensor": "gradients of rows beyond the last sequence",
                    "nonfinite": lost,
                    "theta": float("inf") if lost else 0.0,
                }
                marks = {} if request.get("rows_beyond") else {"recorded": UNUSED_ROWS}
                yield {**result, "rho": 0.0, **unused, **marks}


def judge(measured: Measured) -> Tuple[Outcome, str]:
    """The worst row decides; where no kernel ran, the first reason is told."""
    if "unsupported" in measured:
        return "skip", str(measured["unsupported"])
    candidates = [row for row in measured["rows"] if not row.get("control")]
    if candidates and all("error" in row for row in candidates):
        return "skip", f"no kernel runs here: {candidates[0]['error']}"
    return judge_rows(measured["rows"])


def _problem(request: Request, case: Case, dtype: str, device: str) -> Tuple[Tensors, Attention]:
    """Inputs (batch, heads, length, head_dim), float64 on the CPU and rounded, and the attention of them."""
    wide = (case.batch, case.heads, case.queries, case.head_dim)
    narrow = (case.batch, case.kv_heads, case.keys, case.head_dim)
    inputs = rounded(draw(request, case.name, q=wide, k=narrow, v=narrow, upstream=wide), dtype)
    allowed = _allowed(case)
    dead = ~allowed.any(-1, keepdim=True)
    if dead.any():
        inputs["upstream"].masked_fill_(dead, 0.0)
    tensor_cores = device == "cuda"
    return inputs, Attention(inputs, allowed, dead, dtype, UNIT_ROUNDOFF["float32"], tensor_cores)


def _allowed(case: Case) -> Tensor:
    """Which keys each query may use, of shape (batch, 1, queries, keys)."""
    import torch

    allowed = torch.ones(case.queries, case.keys, dtype=torch.bool)
    if case.causal:
        allowed = allowed.tril(0 if case.upper_left else case.keys - case.queries)
    if case.sequences:
        owner = torch.repeat_interleave(torch.arange(len(case.sequences)), torch.tensor(case.sequences))
        allowed = allowed & (owner[:, None] == owner[None, :])
    return allowed.expand(case.batch, 1, case.queries, case.keys)


def _candidate(kernel: Run, case: Case, inputs: Tensors, dtype: str, device: str, beyond: Row) -> Tensors:
    """Output and gradients of a kernel; ``beyond`` hears how many gradients of unused rows are not finite."""
    import torch

    def stored(name: str) -> Tensor:
        value = inputs[name].transpose(1, 2).to(device, getattr(torch, dtype))
        return torch.nn.functional.pad(value, (0, 0, 0, 0, 0, case.beyond)).contiguous()

    leaves = {name: stored(name).requires_grad_() for name in "qkv"}
    upstream = stored("upstream")
    # Memory that is handed out again holds NaN, so that what a kernel never writes shows.
    freed = [torch.full_like(leaf, float("nan")) for leaf in leaves.values() for _ in range(2)]
    del freed
    out = kernel(case, leaves["q"], leaves["k"], leaves["v"])
    out.backward(upstream)
    found = {"out": out.detach(), **{f"d{name}": leaf.grad for name, leaf in leaves.items()}}
    if case.beyond:
        unused = [found[name][:, -case.beyond :] for name in ("dq", "dk", "dv")]
        beyond["lost"] = sum(int((~gradient.isfinite()).sum()) for gradient in unused)
    used = {"out": case.queries, "dq": case.queries, "dk": case.keys, "dv": case.keys}
    return {name: value[:, : used[name]].transpose(1, 2) for name, value in found.items()}
