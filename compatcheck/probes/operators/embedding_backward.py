"""Gradients of an embedding: sums over the positions of a token.

Half of 4096 tokens are the same token, like padding and frequent words, so the gradient of its row is a sum of 2048
terms. The tested operations are `F.embedding`, indexing `weight[tokens]`, `index_select` and `index_add`.

Bound: u |y| for the rounding of the result and 8 sqrt(n) a (|y| + |t|) for the n positions of a token. Baseline: the
sum in float32, rounded once. A failure means terms that are lost or added twice, or a sum that is accumulated in 16
bits (theta 1000 and more, a relative error of 5 to 50 % in bfloat16).

float32 is judged. For 16-bit weights, torch itself accumulates such sums in 16 bits: on a CPU for `F.embedding` and
indexing in every tested release from 1.13.1 to 2.15.0, and for `index_select` and `index_add` up to 2.0.1; on a GPU in
some cases, up to 3072 tokens and with atomic additions (aten/src/ATen/native/cuda/Embedding.cu). These rows are
recorded. They are judged only if the request has usage = "parameters_in_16_bits": an embedding that is trained in 16
bits without a float32 copy.

Request: seed, device, dtype, usage.
"""

from __future__ import annotations

from typing import Callable, Dict

from compatcheck.probes._criterion import UNIT_ROUNDOFF, Measuring, Request, Stage, Tensor, Tensors, accumulation
from compatcheck.probes._criterion import judge as judge
from compatcheck.probes._device import NO_DEVICE, device_of
from compatcheck.probes.operators._operator import Problem, control, draw, dtypes_of, narrow_sums, place, solved, trial

NEEDS: Dict[str, str] = {"torch": ">=1.13"}
TIMEOUT: float = 60.0
PROFILE = "quick"
SECONDS: float = 0.5

TOKENS, WIDTH = 4096, 24
CASES = ((40, "of either sign"), (3000, "positive"))
A = UNIT_ROUNDOFF["float32"]


def measure(request: Request, stage: Stage) -> Measuring:
    """A row for each vocabulary, kind of gradient, dtype and way."""
    device = device_of(request)
    if device is None:
        return {"unsupported": NO_DEVICE}
    ways = {"F.embedding": _embedding, "indexing": _indexing, "index_select": _index_select, "index_add": _index_add}
    for vocabulary, sign in CASES:
        case = f"{vocabulary} tokens, gradients {sign}"
        inputs = _inputs(request, case, vocabulary, sign)
        for dtype in dtypes_of(request, device):
            stage(f"{case} {dtype}")
            problem = solved(case, dtype, inputs, _sums, _budget)
            yield control(problem, _products, device)
            for name, way in ways.items():
                marks = narrow_sums(request, dtype)
                yield trial(problem, name, _candidate, device, way, **marks)
    return {"device": device}


def _inputs(request: Request, case: str, vocabulary: int, sign: str) -> Tensors:
    """Gradients and tokens; every other token is number 7, the last of the vocabulary is never met."""
    import torch

    inputs = draw(request, case, g=(TOKENS, WIDTH), w=(vocabulary, WIDTH))
    if sign == "positive":
        inputs["g"] = inputs["g"].abs()
    generator = torch.Generator().manual_seed(int(request.get("seed", 0)) + vocabulary)
    tokens = torch.randint(0, vocabulary - 1, (TOKENS,), generator=generator)
    tokens[::2] = 7
    return {**inputs, "tokens": tokens}


def _candidate(problem: Problem, device: str, way: Callable[[Tensor, Tensor, Tensor], Tensor]) -> Tensors:
    leaves = place(problem.inputs, problem.dtype, device)
    return {"dw": way(leaves["w"], leaves["tokens"], leaves["g"].detach())}


def _embedding(w: Tensor, tokens: Tensor, g: Tensor) -> Tensor:
    import torch.nn.functional as F

    F.embedding(tokens, w).backward(g)
    return w.grad


def _indexing(w: Tensor, tokens: Tensor, g: Tensor) -> Tensor:
    w[tokens].backward(g)
    return w.grad


def _index_select(w: Tensor, tokens: Tensor, g: Tensor) -> Tensor:
    w.index_select(0, tokens).backward(g)
    return w.grad


def _index_add(w: Tensor, tokens: Tensor, g: Tensor) -> Tensor:
    return w.detach().new_zeros(w.shape).index_add_(0, tokens, g)


def _sums(i: Tensors) -> Tensors:
    return {"dw": i["w"].new_zeros(i["w"].shape).index_add_(0, i["tokens"], i["g"])}


def _products(i: Tensors) -> Tensors:
    """The sums as a matrix product with the places of every token."""
    import torch

    return {"dw": torch.nn.functional.one_hot(i["tokens"], len(i["w"])).to(i["g"].dtype).transpose(0, 1) @ i["g"]}


def _budget(i: Tensors, exact: Tensors, dtype: str) -> Tensors:
    import torch

    vocabulary, y = len(i["w"]), exact["dw"]
    places = torch.bincount(i["tokens"], minlength=vocabulary).double()[:, None]
    norm = y.new_zeros(y.shape).index_add_(0, i["tokens"], i["g"].square()).sqrt()
    return {"dw": UNIT_ROUNDOFF[dtype] * y.abs() + accumulation(1, y, norm, A, False) * places.sqrt()}
