"""Faults of softmax, sums and norms: what is carried in too few bits, what is left out."""

from __future__ import annotations

from typing import Any

from tools.faults._plant import MISSED, WATCHED, Call, Fault, altered


def softmax_in_narrow(call: Call) -> Any:
    """Exponentials and their sum in the dtype of the input."""
    x, dim = call.args[:2]
    exponentials = (x - x.amax(dim, keepdim=True)).exp()
    return exponentials / summed_in_dtype(exponentials, dim).unsqueeze(dim)


def summed_in_dtype(x: Any, dim: int) -> Any:
    """64 running sums in the dtype, then the sum of these: what a block of threads does."""
    terms = x.movedim(dim, 0)
    if len(terms) > 64:
        whole = len(terms) // 64 * 64
        running = terms[:whole].reshape(-1, 64, *terms.shape[1:])
        terms, tail = running[0].clone(), terms[whole:]
        for block in running[1:]:
            terms = terms + block
        for number, each in enumerate(tail):
            terms[number % 64] += each
    total = terms[0]
    for each in terms[1:]:
        total = total + each
    return total


def one_term_missing(call: Call) -> Any:
    """The denominator lacks its last term."""
    import torch

    x, dim = call.args[:2]
    wide = x.float()
    lse = wide.narrow(dim, 0, wide.shape[dim] - 1).logsumexp(dim, keepdim=True)
    logs = wide - lse
    return (logs if call.name == "_log_softmax" else torch.exp(logs)).to(call.out.dtype)


def second_half_unseen(call: Call) -> Any:
    """As a kernel whose loop ends at 65536 columns, or at half of fewer."""
    x, dim = call.args[:2]
    seen = min(65536, x.shape[dim] // 2)
    out = call.out.clone()
    out.narrow(dim, 0, seen).copy_(call.again(x.narrow(dim, 0, seen), *call.args[1:]))
    return out


def log_softmax_in_narrow(call: Call) -> Any:
    x, dim = call.args[:2]
    shifted = x - x.amax(dim, keepdim=True)
    return shifted - summed_in_dtype(shifted.exp(), dim).log().unsqueeze(dim)


def sum_in_narrow(call: Call) -> Any:
    x = call.args[0]
    dims = call.args[1] if len(call.args) > 1 and call.args[1] is not None else list(range(x.dim()))
    keep = len(call.args) > 2 and call.args[2]
    total = x
    for dim in sorted((d % x.dim() for d in dims), reverse=True):
        total = summed_in_dtype(total, dim)
        total = total.unsqueeze(dim) if keep else total
    return total.to(call.out.dtype)


def last_term_unsummed(call: Call) -> Any:
    x = call.args[0]
    if x.dim() < 2 or len(call.args) < 2 or call.args[1] is None:
        return call.out - x.reshape(-1)[-1]
    dim = call.args[1][0] % x.dim()
    last = x.narrow(dim, x.shape[dim] - 1, 1)
    return call.out - last.reshape(call.out.shape) if last.numel() == call.out.numel() else call.out


def one_pass_variance(call: Call) -> Any:
    """Variance as the difference of two float32 means."""
    x, shape, weight, bias, epsilon = call.args
    wide, dims = x.float(), tuple(range(x.dim() - len(shape), x.dim()))
    mean = wide.mean(dims, keepdim=True)
    variance = wide.square().mean(dims, keepdim=True) - mean.square()
    return _normalised(call, wide, mean, (variance + epsilon).rsqrt(), weight, bias)


def statistics_in_narrow(call: Call) -> Any:
    x, shape, weight, bias, epsilon = call.args
    dims = tuple(range(x.dim() - len(shape), x.dim()))
    mean = x.bfloat16().mean(dims, keepdim=True).float()
    variance = (x.float() - mean).square().bfloat16().mean(dims, keepdim=True).float()
    return _normalised(call, x.float(), mean, (variance + epsilon).rsqrt(), weight, bias)


def unbiased_variance(call: Call) -> Any:
    x, shape, weight, bias, epsilon = call.args
    wide, dims = x.float(), tuple(range(x.dim() - len(shape), x.dim()))
    mean = wide.mean(dims, keepdim=True)
    rstd = (wide.var(dims, keepdim=True, unbiased=True) + epsilon).rsqrt()
    return _normalised(call, wide, mean, rstd, weight, bias)


def _normalised(call: Call, wide: Any, mean: Any, rstd: Any, weight: Any, bias: Any) -> Any:
    out = (wide - mean) * rstd
    out = out if weight is None else out * weight.float()
    out = out if bias is None else out + bias.float()
    return out.to(call.out[0].dtype), mean.to(call.out[1].dtype), rstd.to(call.out[2].dtype)


def gradient_lost(call: Call) -> Any:
    """The gradient of the weight comes out as zero."""
    return call.out[0], call.out[1] * 0 if call.out[1] is not None else None, *call.out[2:]


SOFTMAX = ("_softmax",)
FAULTS = (
    Fault("all in bfloat16", "softmax", altered(SOFTMAX, softmax_in_narrow, "bfloat16"), dtype="bfloat16", quick=True),
    Fault(
        "log-softmax all in bfloat16",
        "softmax",
        altered(("_log_softmax",), log_softmax_in_narrow, "bfloat16"),
        {},
        MISSED,
        "bfloat16",
        "below the rounding of the log-probabilities",
    ),
    Fault("denominator lacks one term", "softmax", altered(SOFTMAX, one_term_missing, "float32"), dtype="float32"),
    Fault(
        "columns beyond 65536 normalised apart", "softmax", altered(("_softmax", "_log_softmax"), second_half_unseen)
    ),
    Fault(
        "carried in bfloat16", "reduction", altered(("sum",), sum_in_narrow, "bfloat16"), dtype="bfloat16", quick=True
    ),
    Fault("last term not summed", "reduction", altered(("sum",), last_term_unsummed)),
    Fault(
        "variance in one float32 pass",
        "layer_norm",
        altered(("native_layer_norm",), one_pass_variance, "float32"),
        dtype="float32",
    ),
    Fault(
        "variance in one float32 pass",
        "layer_norm",
        altered(("native_layer_norm",), one_pass_variance, "bfloat16"),
        {},
        WATCHED,
        "bfloat16",
    ),
    Fault("variance divided by n - 1", "layer_norm", altered(("native_layer_norm",), unbiased_variance)),
    Fault("statistics in bfloat16", "layer_norm", altered(("native_layer_norm",), statistics_in_narrow)),
    Fault("gradient of the weight lost", "layer_norm", altered(("native_layer_norm_backward",), gradient_lost)),
)
