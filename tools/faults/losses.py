"""Faults of losses, RMS norms and clipping, planted in torch's Python layer."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from tools.faults._plant import Fault, Plant, replaced


def function(name: str, change: Callable[..., Any]) -> Plant:
    """``change(original, *args, **options)`` in the place of a function of torch.nn.functional or torch.nn.utils."""

    def plant() -> AbstractContextManager[None]:
        import torch.nn.functional as F
        from torch.nn import utils

        owner = F if hasattr(F, name) else utils
        return replaced(owner, name, lambda original: lambda *args, **options: change(original, *args, **options))

    return plant


def averaged_over_ignored(original: Any, logits: Any, labels: Any, **options: Any) -> Any:
    loss = original(logits, labels, **{**options, "reduction": "sum"})
    return loss / labels.numel() if options.get("reduction", "mean") == "mean" else loss


def logs_in_bfloat16(original: Any, logits: Any, labels: Any, **options: Any) -> Any:
    return original(logits.bfloat16(), labels, **options).to(logits.dtype)


def labels_smoothed(original: Any, logits: Any, labels: Any, **options: Any) -> Any:
    return original(logits, labels, **{**options, "label_smoothing": 0.01})


def ignored_learned(original: Any, logits: Any, labels: Any, **options: Any) -> Any:
    return original(logits, labels.clamp(min=0), **options)


def last_token_lost(original: Any, logits: Any, labels: Any, **options: Any) -> Any:
    return original(logits[:-1], labels[:-1], **options)


def other_epsilon(original: Any, x: Any, shape: Any, weight: Any = None, eps: Any = None) -> Any:
    return original(x, shape, weight, 1e-5)


def narrow_statistics(original: Any, x: Any, shape: Any, weight: Any = None, eps: Any = None) -> Any:
    scale = (x.bfloat16().square().mean(-1, keepdim=True) + eps).rsqrt()
    return (x * scale.to(x.dtype)) * weight


def weight_without_gradient(original: Any, x: Any, shape: Any, weight: Any = None, eps: Any = None) -> Any:
    return original(x, shape, weight.detach() + 0 * weight, eps)


def norm_of_the_last(original: Any, parameters: Any, limit: float, **options: Any) -> Any:
    """Every tensor is clipped by a norm of its own, as a sharded model does without an all-reduce."""
    return [original([each], limit, **options) for each in parameters][-1]


def clipped_twice(original: Any, parameters: Any, limit: float, **options: Any) -> Any:
    norm = original(parameters, limit, **options)
    for each in parameters:
        if each.grad is not None and float(norm) > limit:
            each.grad.mul_(limit / norm)
    return norm


def clips_in_silence(original: Any, parameters: Any, limit: float, **options: Any) -> Any:
    return original(parameters, limit, **{**options, "error_if_nonfinite": False})


def always_scaled(original: Any, parameters: Any, limit: float, **options: Any) -> Any:
    """Gradients below the limit are brought up to it."""
    norm = original(parameters, float("inf"), **options)
    for each in parameters:
        if each.grad is not None:
            each.grad.mul_((limit / (norm + 1e-6)).to(each.grad.dtype))
    return norm


CE, CLIP = "cross_entropy", "clip_grad_norm_"
FAULTS = (
    Fault("averaged over ignored labels too", CE, function(CE, averaged_over_ignored), quick=True),
    Fault("log-probabilities in bfloat16", CE, function(CE, logs_in_bfloat16)),
    Fault("labels smoothed by 1 %", CE, function(CE, labels_smoothed)),
    Fault("ignored labels learned as token 0", CE, function(CE, ignored_learned)),
    Fault("last token left out", CE, function(CE, last_token_lost)),
    Fault("epsilon 1e-5 for 1e-6", "rms_norm", function("rms_norm", other_epsilon)),
    Fault("statistics in bfloat16", "rms_norm", function("rms_norm", narrow_statistics)),
    Fault("gradient of the weight lost", "rms_norm", function("rms_norm", weight_without_gradient)),
    Fault("a norm for every tensor", "gradient_clipping", function(CLIP, norm_of_the_last), quick=True),
    Fault("clipped twice", "gradient_clipping", function(CLIP, clipped_twice)),
    Fault("small gradients scaled up", "gradient_clipping", function(CLIP, always_scaled)),
    Fault("silent about an inf", "gradient_clipping", function(CLIP, clips_in_silence)),
)
