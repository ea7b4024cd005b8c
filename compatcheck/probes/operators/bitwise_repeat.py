"""The same operation on the same inputs, compared bit by bit.

A matrix product, attention and layer normalisation run forward 50 times each. All results must be identical, because
these kernels add in a fixed order. The probe needs no tolerance and no reference, so it also sees errors in the lowest
bit, which a rounding budget cannot see. Failing hardware is found this way (silent data corruption, arXiv 2203.08989).
A large product is also checked by its column sums: the sums of the stored product are compared with (1'A) B in
float64. Bound per column: 8 u |c| (8 standard deviations of the roundings of its elements) plus 8 sqrt(K) a (|c| +
|t|) for their accumulation, with norms taken over the column.

A failure means that an operation differs from its own first result while another operation repeats exactly, or that a
checksum is off by more than 4 times its bound while float64 keeps it. If no operation repeats, the hardware is the
first suspect. On CUDA, some gradients add in no fixed order (atomics) by design. Whether the gradient of an embedding
repeats is therefore only recorded.

Request: seed, device, dtype, repeats (default 50).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Callable, Dict, Iterator, Tuple

from compatcheck.probes._criterion import (
    UNIT_ROUNDOFF,
    Measured,
    Measuring,
    Request,
    Row,
    Stage,
    Tensor,
    Tensors,
    accumulation,
    judge_rows,
)
from compatcheck.probes._device import NO_DEVICE, device_of
from compatcheck.probes.operators._operator import Problem, draw, dtypes_of, place, rounded, trial

if TYPE_CHECKING:
    from compatcheck.results.findings import Outcome

NEEDS: Dict[str, str] = {"torch": ">=1.13"}
TIMEOUT: float = 90.0
PROFILE: str = "smoke"
SECONDS: float = 1.5

REPEATS = 50
SIZE = 512
LARGE = {"cpu": 1024, "cuda": 4096}
CHECKSUM = "column sums"


def measure(request: Request, stage: Stage) -> Measuring:
    """A row per operation and dtype with the number of results that differ, then the checksums."""
    device = device_of(request)
    if device is None:
        return {"unsupported": NO_DEVICE}
    repeats = max(2, int(request.get("repeats") or REPEATS))
    for dtype in dtypes_of(request, device):
        for name, run in _operations(request, dtype, device).items():
            stage(f"{name} {dtype}")
            yield {"case": f"{repeats} repeats", "variant": name, "dtype": dtype, **_repeated(run, repeats)}
    for dtype in dtypes_of(request, device):
        stage(f"{CHECKSUM} {dtype}")
        yield from _checksums(request, dtype, device)
    stage("facts")
    gradient = _repeated(_embedding_gradient(request, device), 10)
    return {"device": device, "facts": {"embedding_gradients_that_differ_in_10": gradient["different"]}}


def judge(measured: Measured) -> Tuple[Outcome, str]:
    """An operation that differs decides, then the checksums."""
    if "unsupported" in measured:
        return "skip", str(measured["unsupported"])
    repeated = [row for row in measured["rows"] if "different" in row]
    checksums = [row for row in measured["rows"] if "different" not in row]
    differing = [row for row in repeated if row["different"]]
    if not differing:
        outcome, why = judge_rows(checksums)
        same = f"{len(repeated)} operations repeat bit by bit"
        return outcome, f"{same}; {why}" if outcome != "skip" else same
    worst = max(differing, key=lambda row: row["different"])
    seen = (
        f"{worst['variant']} in {worst['dtype']} gives a different result in {worst['different']} "
        f"of {worst['case']}, largest difference {float(worst['largest']):.2g} in "
        f"{worst['elements']} elements"
    )
    exact = sorted({f"{row['variant']} in {row['dtype']}" for row in repeated if not row["different"]})
    if not exact:
        return "watch", f"{seen}; nothing repeats, so the hardware is suspect"
    return "fail", f"{seen}; repeating bit by bit: {', '.join(exact)}"


def _operations(request: Request, dtype: str, device: str) -> Dict[str, Callable[[], Tensor]]:
    import torch
    import torch.nn.functional as F

    i = place(draw(request, "product", a=(SIZE, SIZE), b=(SIZE, SIZE)), dtype, device)
    heads = (2, 8, 192, 64)
    q, k, v = place(draw(request, "attention", q=heads, k=heads, v=heads), dtype, device).values()
    n = place(draw(request, "norm", x=(SIZE, 1024), w=(1024,), b=(1024,)), dtype, device)

    operations: Dict[str, Callable[[], Tensor]] = {
        "product": lambda: i["a"] @ i["b"],
        "layer normalisation": lambda: F.layer_norm(n["x"], (1024,), n["w"], n["b"]),
    }
    if hasattr(F, "scaled_dot_product_attention"):
        operations["attention"] = lambda: F.scaled_dot_product_attention(q, k, v)
    return {name: torch.no_grad()(run) for name, run in operations.items()}


def _repeated(run: Callable[[], Tensor], repeats: int) -> Row:
    """How many results differ from the first, and by how much at most."""
    import torch

    first = run()
    found: Row = {"different": 0, "elements": 0, "largest": 0.0}
    for _ in range(repeats - 1):
        again = run()
        if not torch.equal(first, again):
            difference = (first.double() - again.double()).abs()
            found["different"] += 1
            found["elements"] = max(found["elements"], int((difference != 0).sum()))
            found["largest"] = max(found["largest"], float(difference.max()))
    return found


def _embedding_gradient(request: Request, device: str) -> Callable[[], Tensor]:
    """The gradient of a table of which few rows are used often."""
    import torch
    import torch.nn.functional as F

    drawn = draw(request, "embedding", table=(16, 64), upstream=(2048, 64))
    leaves = place(drawn, "float32", device)
    rows = torch.arange(2048, device=device) % 16

    def run() -> Tensor:
        return torch.autograd.grad(F.embedding(rows, leaves["table"]), leaves["table"], leaves["upstream"])[0]

    return run


def _checksums(request: Request, dtype: str, device: str) -> Iterator[Row]:
    """The rows of a large product and of its control, the product in float64."""
    import torch

    size = LARGE[device]
    inputs = rounded(draw(request, "large product", a=(size, size), b=(size, size)), dtype)

    def sums(_: Problem, kind: str) -> Tensors:
        left, right = (value.to(device, getattr(torch, kind)) for value in inputs.values())
        return {CHECKSUM: (left @ right).double().sum(0)}

    exact = inputs["a"].sum(0) @ inputs["b"]
    # The norm of a column of products of zero mean is, to a few percent, that of all its terms.
    norm = (inputs["a"].square().sum(0) @ inputs["b"].square()).sqrt()
    narrow = dtype != "float32"
    tensor_cores = device == "cuda" and narrow
    budget = 8 * UNIT_ROUNDOFF[dtype] * norm + accumulation(size, norm, norm, UNIT_ROUNDOFF["float32"], tensor_cores)
    baseline = {CHECKSUM: exact + budget / 2}
    problem = Problem(f"{size} x {size} product", dtype, {}, {CHECKSUM: exact}, {CHECKSUM: budget}, baseline)
    permitted = device == "cuda" and not narrow and torch.backends.cuda.matmul.allow_tf32
    marks: Row = {"policy": "allow_tf32"} if permitted else {}
    yield trial(problem, "float64", sums, "float64", control=True)
    yield trial(problem, f"product in {dtype}", sums, dtype, **marks)
